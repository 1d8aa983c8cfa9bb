package pypeer

import (
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/required"
)

// open opens a library and skips the test if it is not installed.
func open(t *testing.T, library string, threads int) *Process {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: starts Python")
	}
	p, err := NewFinder(t.Context(), nil).Open(t.Context(), library, threads)
	if err != nil {
		module := library
		if library == "scikit-learn" {
			module = "sklearn"
		}
		required.SkipOrFail(t, module, err)
	}
	t.Cleanup(p.Close)
	return p
}

// TestRidge checks the solution of a small system by every installed kernel library.
func TestRidge(t *testing.T) {
	const n, d, lambda, gamma = 30, 3, 0.1, 0.25
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	x, y := make([]float64, n*d), make([]float64, n)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	for i := range y {
		y[i] = rng.NormFloat64()
	}
	for _, library := range []string{"scikit-learn", "torch", "cupy", "gpytorch"} {
		t.Run(library, func(t *testing.T) {
			p := open(t, library, 1)
			t.Log(p.Path, p.Detail)
			for _, task := range []string{"ridge", "process"} {
				if task == "process" && library != "scikit-learn" {
					continue
				}
				single, rounded := make([]float32, n*d), make([]float32, n)
				for i := range x {
					single[i] = float32(x[i])
				}
				for i := range y {
					rounded[i] = float32(y[i])
				}
				for _, unit := range []float64{0x1p-53, 0x1p-24} {
					putData := func() error {
						if unit == 0x1p-24 {
							return errors.Join(Put(p, "x", n, d, single), Put(p, "y", n, 0, rounded))
						}
						return errors.Join(Put(p, "x", n, d, x), Put(p, "y", n, 0, y))
					}
					if err := putData(); err != nil {
						t.Fatal(err)
					}
					elapsed, err := p.Run(task, map[string]any{"gamma": gamma, "sigma": math.Sqrt(0.5 / gamma), "lambda": lambda})
					if err != nil || elapsed <= 0 {
						t.Fatalf("%v, %v", elapsed, err)
					}
					alpha, err := p.Get("alpha")
					if err != nil || alpha.Rows != n || alpha.Cols != 1 {
						t.Fatalf("%d×%d, %v", alpha.Rows, alpha.Cols, err)
					}
					// An element of K has an error of at most (d + 8)u for the roundoff u = unit, plus 10u for the
					// rounding of the points. The factor is exact for a matrix within n²u of K, and ‖α‖ ≤ ‖y‖/λ.
					limit := 2 * (n + d + 8 + 10) * unit * n / lambda
					if r := residual(x, y, alpha.Data, n, d, gamma, lambda); !(r <= limit) {
						t.Errorf("%s: residual %.2g, want ≤ %.2g", task, r, limit)
					}
				}
			}
			if err := p.Clear(); err != nil {
				t.Fatal(err)
			}
			if _, err := p.Run("ridge", nil); err == nil || !strings.Contains(err.Error(), "KeyError") {
				t.Errorf("without arrays: %v", err)
			}
			if err := p.Clear(); err != nil {
				t.Errorf("a failure ended the process: %v", err)
			}
		})
	}
}

func residual(x, y, alpha []float64, n, d int, gamma, lambda float64) float64 {
	var residual, total float64
	for i := range n {
		r := lambda*alpha[i] - y[i]
		for j := range n {
			var s float64
			for k := range d {
				v := x[i*d+k] - x[j*d+k]
				s += v * v
			}
			r += math.Exp(-gamma*s) * alpha[j]
		}
		residual, total = residual+r*r, total+y[i]*y[i]
	}
	return math.Sqrt(residual / total)
}

// TestMissing checks that the error names the missing library and the interpreters that were searched.
func TestMissing(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "python3")
	_, err := NewFinder(t.Context(), []string{nowhere}).Open(t.Context(), "torch", 1)
	if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "looked in "+nowhere) {
		t.Errorf("got %v", err)
	}
}

// TestProcess checks that arrays return unchanged, and that calls after the end of the process return the reason.
func TestProcess(t *testing.T) {
	p := open(t, "scikit-learn", 1)
	for _, n := range []int{0, 1, 1 << 18} {
		want := backend.NewHost[float64](n, 2)
		for i := range want.Data {
			want.Data[i] = float64(i) / 3
		}
		if err := Put(p, "a", n, 2, want.Data); err != nil {
			t.Fatal(err)
		}
		got, err := p.Get("a")
		if err != nil || got.Rows != n || got.Cols != 2 || !slices.Equal(got.Data, want.Data) {
			t.Errorf("n = %d: %d×%d, %v", n, got.Rows, got.Cols, err)
		}
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Put(p, "x", 1, 1, []float64{1}); err == nil || !strings.Contains(err.Error(), "the process has ended") {
			t.Errorf("got %v", err)
		}
	}
	p.Close()
}
