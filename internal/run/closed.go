package run

import "errors"

// ErrClosed is the error of a model or a factor that is closed or was never opened.
var ErrClosed = errors.New("is closed, or was never opened")
