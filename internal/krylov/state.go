package krylov

import (
	"strconv"

	"github.com/mercer-go/mercer/backend"
)

// State holds the state of an interrupted solve, from which another solve resumes.
type State struct {
	From, Iter, Since   int // first column of the block, its number of iterations, and its number of iterations without progress
	Lowest, Truth, Kept Number
	Goal                []float64
	// RHS holds the right-hand sides of all blocks, and the solutions in the columns before From.
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
