// Package backend defines what a processor must be able to do for Mercer, and
// chooses one.
//
// A Driver makes Devices; a Device is one processor with its memory: a CPU at
// one instruction-set level, or one GPU. A Device offers a Backend in each
// precision: matrices in its memory and a queue of work on them. Solvers are
// written once, against these interfaces.
//
//	import _ "github.com/mercer-go/mercer/cpu" // registers the driver "cpu"
//
//	dev, err := backend.Open("", backend.Config{}) // the best device there is
//	b := dev.F64()
//	x, err := b.New(n, d)
//	err = b.Upload(x, backend.Host[float64]{Rows: n, Cols: d, Stride: d, Data: data})
//	b.Gram(k, kernel, x, x)
//	b.AddDiag([]float64{lambda}, k)
//	err = b.Potrf(backend.Lower, k)
//
// Misuse of this interface (shapes that do not fit, a matrix of another
// device) is the caller's bug and panics with a text made in package check. Faults
// of the data or of the world are errors, listed in errors.go.
//
// Some abilities are optional and found by assertion: Wrapper, Exponential, Searcher,
// PackedBackend, Expander, SparseBackend. PlaceSparse works with every backend.
//
// Package backend/ref is a whole backend in plain loops: the specification in
// executable form. Package backend/backendtest is the suite every backend
// passes.
package backend
