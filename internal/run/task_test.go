package run

import (
	"context"
	"errors"
	"testing"
)

// TestDetached checks the result, the panic and the early return of Detached.
func TestDetached(t *testing.T) {
	for _, want := range []bool{true, false} {
		if got, err := Detached(t.Context(), func() bool { return want }); got != want || err != nil {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
	}
	func() {
		defer func() {
			if v := recover(); v != "bad lda" {
				t.Errorf("recovered %v", v)
			}
		}()
		_, _ = Detached(t.Context(), func() bool { panic("bad lda") })
		t.Error("no panic arrived")
	}()
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan bool)
	defer close(release)
	cancel()
	if _, err := Detached(ctx, func() bool { return <-release }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
