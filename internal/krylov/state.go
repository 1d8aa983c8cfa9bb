package krylov

import (
	"strconv"

	"github.com/mercer-go/mercer/backend"
)

// State holds what a solve needs in order to resume an earlier one that was ended.
type State struct {
	From, Iter, Since   int // the first column of the block, and its iterations
	Lowest, Truth, Kept Number
	Goal                []float64
	// RHS are the right-hand sides of all blocks; columns before From hold solutions. The numbers
	// are exact, even if they are float32 on the device.
	RHS, X, Least, R, P backend.Host[float64] `json:"-"`
}

// Number is a float64 that may be infinite, which JSON cannot represent.
type Number float64

func (v Number) MarshalText() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(v), 'x', -1, 64), nil
}

func (v *Number) UnmarshalText(text []byte) error {
	x, err := strconv.ParseFloat(string(text), 64)
	*v = Number(x)
	return err
}
