package solvers

import "fmt"

// Operator is how an iterative method keeps K.
type Operator string

const (
	OperatorAuto Operator = ""        // the fastest that fits and is precise enough
	Stored64     Operator = "float64" // stored, in half storage where the backend has it
	Stored32     Operator = "float32" // the same in float32, inside refinement in float64
	Unstored64   Operator = "never64" // evaluated anew for every product
	Unstored32   Operator = "never32" // the same in float32, inside refinement in float64
)

func (o Operator) check() error {
	switch o {
	case OperatorAuto, Stored64, Stored32, Unstored64, Unstored32:
		return nil
	}
	return fmt.Errorf("solvers: no operator is called %q: there are %q, %q, %q and %q", o, Stored64, Stored32, Unstored64, Unstored32)
}
