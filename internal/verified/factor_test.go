package verified

import (
	"context"
	"errors"
	"testing"
)

// TestFactorIsCanceled checks that factor and minEigenvalue return the cause of a canceled context.
func TestFactorIsCanceled(t *testing.T) {
	cause := errors.New("no time")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	a := newLower(2)
	a.rows[0][0], a.rows[1][1] = 1, 1
	if ok, err := a.factor(ctx); ok || err != cause {
		t.Errorf("factor: %v, %v", ok, err)
	}
	if v, err := minEigenvalue(ctx, [][]Ball{{Exact(1), {}}, {{}, Exact(1)}}); v != 0 || err != cause {
		t.Errorf("minEigenvalue: %v, %v", v, err)
	}
}
