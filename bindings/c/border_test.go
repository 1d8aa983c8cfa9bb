//go:build cgo

package main

import (
	"errors"
	"testing"

	"github.com/mercer-go/mercer/bindings/c/internal/handles"
)

// TestGuard checks the status that guard returns for errors and for panics.
func TestGuard(t *testing.T) {
	for _, test := range []struct {
		f    func() error
		want handles.Status
	}{
		{func() error { return nil }, handles.OK},
		{func() error { return errors.New("a fault") }, handles.Invalid},
		{func() error { panic("a defect") }, handles.Panic},
		{func() error { var empty []int; _ = empty[len(empty)]; return nil }, handles.Panic},
		{func() error { var model *handles.Model; return model.Free() }, handles.Panic},
	} {
		if got := handles.Status(guard(test.f)); got != test.want {
			t.Errorf("status %d, want %d", got, test.want)
		}
	}
}
