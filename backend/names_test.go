package backend

import (
	"fmt"
	"testing"
)

// panicText returns the text with which f panics, or "" if it does not panic.
func panicText(f func()) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint(v)
		}
	}()
	f()
	return ""
}

func TestNames(t *testing.T) {
	got := fmt.Sprint(NoTrans, Transpose, Lower, Upper, Left, Right, Side(5))
	if want := "NoTrans Transpose Lower Upper Left Right invalid(5)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
