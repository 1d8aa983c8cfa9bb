package objects

import (
	"context"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/kernels"
)

// Kernel is k(a, b) over objects that are given as text. The same text gives
// the same values whatever else it is together with, however many workers there
// are.
//
// The methods that take objects return within about 0.1 s of the end of ctx an
// error that wraps context.Cause(ctx). An object that cannot be read gives an
// error that names it, counted from 1.
type Kernel interface {
	// String is the text of the kernel: Parse(k.String()) equals k.
	String() string
	// Check returns nil when every parameter obeys its rule.
	Check() error
	// Input is what the objects are.
	Input() Input
	// Gram returns k of all pairs of objects, n × n, both triangles.
	Gram(ctx context.Context, objects []string, o Options) (host.Matrix[float64], error)
	// Cross returns k(a_i, b_j), one row for each a.
	Cross(ctx context.Context, a, b []string, o Options) (host.Matrix[float64], error)
	// Diag returns k(a, a) of each object.
	Diag(ctx context.Context, objects []string, o Options) ([]float64, error)
}

// Input is a kind of object.
type Input string

const (
	Text Input = "text" // any text
	Tree Input = "tree" // a tree in brackets, (S (NP we) (VP sleep))
)

// Options are for work that takes long; the zero value is right for most.
type Options struct {
	Threads  int                    // workers; 0 is GOMAXPROCS
	Progress func(fraction float64) // nil, or told of the work as it is done, by one goroutine at a time; ends with 1
	Memory   int64                  // bytes that matrices may take; 0 is 80 % of what the process may use
}

// anywhere is what has room on any machine and is not asked about.
const anywhere = 1 << 26

// limit is the bytes that may be taken; false when that is not known.
func (o Options) limit() (int64, bool) {
	if o.Memory != 0 {
		return o.Memory, true
	}
	free, known := host.Memory()
	return free / 10 * 8, known
}

// fits returns nil when a rows × cols matrix, and one of its size that is made of
// it, have room, and an error that is host.ErrMemory otherwise.
func (o Options) fits(rows, cols int) error {
	need := 2 * 8 * int64(rows) * int64(cols)
	if o.Memory == 0 && need <= anywhere {
		return nil
	}
	if limit, known := o.limit(); known && need > limit {
		return fmt.Errorf("%w: the kernel values of %d × %s, and points made of them, take %d bytes, there is room for %d", host.ErrMemory, rows, count.Of(cols, "object"), need, limit)
	}
	return nil
}

// Room returns an error that is host.ErrMemory where numbers of 8 bytes for each
// worker have no room.
func (o Options) Room(what string, numbers float64) error {
	need := 8 * numbers * float64(o.threads())
	if need <= anywhere {
		return nil
	}
	if limit, known := o.limit(); known && need > float64(limit) {
		return fmt.Errorf("%w: %s takes %.0f bytes for %s, there is room for %d: shorten the objects, or take fewer threads", host.ErrMemory, what, need, count.Of(o.threads(), "thread"), limit)
	}
	return nil
}

// TrainingPoints returns the points of objects for kernels.Precomputed, n ×
// (n+2).
func TrainingPoints(ctx context.Context, k Kernel, objects []string, o Options) (host.Matrix[float64], error) {
	gram, err := k.Gram(ctx, objects, o)
	if err != nil {
		return host.Matrix[float64]{}, err
	}
	n := len(objects)
	data, err := kernels.TrainingPoints(n, gram.Data)
	return host.Matrix[float64]{Rows: n, Cols: n + 2, Stride: n + 2, Data: data}, err
}

// OtherPoints returns the points of objects that are not among the training
// objects for kernels.Precomputed, one row of n+2 for each.
func OtherPoints(ctx context.Context, k Kernel, others, training []string, o Options) (host.Matrix[float64], error) {
	cross, err := k.Cross(ctx, others, training, o)
	if err != nil {
		return host.Matrix[float64]{}, err
	}
	diag, err := k.Diag(ctx, others, Options{Threads: o.Threads})
	if err != nil {
		return host.Matrix[float64]{}, err
	}
	n := len(training)
	data, err := kernels.OtherPoints(n, cross.Data, diag)
	return host.Matrix[float64]{Rows: len(others), Cols: n + 2, Stride: n + 2, Data: data}, err
}

// Normalize divides k(a_i, b_j) by √(k(a_i, a_i) k(b_j, b_j)), and gives 0 where
// one of these is 0. With a and b the same objects the diagonal is exactly 1 or
// 0.
func Normalize(k host.Matrix[float64], a, b []float64) {
	rows, cols := roots(a), roots(b)
	same := len(a) > 0 && len(a) == len(b) && &a[0] == &b[0]
	for i, r := range rows {
		row := k.Row(i)
		for j, c := range cols {
			row[j] *= r * c
		}
		if same && r > 0 {
			row[i] = 1
		}
	}
}

// roots are 1/√v, or 0.
func roots(values []float64) []float64 {
	r := make([]float64, len(values))
	for i, v := range values {
		if v > 0 {
			r[i] = 1 / math.Sqrt(v)
		}
	}
	return r
}

// Ones is the diagonal of a normalized kernel: 1, or 0 where the kernel's own
// is 0.
func Ones(diag []float64) []float64 {
	ones := make([]float64, len(diag))
	for i, v := range diag {
		if v > 0 {
			ones[i] = 1
		}
	}
	return ones
}

// Function is a kernel by a function of the user's, which must be symmetric and
// finite: Gram checks both on every pair. It has no text that Parse takes.
type Function struct {
	Name string
	K    func(a, b string) float64 // called by several goroutines at once
}

func (k Function) String() string { return k.Name }
func (k Function) Input() Input   { return Text }

// Check requires K.
func (k Function) Check() error {
	if k.K == nil {
		return fmt.Errorf("objects: function: K is nil")
	}
	return nil
}

func (k Function) Gram(ctx context.Context, objects []string, o Options) (host.Matrix[float64], error) {
	gram, err := k.Cross(ctx, objects, objects, o)
	if err == nil {
		err = kernels.CheckGram(len(objects), gram.Data)
	}
	if err != nil {
		return host.Matrix[float64]{}, err
	}
	return gram, nil
}

func (k Function) Cross(ctx context.Context, a, b []string, o Options) (host.Matrix[float64], error) {
	if err := k.Check(); err != nil {
		return host.Matrix[float64]{}, err
	}
	return Pairs(ctx, len(a), len(b), false, o, func(stop Stop) func(i, lo, hi int, out []float64) {
		return func(i, lo, hi int, out []float64) {
			for j := lo; j < hi && !stop(0); j++ {
				out[j-lo] = k.K(a[i], b[j])
			}
		}
	})
}

func (k Function) Diag(ctx context.Context, objects []string, o Options) ([]float64, error) {
	if err := k.Check(); err != nil {
		return nil, err
	}
	return Each(ctx, len(objects), o, func(Stop) func(i int) float64 {
		return func(i int) float64 { return k.K(objects[i], objects[i]) }
	})
}
