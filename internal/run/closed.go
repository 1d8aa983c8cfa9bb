package run

import "errors"

// ErrClosed is that of a model or a factor whose memory Close has given back, or that
// nothing has opened.
var ErrClosed = errors.New("is closed, or was never opened")
