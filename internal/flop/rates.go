package flop

// Rates are the speeds of a device. Single, Reduced and Values are relative to the speed of the
// same work in float64. Package solvers estimates the time of its methods from the other fields. If
// a field after Products is unknown, all fields after Products are 0.
type Rates struct {
	Single  float64 // speed of large products in float32
	Reduced float64 // speed of PotrfPackedReduced in float32; 0 if not supported
	Values  float64 // speed of kernel evaluations in float32

	Products float64 // speed of a large product in float64, in operations per second
	Bytes    float64 // memory bandwidth of the device, in bytes per second
	Pairs    float64 // speed of kernel evaluations in float64, in instructions per second
	Step     float64 // seconds of a short operation that must wait for the result of the previous operation
	Solve    float64 // seconds per row of a triangular solve with a small number of columns, in addition to the time to read the triangle
	// ReducedSolve has the meaning of Solve, for triangles from PotrfPackedReduced; 0 means Solve.
	ReducedSolve float64
}

// Rated is an optional ability of a backend.Device. Package solvers chooses its methods by the rates.
type Rated interface{ Rates() Rates }
