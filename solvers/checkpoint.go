package solvers

import "time"

// Checkpoint says where and how often an iterative Solve saves its state, so
// that a Solve of the same problem with the same params goes on from there.
type Checkpoint struct {
	Dir   string        // "": none is written or read
	Every time.Duration // between two; 0 is 30 seconds
}
