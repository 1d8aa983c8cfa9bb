// Package precision lets tests set the precision of the factor in the methods "mixed" and "outofcore".
package precision

import "sync/atomic"

// Precision is the precision of the matrix factor that a solver computes.
type Precision int32

const (
	Auto    Precision = iota // the precision that takes the least time
	Single                   // float32, also for products
	Reduced                  // float32, with products in the reduced precision of the device: FP16 or 16-bit integers
)

var forced atomic.Int32

// Force sets the precision of every plan to p until the returned function is called.
func Force(p Precision) (restore func()) {
	previous := forced.Swap(int32(p))
	return func() { forced.Store(previous) }
}

// Forced returns the precision that a test has set, or Auto.
func Forced() Precision { return Precision(forced.Load()) }
