// Package backend defines the operations that Mercer needs on a processor, and chooses a processor.
//
// A Driver makes Devices; a Device is one processor with its memory: a CPU at one instruction-set level, or one
// GPU. A Device offers a Backend in each precision: matrices in its memory and a queue of work on them.
//
//	import _ "github.com/mercer-go/mercer/cpu" // registers the driver "cpu"
//
//	dev, err := backend.Open("", backend.Config{}) // the best available device
//	b := dev.F64()
//	x, err := b.New(n, d)
//	err = b.Upload(x, backend.Host[float64]{Rows: n, Cols: d, Stride: d, Data: data})
//	b.Gram(k, kernel, x, x)
//	b.AddDiag([]float64{lambda}, k)
//	err = b.Potrf(backend.Lower, k)
//
// Misuse of this interface, such as shapes that do not match or a matrix of another device, causes a panic with a
// text from package check. Faults of the data and of the environment are errors; errors.go lists them.
//
// Some abilities of a Backend are optional and are found by type assertions: Wrapper, Exponential, Searcher,
// PackedBackend, Expander, SparseBackend. PlaceSparse works with every backend.
//
// Package backend/ref is a complete backend in plain loops: the specification in executable form.
// Package backend/backendtest is the test suite that every backend must pass.
package backend
