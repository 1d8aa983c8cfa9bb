// Package precision lets a test choose the precision of the factor of the methods mixed and
// outofcore, which the plan chooses otherwise.
package precision

import "sync/atomic"

// Precision is that of a factor.
type Precision int32

const (
	Auto    Precision = iota // the precision that takes the least time
	Single                   // float32, also for products
	Reduced                  // products of the device's reduced precision: FP16, or integers of 16 bits
)

var forced atomic.Int32

// Force makes p the precision of every plan until the function that it returns is called.
func Force(p Precision) (restore func()) {
	before := forced.Swap(int32(p))
	return func() { forced.Store(before) }
}

// Forced is the precision that a test has chosen; Auto: none has.
func Forced() Precision { return Precision(forced.Load()) }
