package main

import (
	"fmt"
	"io"
)

// standardOutput writes the results, and records the error of the first failed write, which some callers ignore.
type standardOutput struct {
	io.Writer
	err error
}

func (o *standardOutput) Write(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.Writer.Write(p)
	o.err = err
	return n, err
}

// close returns the first error. Some file systems report an error only when the file is closed.
func (o *standardOutput) close() error {
	if c, ok := o.Writer.(io.Closer); ok && o.err == nil {
		o.err = c.Close()
	}
	if o.err != nil {
		return fmt.Errorf("standard output: %w", o.err)
	}
	return nil
}
