//go:build linux && (amd64 || arm64) && !static

package peer

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/internal/required"
)

// TestMissing checks the errors for libraries that are missing or cannot be opened.
func TestMissing(t *testing.T) {
	folder := t.TempDir()
	if _, err := open("nothing", []string{"libnothing.so.0", "libnothing.so"}, []string{folder}); !errors.Is(err, ErrMissing) ||
		!strings.Contains(err.Error(), "libnothing.so.0, libnothing.so; looked in "+folder) {
		t.Errorf("got %v", err)
	}
	// If the file with the library's name is not a library, the error is not ErrMissing.
	file := filepath.Join(folder, "libnothing.so")
	if err := os.WriteFile(file, []byte("text"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, location := range []string{folder, file} {
		if _, err := open("nothing", []string{"libnothing.so.0", "libnothing.so"}, []string{location}); err == nil || errors.Is(err, ErrMissing) {
			t.Errorf("%s: got %v", location, err)
		}
	}
}

// TestReload reloads OpenBLAS with another core type, checks a result, and changes the core type back.
func TestReload(t *testing.T) {
	const reloadEnv = "MERCER_TEST_RELOAD"
	if os.Getenv(reloadEnv) == "" {
		c := exec.Command(os.Args[0], "-test.run=^TestReload$", "-test.v")
		c.Env = append(os.Environ(), reloadEnv+"=yes")
		out, err := c.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(out), "--- SKIP") {
			required.SkipOrFail(t, "openblas", ErrMissing)
		}
		return
	}
	l, err := open("openblas", []string{"libopenblas.so.0", "libopenblas.so"}, nil)
	if errors.Is(err, ErrMissing) {
		required.SkipOrFail(t, "openblas", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var core func() string
	symbols := map[string]any{"openblas_get_corename": &core}
	if err := l.bind(symbols); err != nil {
		t.Fatal(err)
	}
	detected := core()
	for _, want := range []string{"Prescott", detected} {
		if l, err = l.reload(envCore, want); err != nil {
			t.Fatal(err)
		}
		if err := l.bind(symbols); err != nil {
			t.Fatal(err)
		}
		if got := core(); got != want && want != detected && runtime.GOARCH == "amd64" {
			t.Errorf("the core type is %s, want %s", got, want)
		}
		r, err := fortran[float64](l, "d")
		if err != nil {
			t.Fatal(err)
		}
		check(t, r, 0x1p-53)
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
