//go:build !unix

package main

import "io"

// isClosed cannot be determined on this system: a write to a closed standard output fails.
func isClosed(io.Writer) bool { return false }
