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

// pieceSize is the number of bytes of text that a worker decodes at a time.
const pieceSize = 1 << 20

// longestQuoted is the maximum length of a record with an unclosed quotation, so that a wrong quotation mark does
// not cause the whole file to be read. longestRecord is the maximum length of any record.
const (
	longestQuoted = 1 << 24
	longestRecord = 1 << 27
)

// pieceReader splits a text into pieces of complete records. A record is a line, or several if a quotation has line
// ends.
type pieceReader struct {
	in       *input
	quotes   bool
	lines    int    // maximum number of lines in a piece; 0 means no limit
	line     int    // number of the line at which the next piece begins
	buffered []byte // bytes that have been read for the next piece
	eof      bool
}

// A piece is a part of a text. It consists of complete records.
type piece struct {
	text []byte
	line int // number of the line at which the piece begins
}

// next returns the next piece, or io.EOF after the last piece.
func (p *pieceReader) next() (piece, error) {
	if end := p.limit(p.buffered); end > 0 {
		return p.cutPiece(p.buffered, end), nil
	}
	buf := make([]byte, len(p.buffered), max(pieceSize, len(p.buffered)))
	copy(buf, p.buffered)
	for {
		if len(buf) == cap(buf) {
			buf = append(make([]byte, 0, 2*cap(buf)), buf...)
		}
		for !p.eof && len(buf) < cap(buf) {
			n, err := p.in.r.Read(buf[len(buf):cap(buf)])
			buf = buf[:len(buf)+n]
			if err == io.EOF {
				p.eof = true
			} else if err != nil {
				return piece{}, p.in.t.readError(p.line+bytes.Count(buf, newline), err)
			}
		}
		end := p.lastRecord(buf)
		switch {
		case p.eof:
			end = len(buf)
		case end == 0 && p.quotes && len(buf) >= longestQuoted && bytes.IndexByte(buf, '"') >= 0:
			end = len(buf) // the piece ends in an unclosed quotation: the parser will return an error
		case end == 0 && (len(buf) >= longestRecord || !p.in.allowance.fits(3*int64(len(buf)))): // this buffer and the next, of twice its size
			e := p.in.t.newError("", fmt.Sprintf("the line is longer than %d MiB: the file is not a text table, or its line ends are missing", len(buf)>>20))
			e.Line = p.line
			return piece{}, e
		case end == 0:
			continue // the record is longer than the buffer
		}
		if len(buf) == 0 {
			return piece{}, io.EOF
		}
		if n := p.limit(buf[:end]); n > 0 {
			end = n
		}
		return p.cutPiece(buf, end), nil
	}
}

// cutPiece returns the first end bytes of buf as a piece. The other bytes are for the next piece.
func (p *pieceReader) cutPiece(buf []byte, end int) piece {
	out := piece{buf[:end:end], p.line}
	p.buffered = buf[end:]
	p.line += bytes.Count(out.text, newline)
	return out
}

// limit returns the number of bytes of complete records in the first p.lines lines of b, or 0 if b has fewer lines.
func (p *pieceReader) limit(b []byte) int {
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

// lastRecord returns the end of the last complete record of b.
func (p *pieceReader) lastRecord(b []byte) int {
	if !p.quotes || bytes.IndexByte(b, '"') < 0 {
		return bytes.LastIndexByte(b, '\n') + 1
	}
	end := 0
	for pos := 0; pos < len(b); { // the text at index pos is outside quotations
		n := bytes.IndexByte(b[pos:], '"')
		if n < 0 {
			n = len(b) - pos
		}
		if i := bytes.LastIndexByte(b[pos:pos+n], '\n'); i >= 0 {
			end = pos + i + 1
		}
		if pos+n == len(b) {
			break
		}
		pos += n + 1
		if n = bytes.IndexByte(b[pos:], '"'); n < 0 {
			break
		}
		pos += n + 1
	}
	return end
}

// A part is a range of rows of a file. It has been read, but not decoded.
type part interface {
	// table returns the decoded rows. Any goroutine may call it.
	table() (*Table, error)
}

// A pass reads a file once.
type pass struct {
	form     form
	t        *Table   // has the name of the file for errors
	names    []string // names of the columns if the beginning of the file has them
	plain    []atomic.Bool
	rules    passRules
	nextPart func() (part, error) // returns the next part, or io.EOF after the last part
	cleanups []func()
}

func (p *pass) next() (part, error) { return p.nextPart() }

func (p *pass) close() {
	for _, f := range p.cleanups {
		f()
	}
}

// runOrdered calls the function next for each part until it returns io.EOF, decodes the parts on the given number of
// workers, and calls the function use with the results in order, on the caller's goroutine. It returns the first error
// in the order of the parts, after all its goroutines have ended.
func runOrdered[P, R any](ctx context.Context, workers int, next func() (P, error), decode func(P) (R, error), use func(R) error) error {
	type result struct {
		r   R
		err error
	}
	type job struct {
		part P
		done chan result // has a buffer for one result
	}
	ctx, cancel := context.WithCancelCause(ctx)
	jobs := make(chan job)
	order := make(chan job, workers) // its capacity limits the number of parts that are read ahead
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	wg.Go(func() {
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
		wg.Go(func() {
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
			return canceledError(ctx)
		}
	}
	if ctx.Err() != nil {
		return canceledError(ctx)
	}
	return nil
}

// parallel splits 0, …, n−1 into ranges of the given size and calls f for each range, on all
// processors. It returns the first error in the order of the ranges.
func parallel(n, size int, f func(first, last int) error) error {
	rangeCount := (n + size - 1) / size
	workers := min(runtime.GOMAXPROCS(0), rangeCount)
	if workers <= 1 {
		return f(0, n)
	}
	errs := make([]error, rangeCount)
	var next atomic.Int64
	var failed atomic.Bool
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for !failed.Load() { // if a range has failed, all ranges before it have started
				k := int(next.Add(1)) - 1
				if k >= rangeCount {
					return
				}
				if errs[k] = f(k*size, min((k+1)*size, n)); errs[k] != nil {
					failed.Store(true)
				}
			}
		})
	}
	wg.Wait()
	return cmp.Or(errs...)
}

func canceledError(ctx context.Context) error {
	return fmt.Errorf("dataset: %w", context.Cause(ctx))
}
