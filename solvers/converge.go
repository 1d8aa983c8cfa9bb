package solvers

import (
	"fmt"

	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/message"
)

// ConvergenceError says that a Solve did not reach the residual that was asked
// for. Result is the best solution that it found, complete but for that.
type ConvergenceError struct {
	Method   Method
	Residual float64 // relative, of Result
	Tol      float64 // what was asked for
	// Attainable is a bound of the residual that is left when the exact solution
	// is rounded to float64; 0 where there is none.
	Attainable float64
	Iters      int
	Reason     string // what ended the attempts
	Result     *Result

	mayBeIndefinite bool // K
}

func (e *ConvergenceError) Error() string { return e.Message(message.Plain) }

// Message is the text with a front end's names of parameters.
func (e *ConvergenceError) Message(name func(parameter string) string) string {
	after := ""
	if e.Iters > 0 {
		after = fmt.Sprintf(" after %s", count.Of(e.Iters, "iteration"))
	}
	advice := "raise {lambda} or {tol}"
	if e.Attainable > e.Tol {
		advice = fmt.Sprintf("the exact solution rounded to float64 may have one of up to %.2g: raise {lambda} or {tol}", e.Attainable)
	}
	if !(e.Residual < 1) && e.Attainable > 1 {
		advice = "no digit is left beside values of the kernel that large: raise {lambda}, scale the features down or take another kernel"
	}
	if e.mayBeIndefinite {
		advice = "take a positive definite kernel; if this one is for these samples, " + advice
	}
	return fmt.Sprintf("solvers: %s: the relative residual is %.2g%s, %.2g was asked for: %s: %s",
		e.Method, e.Residual, after, e.Tol, e.Reason, message.Expand(advice, name))
}
