//go:build cgo

package main

import (
	"errors"
	"testing"

	"github.com/mercer-go/mercer/libmercer/internal/held"
)

// TestGuard: errors and panics become a status; neither passes.
func TestGuard(t *testing.T) {
	for _, test := range []struct {
		f    func() error
		want held.Status
	}{
		{func() error { return nil }, held.OK},
		{func() error { return errors.New("a fault") }, held.Invalid},
		{func() error { panic("a defect") }, held.Panic},
		{func() error { var none []int; _ = none[len(none)]; return nil }, held.Panic},
		{func() error { var none *held.Model; return none.Free() }, held.Panic},
	} {
		if got := held.Status(guard(test.f)); got != test.want {
			t.Errorf("status %d, want %d", got, test.want)
		}
	}
}
