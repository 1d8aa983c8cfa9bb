package precision_test

import (
	"testing"

	"github.com/mercer-go/mercer/internal/precision"
)

func TestForceIsUndone(t *testing.T) {
	outer := precision.Force(precision.Single)
	inner := precision.Force(precision.Reduced)
	if got := precision.Forced(); got != precision.Reduced {
		t.Errorf("got %v", got)
	}
	inner()
	if got := precision.Forced(); got != precision.Single {
		t.Errorf("got %v after one is undone", got)
	}
	outer()
	if got := precision.Forced(); got != precision.Auto {
		t.Errorf("got %v after both are undone", got)
	}
}
