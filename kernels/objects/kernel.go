package objects

import (
	"context"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/kernels"
)

// Kernel is k(a, b) over objects that are given as text. The value for given texts depends neither
// on the other objects nor on the number of workers.
//
// The methods that take objects return within about 0.1 s after ctx is done, with an error that
// wraps context.Cause(ctx). An object that cannot be parsed gives an error that names its number,
// counted from 1.
type Kernel interface {
	// String is the text of the kernel: Parse(k.String()) equals k.
	String() string
	// Check returns nil when every parameter obeys its rule.
	Check() error
	// Input returns the kind of the objects.
	Input() Input
	// Gram returns k for all pairs of objects, n × n, both triangles.
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

// Options controls long computations. The zero value is a useful default.
type Options struct {
	Threads  int                    // workers; 0 is GOMAXPROCS
	Progress func(fraction float64) // if not nil, called with the fraction done, by one goroutine at a time; the last call has 1
	Memory   int64                  // maximum size of the matrices in bytes; 0 selects 80 % of the memory available to the process
}

// anywhere is a size in bytes below which the available memory is not checked.
const anywhere = 1 << 26

// limit returns the number of bytes that may be allocated; ok is false if it is not known.
func (o Options) limit() (int64, bool) {
	if o.Memory != 0 {
		return o.Memory, true
	}
	free, known := host.Memory()
	return free / 10 * 8, known
}

// fits returns nil if a rows × cols matrix and a copy of it fit in memory, otherwise an error that
// matches host.ErrMemory.
func (o Options) fits(rows, cols int) error {
	need := 2 * 8 * int64(rows) * int64(cols)
	if o.Memory == 0 && need <= anywhere {
		return nil
	}
	if limit, known := o.limit(); known && need > limit {
		return fmt.Errorf("%w: the kernel values of %d × %s and their points need %d bytes, but %d are available", host.ErrMemory, rows, count.Of(cols, "object"), need, limit)
	}
	return nil
}

// Room returns an error that matches host.ErrMemory if the given count of 8-byte numbers for each
// worker does not fit in memory.
func (o Options) Room(what string, numbers float64) error {
	need := 8 * numbers * float64(o.threads())
	if need <= anywhere {
		return nil
	}
	if limit, known := o.limit(); known && need > float64(limit) {
		return fmt.Errorf("%w: %s need %.0f bytes for %s, but %d are available: shorten the objects or use fewer threads", host.ErrMemory, what, need, count.Of(o.threads(), "thread"), limit)
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
	if n == 0 || cap(gram.Data) < n*(n+2) {
		data, err := kernels.TrainingPoints(n, gram.Data)
		return host.Matrix[float64]{Rows: n, Cols: n + 2, Stride: n + 2, Data: data}, err
	}
	if err := kernels.CheckGram(n, gram.Data); err != nil {
		return host.Matrix[float64]{}, err
	}
	// The points take the place of the matrix, of which Pairs made room for them: the last row first.
	data := gram.Data[:n*(n+2)]
	for i := n - 1; i >= 0; i-- {
		row := data[i*(n+2) : (i+1)*(n+2)]
		copy(row[2:], data[i*n:(i+1)*n])
		row[0], row[1] = float64(i), row[2+i]
	}
	return host.Matrix[float64]{Rows: n, Cols: n + 2, Stride: n + 2, Data: data}, nil
}

// OtherPoints returns the points, for kernels.Precomputed, of objects that are not training
// objects: one row of n+2 numbers for each.
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

// Normalize divides k(a_i, b_j) by √(k(a_i, a_i) k(b_j, b_j)), and sets it to 0 if a factor under
// the root is 0. If a and b are the same objects, the diagonal is exactly 1 or 0.
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

// Ones returns the diagonal of a normalized kernel: 1, or 0 where the diagonal before normalization
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

// Function is a kernel defined by a user function, which must be symmetric and finite: Gram checks
// both on every pair. Parse does not accept its text.
type Function struct {
	Name string
	K    func(a, b string) float64 // must be safe for concurrent use
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
