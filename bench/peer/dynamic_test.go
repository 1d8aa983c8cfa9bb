//go:build linux && (amd64 || arm64) && !static

package peer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMissing looks for libraries where there are none.
func TestMissing(t *testing.T) {
	place := t.TempDir()
	if _, err := open("nothing", []string{"libnothing.so.0", "libnothing.so"}, []string{place}); !errors.Is(err, ErrMissing) ||
		!strings.Contains(err.Error(), "libnothing.so.0, libnothing.so; looked in "+place) {
		t.Errorf("got %v", err)
	}
	// A file of that name which is no library is an error of its own.
	file := filepath.Join(place, "libnothing.so")
	if err := os.WriteFile(file, []byte("text"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, where := range []string{place, file} {
		if _, err := open("nothing", []string{"libnothing.so.0", "libnothing.so"}, []string{where}); err == nil || errors.Is(err, ErrMissing) {
			t.Errorf("%s: got %v", where, err)
		}
	}
}

func TestBetterCore(t *testing.T) {
	for _, test := range []struct {
		core         string
		avx512, avx2 bool
		want         string
	}{
		{"Cooperlake", true, true, ""},
		{"SkylakeX", true, true, ""},
		{"Haswell", true, true, "SkylakeX"},
		{"Zen", true, true, "SkylakeX"},
		{"Prescott", true, true, "SkylakeX"},
		{"Zen", false, true, ""},
		{"Haswell", false, true, ""},
		{"Prescott", false, true, "Haswell"},
		{"Nehalem", false, false, ""},
	} {
		if got := betterCore(test.core, test.avx512, test.avx2); got != test.want {
			t.Errorf("%+v: got %q", test, got)
		}
	}
}
