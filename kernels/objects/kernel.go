package objects

import (
	"context"

	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/kernels"
)

// Kernel is a function k(a, b) of objects that are given as text.
//
// The methods that take objects return within about 0.1 s after ctx is done, with an error that wraps
// context.Cause(ctx). The error for an object that cannot be parsed gives the object's number, counted from 1.
type Kernel interface {
	// String returns the text of the kernel: Parse(k.String()) equals k.
	String() string
	// Check returns nil if every parameter obeys its rule.
	Check() error
	// Input returns the kind of objects that the kernel takes.
	Input() Input
	// Gram returns the full n × n matrix of k for all pairs of objects.
	Gram(ctx context.Context, objects []string, o Options) (host.Matrix[float64], error)
	// Cross returns the matrix of k(a_i, b_j), one row for each element of a.
	Cross(ctx context.Context, a, b []string, o Options) (host.Matrix[float64], error)
	// Diag returns k(a, a) for each object a.
	Diag(ctx context.Context, objects []string, o Options) ([]float64, error)
}

// Input is a kind of object.
type Input string

const (
	Text Input = "text" // any text
	Tree Input = "tree" // a tree in brackets, such as (S (NP we) (VP sleep))
)

// Options controls long computations. The zero value is a useful default.
type Options struct {
	Threads  int                    // number of workers; 0 means GOMAXPROCS
	Progress func(fraction float64) // if not nil, receives the completed fraction, finally 1, from one goroutine at a time
	Memory   int64                  // limit of the matrices in bytes; 0 means 80 % of the memory available to the process
}

// TrainingPoints returns the n × (n+2) matrix whose rows represent the n objects as points of kernels.Precomputed.
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
	// Replace the matrix by the points in the same memory, starting with the last row. Package
	// pairwise allocates capacity for the points.
	data := gram.Data[:n*(n+2)]
	for i := n - 1; i >= 0; i-- {
		row := data[i*(n+2) : (i+1)*(n+2)]
		copy(row[2:], data[i*n:(i+1)*n])
		row[0], row[1] = float64(i), row[2+i]
	}
	return host.Matrix[float64]{Rows: n, Cols: n + 2, Stride: n + 2, Data: data}, nil
}

// OtherPoints returns points for kernels.Precomputed, of objects that are not among the n training
// objects. Each object has a row of n+2 numbers.
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
