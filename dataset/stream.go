package dataset

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"sync"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/internal/count"
)

// A Stream is a table that stays in its file, in any format that File lists. Passes read the file in blocks of
// rows, and only three blocks are in memory at a time. But an array in Fortran order is read completely if it is
// compressed or in an NPZ file, and Parquet and Arrow files are read one row group or record batch at a time.
//
//	s, err := dataset.Open("train.csv.gz")
//	e, err := s.Learn(ctx, dataset.Rules{Targets: []string{"price"}})
//	for pass := range 20 {
//		err = s.Blocks(ctx, e, 1000, func(x, y *mat.Dense) error { … })
//	}
//
// After Learn has returned, a Stream may be used from several goroutines.
type Stream struct {
	file           File
	form           form
	names          []string        // names of the columns; nil until the first pass
	index          bool            // see Table.OmittedIndex
	rows           int             // number of rows, counted by the first pass; −1 before this pass
	zeroWeight     int             // number of rows of weight 0; the field rows does not count them
	columnWarnings []ColumnWarning // see the method ColumnWarnings
	warnings       []string

	mu      sync.Mutex
	unknown []Unknown
}

// Open opens a file for passes over its rows. It calls File{Path: path}.Open().
func Open(path string) (*Stream, error) { return File{Path: path}.Open() }

// Open opens a file for passes over its rows, and reads its beginning. Every error is an *Error. Standard input is
// an error.
func (f File) Open() (*Stream, error) {
	s := &Stream{file: f, rows: -1}
	if f.Path == "-" {
		return nil, (&Table{Source: "standard input"}).newError("", "cannot be read several times; save it to a file")
	}
	p, err := s.begin(0)
	if err != nil {
		return nil, err
	}
	p.close()
	s.form, s.names, s.index, s.warnings = p.form, p.names, p.t.index, p.t.warnings
	return s, nil
}

// Names returns the names of the columns. It returns nil for a LIBSVM file.
func (s *Stream) Names() []string { return slices.Clone(s.names) }

// OmittedIndex returns the result of Table.OmittedIndex for the file.
func (s *Stream) OmittedIndex() bool { return s.index }

// ReadWarnings returns the result of Table.ReadWarnings for the file.
func (s *Stream) ReadWarnings() []string { return slices.Clone(s.warnings) }

// Rows returns the number of rows that Learn counted, excluding rows of weight 0. It is −1 before Learn.
func (s *Stream) Rows() int { return s.rows }

// ColumnWarnings returns the warnings about the columns of the file after Learn: see Encoder.ColumnWarnings.
func (s *Stream) ColumnWarnings() []ColumnWarning { return s.columnWarnings }

// ZeroWeightRows returns the number of rows of weight 0 that Learn skipped.
func (s *Stream) ZeroWeightRows() int { return s.zeroWeight }

// Unknown returns the unknown categories that the last pass of Blocks found: see Encoder.Unknown.
func (s *Stream) Unknown() []Unknown {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unknown
}

// Head returns a table of the rows that a pass reads first: up to 1 MiB of text, 4 MiB of numbers,
// or one row group. For a file without rows it returns a table without rows.
func (s *Stream) Head() (*Table, error) {
	p, err := s.begin(0)
	if err != nil {
		return nil, err
	}
	defer p.close()
	part, err := p.next()
	if err == io.EOF {
		t := p.t
		t.columns = nil
		for _, name := range p.names {
			t.columns = append(t.columns, &column{name: name})
		}
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	t, err := part.table()
	if err != nil {
		return nil, err
	}
	for _, c := range t.columns {
		c.finish()
	}
	return t, nil
}

// Cells reads the file once and returns the cells of the named columns, as Table.Cells does.
func (s *Stream) Cells(ctx context.Context, names []string) ([][]string, error) {
	p, err := s.begin(0)
	if err != nil {
		return nil, err
	}
	defer p.close()
	cells := make([][]string, len(names))
	err = runOrdered(ctx, runtime.GOMAXPROCS(0), p.next, part.table, func(t *Table) error {
		for j, name := range names {
			texts, err := t.Cells(name)
			if err != nil {
				return err
			}
			cells[j] = append(cells[j], texts...)
		}
		return nil
	})
	return cells, err
}

// Blocks reads the file once and calls the function use with the features x and targets y of its rows, in order and in
// blocks of the given number of rows. The last block may be shorter. y is nil if e has no targets. If e has a weight
// column, rows of weight 0 are skipped; EachBlock also passes the weights. The next block is read during the call. x
// and y are valid only until the call returns.
//
// Blocks returns the first error in the file that Features or Targets would return, the first error of the function
// use, or, soon after ctx is done, the cause of ctx. It returns an error if the columns or the number of rows have
// changed since an earlier pass.
//
// Blocks takes memory for three blocks and for some pieces of 1 MiB of the file.
func (s *Stream) Blocks(ctx context.Context, e *Encoder, rows int, use func(x, y *mat.Dense) error) error {
	return s.EachBlock(ctx, e, rows, false, func(x, y *mat.Dense, _ []float64, _ []uint64) error { return use(x, y) })
}

// EachBlock does the work of Blocks, and also passes the weights of the rows to the function use, or nil if all are 1.
// If keyed is set, it also passes the keys of the rows: see Encoder.Keys. y is nil if e has no targets.
func (s *Stream) EachBlock(ctx context.Context, e *Encoder, rows int, keyed bool, use func(x, y *mat.Dense, weights []float64, keys []uint64) error) error {
	return s.eachBlock(ctx, e, rows, passRules{keyed: keyed}, use)
}

// ScoredBlocks does the work of EachBlock for targets that will be compared with predictions. A class that the training
// table lacks has the same index as in Encoder.ScoredTargets. ScoredBlocks returns the labels of all indices.
func (s *Stream) ScoredBlocks(ctx context.Context, e *Encoder, rows int, use func(x, y *mat.Dense, weights []float64, keys []uint64) error) (classes []string, err error) {
	var open *classifier
	if e.Labels != nil {
		open = newClassifier(e.Labels)
		open.open = true
	}
	if err := s.eachBlock(ctx, e, rows, passRules{classes: open}, use); err != nil || open == nil {
		return nil, err
	}
	return open.labels, nil
}

// passRules says what a pass does besides encoding the rows.
type passRules struct {
	keyed   bool        // compute the keys of the rows
	classes *classifier // the classes of all parts; nil if an unknown class is an error
}

func (s *Stream) eachBlock(ctx context.Context, e *Encoder, rows int, rules passRules, use func(x, y *mat.Dense, weights []float64, keys []uint64) error) error {
	if err := e.Check(); err != nil {
		return err
	}
	t := &Table{Source: s.file.Path}
	width, outputs := e.Width(), len(e.Outputs)
	switch {
	case e.Raw() != "":
		return t.newError("", fmt.Sprintf("a column of %ss cannot be read in blocks; read the whole file", e.Raw()))
	case rows <= 0 || rows > math.MaxInt/8/(width+outputs):
		return fmt.Errorf("dataset: a block of %s and %d features is not possible: use fewer rows, but at least 1", count.Of(rows, "row"), width)
	}
	p, err := s.begin(partLines(width))
	if err != nil {
		return err
	}
	defer p.close()
	p.rules = rules
	for j := range p.plain {
		p.plain[j].Store(e.isNumber(p.names[j]))
	}

	ctx, cancel := context.WithCancelCause(ctx)
	filled, empty := make(chan *block, 1), make(chan *block, 3)
	for range cap(empty) {
		empty <- &block{}
	}
	var reading sync.WaitGroup
	defer reading.Wait() // the reader must end before the file is closed
	defer cancel(nil)
	var readErr error // error of the reader; set when the channel filled is closed
	reading.Go(func() {
		defer close(filled)
		readErr = s.fill(ctx, p, e, &blockFiller{rows: rows, width: width, outputs: outputs, empty: empty, filled: filled})
	})
	for b := range filled {
		if ctx.Err() != nil {
			return canceledError(ctx)
		}
		x := mat.NewDense(b.rows, width, b.x[:b.rows*width])
		var y *mat.Dense
		if outputs > 0 {
			y = mat.NewDense(b.rows, outputs, b.y[:b.rows*outputs])
		}
		if err := use(x, y, b.weights, b.keys); err != nil {
			return err
		}
		empty <- b
	}
	return readErr
}

// partLines returns the maximum number of lines of text in a part. An encoded part then takes at most 2 MiB.
func partLines(width int) int { return max(1, 1<<18/width) }

// encoded holds the features and targets of a part of a file, by rows.
type encoded struct {
	x, y    []float64
	weights []float64 // weights of the rows; nil means all 1
	keys    []uint64  // keys of the rows if passRules.keyed is set
	classes []string  // labels of the indices in y if passRules.classes is set
	rows    int
	unknown []Unknown
	base    indexBase
}

// fill reads the file and sends its blocks to f.filled.
func (s *Stream) fill(ctx context.Context, p *pass, e *Encoder, f *blockFiller) error {
	rowsRead := 0
	var unknown []Unknown
	var base indexBase
	err := runOrdered(ctx, runtime.GOMAXPROCS(0), p.next, func(part part) (encoded, error) { return p.encode(part, e) }, func(r encoded) error {
		rowsRead += r.rows
		if err := p.mergeClasses(r, e); err != nil {
			return err
		}
		unknown = MergeUnknown(unknown, r.unknown)
		base = indexBase{base.zero || r.base.zero, base.hasExtraIndex || r.base.hasExtraIndex}
		return f.add(ctx, r)
	})
	if err != nil {
		return err
	}
	if s.rows >= 0 && rowsRead != s.rows {
		return p.t.newError("", fmt.Sprintf("has changed since it was first read: it had %s, now %d", count.Of(s.rows, "row"), rowsRead))
	}
	if rowsRead == 0 {
		return p.t.noRows()
	}
	if err := e.checkBase(p.t, base); err != nil {
		return err
	}
	s.mu.Lock()
	s.unknown = unknown
	s.mu.Unlock()
	return f.end(ctx)
}

// A block holds encoded rows. A blockFiller fills it.
type block struct {
	x, y, weights []float64
	keys          []uint64
	rows          int
}

// A blockFiller divides encoded parts into blocks.
type blockFiller struct {
	rows, width, outputs int
	empty, filled        chan *block
	b                    *block // the block to fill; nil if a new block is needed
}

func (f *blockFiller) add(ctx context.Context, r encoded) error {
	for first := 0; first < r.rows; {
		if f.b == nil {
			select {
			case f.b = <-f.empty:
			case <-ctx.Done():
				return canceledError(ctx)
			}
			f.b.x, f.b.y, f.b.weights, f.b.keys, f.b.rows = f.b.x[:0], f.b.y[:0], f.b.weights[:0], f.b.keys[:0], 0
		}
		n := min(r.rows-first, f.rows-f.b.rows)
		f.b.x = append(f.b.x, r.x[first*f.width:(first+n)*f.width]...)
		f.b.y = append(f.b.y, r.y[first*f.outputs:(first+n)*f.outputs]...)
		if r.weights != nil {
			f.b.weights = append(f.b.weights, r.weights[first:first+n]...)
		}
		if r.keys != nil {
			f.b.keys = append(f.b.keys, r.keys[first:first+n]...)
		}
		f.b.rows += n
		first += n
		if f.b.rows == f.rows {
			if err := f.send(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *blockFiller) send(ctx context.Context) error {
	select {
	case f.filled <- f.b:
		f.b = nil
		return nil
	case <-ctx.Done():
		return canceledError(ctx)
	}
}

func (f *blockFiller) end(ctx context.Context) error {
	if f.b == nil || f.b.rows == 0 {
		return nil
	}
	return f.send(ctx)
}
