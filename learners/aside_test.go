package learners

import (
	"context"
	"errors"
	"testing"
)

// TestAside: what runs aside answers, panics where its caller can recover, and is
// left behind when the context is done.
func TestAside(t *testing.T) {
	for _, want := range []bool{true, false} {
		if got, err := aside(t.Context(), func() bool { return want }); got != want || err != nil {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
	}
	func() {
		defer func() {
			if v := recover(); v != "bad lda" {
				t.Errorf("recovered %v", v)
			}
		}()
		_, _ = aside(t.Context(), func() bool { panic("bad lda") })
		t.Error("no panic arrived")
	}()
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan bool)
	defer close(release)
	cancel()
	if _, err := aside(ctx, func() bool { return <-release }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
