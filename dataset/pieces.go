package dataset

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
)

// pieceSize is how much text is read at once, and handed to one worker: large
// enough that the handing over costs nothing, small enough that a few pieces
// take no memory.
const pieceSize = 1 << 20

// longestQuoted is where the search for the end of a record that has an odd number
// of quotation marks is given up, so that one stray mark does not bring the whole
// file into memory; longestRecord is where any record is.
const (
	longestQuoted = 1 << 24
	longestRecord = 1 << 27
)

// pieces cuts a text into pieces of whole records, which are lines, and where
// they may be quoted, lines joined by quoted line ends.
type pieces struct {
	in     *input
	quotes bool
	lines  int    // of a piece at most; 0: as many as there are
	line   int    // of the file, on which the next piece begins
	rest   []byte // read, but not handed out
	ended  bool
}

// A piece is a part of a text that begins with a record and ends with one.
type piece struct {
	text []byte
	line int // of its first byte
}

// next returns the next piece, and io.EOF after the last one.
func (p *pieces) next() (piece, error) {
	if end := p.limit(p.rest); end > 0 {
		return p.hand(p.rest, end), nil
	}
	buf := make([]byte, len(p.rest), max(pieceSize, len(p.rest)))
	copy(buf, p.rest)
	for {
		if len(buf) == cap(buf) {
			buf = append(make([]byte, 0, 2*cap(buf)), buf...)
		}
		for !p.ended && len(buf) < cap(buf) {
			n, err := p.in.r.Read(buf[len(buf):cap(buf)])
			buf = buf[:len(buf)+n]
			if err == io.EOF {
				p.ended = true
			} else if err != nil {
				return piece{}, p.in.t.readFault(p.line+bytes.Count(buf, newline), err)
			}
		}
		end := p.lastRecord(buf)
		switch {
		case p.ended:
			end = len(buf)
		case end == 0 && p.quotes && len(buf) >= longestQuoted && bytes.IndexByte(buf, '"') >= 0:
			end = len(buf) // to be refused
		case end == 0 && (len(buf) >= longestRecord || !p.in.allowance.fits(3*int64(len(buf)))): // a buffer of twice the size beside it
			e := p.in.t.fault("", fmt.Sprintf("the line goes on for more than %d MiB: this is no table of texts, or needs line ends", len(buf)>>20))
			e.Line = p.line
			return piece{}, e
		case end == 0:
			continue // a long record
		}
		if len(buf) == 0 {
			return piece{}, io.EOF
		}
		if few := p.limit(buf[:end]); few > 0 {
			end = few
		}
		return p.hand(buf, end), nil
	}
}

// hand cuts buf, of which the rest is for the next piece.
func (p *pieces) hand(buf []byte, end int) piece {
	out := piece{buf[:end:end], p.line}
	p.rest = buf[end:]
	p.line += bytes.Count(out.text, newline)
	return out
}

// limit returns where the records of b end that have as many lines as a piece
// may have, or 0 when b has fewer lines.
func (p *pieces) limit(b []byte) int {
	end := 0
	for range p.lines {
		n := bytes.IndexByte(b[end:], '\n')
		if n < 0 {
			return 0
		}
		end += n + 1
	}
	return p.lastRecord(b[:end])
}

var newline = []byte{'\n'}

// lastRecord returns where the last whole record of b ends.
func (p *pieces) lastRecord(b []byte) int {
	if !p.quotes || bytes.IndexByte(b, '"') < 0 {
		return bytes.LastIndexByte(b, '\n') + 1
	}
	end := 0
	for at := 0; at < len(b); { // at is outside quotation marks
		n := bytes.IndexByte(b[at:], '"')
		if n < 0 {
			n = len(b) - at
		}
		if i := bytes.LastIndexByte(b[at:at+n], '\n'); i >= 0 {
			end = at + i + 1
		}
		if at+n == len(b) {
			break
		}
		at += n + 1
		if n = bytes.IndexByte(b[at:], '"'); n < 0 {
			break
		}
		at += n + 1
	}
	return end
}

// A part is some rows of a file that were read but not decoded.
type part interface {
	// table decodes the rows, on any goroutine.
	table() (*Table, error)
}

// A pass reads a file once.
type pass struct {
	form  form
	t     *Table   // names the file in faults
	names []string // of the columns, where the file begins with them
	plain []atomic.Bool
	keyed bool                 // the keys of the rows are asked for
	parts func() (part, error) // the next part, and io.EOF after the last
	done  []func()
}

func (p *pass) next() (part, error) { return p.parts() }

func (p *pass) close() {
	for _, f := range p.done {
		f()
	}
}

// ordered reads parts one after the other, decodes them on some workers, and
// hands the results to use in the order of the parts, on the caller's
// goroutine. A few parts are read ahead. It returns after everything that it
// started has ended; next returns io.EOF after the last part. The first fault in
// the order of the parts is the one that is returned.
func ordered[P, R any](ctx context.Context, workers int, next func() (P, error), decode func(P) (R, error), use func(R) error) error {
	type result struct {
		r   R
		err error
	}
	type job struct {
		part P
		done chan result // holds one
	}
	ctx, cancel := context.WithCancelCause(ctx)
	jobs := make(chan job)
	order := make(chan job, workers) // how far reading may be ahead
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel(nil)
	running.Go(func() {
		defer close(jobs)
		defer close(order)
		for {
			part, err := next()
			if err == io.EOF {
				return
			}
			j := job{part, make(chan result, 1)}
			if err != nil {
				j.done <- result{err: err}
			}
			select {
			case order <- j:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
			select {
			case jobs <- j:
			case <-ctx.Done():
				return
			}
		}
	})
	for range workers {
		running.Go(func() {
			for j := range jobs {
				if ctx.Err() != nil {
					return
				}
				r, err := decode(j.part)
				j.done <- result{r, err}
			}
		})
	}
	for j := range order {
		select {
		case r := <-j.done:
			if r.err != nil {
				return r.err
			}
			if err := use(r.r); err != nil {
				return err
			}
		case <-ctx.Done():
			return stopped(ctx)
		}
	}
	if ctx.Err() != nil {
		return stopped(ctx)
	}
	return nil
}

// parallel runs f on parts of 0 … n−1 of size numbers, on all processors, and returns the
// first fault in their order.
func parallel(n, size int, f func(first, last int) error) error {
	parts := (n + size - 1) / size
	workers := min(runtime.GOMAXPROCS(0), parts)
	if workers <= 1 {
		return f(0, n)
	}
	faults := make([]error, parts)
	var next atomic.Int64
	var failed atomic.Bool
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for !failed.Load() { // those before a fault have begun
				k := int(next.Add(1)) - 1
				if k >= parts {
					return
				}
				if faults[k] = f(k*size, min((k+1)*size, n)); faults[k] != nil {
					failed.Store(true)
				}
			}
		})
	}
	running.Wait()
	return cmp.Or(faults...)
}

// stopped is the error of work whose context is done.
func stopped(ctx context.Context) error {
	return fmt.Errorf("dataset: %w", context.Cause(ctx))
}
