//go:build !linux

package bench

// watchResident knows nothing here.
func watchResident() func() float64 { return func() float64 { return 0 } }
