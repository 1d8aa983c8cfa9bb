package objects_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/backend/ref"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/objects"
	_ "github.com/mercer-go/mercer/kernels/strings"
	_ "github.com/mercer-go/mercer/kernels/trees"
	"github.com/mercer-go/mercer/learners"
)

var (
	words  = []string{"kernel", "colonel", "journal", "external", "corner", "tunnel", "channel", "panel"}
	others = []string{"funnel", "eternal", "xyz"}
	length = func() *mat.Dense {
		y := mat.NewDense(len(words), 1, nil)
		for i, w := range words {
			y.Set(i, 0, float64(len(w)))
		}
		return y
	}()
)

func dense(h backend.Host[float64]) *mat.Dense { return mat.NewDense(h.Rows, h.Cols, h.Data) }

// TestLearnerOnTexts: through the kernel of texts, a learner for vectors predicts on every
// device what gonum's solution of (K + λI)α = y predicts.
func TestLearnerOnTexts(t *testing.T) {
	ctx := context.Background()
	const lambda = 0.25
	for _, text := range []string{"subsequence(length=2,decay=0.5)", "spectrum(length=2)"} {
		k, err := objects.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		train, err := objects.TrainingPoints(ctx, k, words, objects.Options{})
		if err != nil {
			t.Fatal(err)
		}
		test, err := objects.OtherPoints(ctx, k, others, words, objects.Options{})
		if err != nil {
			t.Fatal(err)
		}
		n := len(words)
		gram, err := k.Gram(ctx, words, objects.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if same, err := kernels.TrainingPoints(n, slices.Clone(gram.Data)); err != nil || !slices.Equal(train.Data, same) {
			t.Errorf("%s: the points that take the memory of the matrix are not those of the matrix, %v", text, err)
		}
		cross, err := k.Cross(ctx, others, words, objects.Options{})
		if err != nil {
			t.Fatal(err)
		}
		system := dense(gram)
		for i := range n {
			system.Set(i, i, system.At(i, i)+lambda)
		}
		var alpha, want mat.Dense
		if err := alpha.Solve(system, length); err != nil {
			t.Fatal(err)
		}
		want.Mul(dense(cross), &alpha)
		for _, device := range []string{"ref", "cpu"} {
			dev := backendtest.Device(t, device, backend.Config{})
			model, err := learners.KernelRidge{Kernel: kernels.Precomputed{}, Lambda: lambda, NoIntercept: true}.Fit(ctx, dev, dense(train), length, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := model.Predict(ctx, dev, dense(test))
			if err != nil {
				t.Fatal(err)
			}
			for i := range others {
				// ‖K‖ ≤ n and λ give a condition of n/λ; the error of each solution is a
				// small multiple of n units times that condition.
				tol := 10 * float64(n) * 0x1p-53 * float64(n) / lambda * mat.Max(length)
				if a, b := got.At(i, 0), want.At(i, 0); math.Abs(a-b) > tol {
					t.Errorf("%s, %s: %q is predicted as %v, want %v", device, k, others[i], a, b)
				}
			}
		}
	}
}

// TestFunction: a user function is a kernel if it is symmetric and finite.
func TestFunction(t *testing.T) {
	ctx := context.Background()
	same := objects.Function{Name: "first letters", K: func(a, b string) float64 {
		if a[0] == b[0] {
			return 1
		}
		return 0
	}}
	gram, err := same.Gram(ctx, words, objects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if gram.Row(0)[1] != 0 || gram.Row(1)[4] != 1 || gram.Row(4)[1] != 1 {
		t.Errorf("the values are %v", gram.Data)
	}
	diag, err := same.Diag(ctx, words, objects.Options{})
	if err != nil || diag[7] != 1 {
		t.Errorf("the diagonal is %v, %v", diag, err)
	}
	for want, f := range map[string]func(a, b string) float64{
		"not symmetric": func(a, b string) float64 { return float64(len(a)) },
		"is NaN":        func(a, b string) float64 { return math.NaN() },
		"K is nil":      nil,
	} {
		if _, err := (objects.Function{K: f}).Gram(ctx, words, objects.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestNormalize(t *testing.T) {
	k := backend.Host[float64]{Rows: 3, Cols: 3, Stride: 3, Data: []float64{4, 6, 0, 6, 16, 0, 0, 0, 0}}
	d := []float64{4, 16, 0}
	objects.Normalize(k, d, d)
	for i, want := range []float64{1, 0.75, 0, 0.75, 1, 0, 0, 0, 0} {
		if k.Data[i] != want {
			t.Errorf("value %d is %v, want %v", i, k.Data[i], want)
		}
	}
}

// TestPairs: every pair is evaluated once, the work stops when its context is done, and
// progress ends with 1 for any number of workers.
func TestPairs(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		rows, cols int
		lower      bool
		pairs      int64
	}{{7, 5, false, 35}, {200, 200, true, 20100}, {3, 300, false, 900}, {0, 5, false, 0}, {5, 0, false, 0}} {
		for _, threads := range []int{0, 1, 7} {
			var asked atomic.Int64
			last := -1.0
			o := objects.Options{Threads: threads, Progress: func(f float64) {
				if f <= last {
					t.Errorf("%+v: progress %v after %v", c, f, last)
				}
				last = f
			}}
			h, err := objects.Pairs(ctx, c.rows, c.cols, c.lower, o, func(objects.Stop) func(i, lo, hi int, out []float64) {
				return func(i, lo, hi int, out []float64) {
					for j := lo; j < hi; j++ {
						asked.Add(1)
						out[j-lo] = float64(1000*i + j)
					}
				}
			})
			if err != nil || asked.Load() != c.pairs || last != 1 {
				t.Fatalf("%+v: %d pairs, progress %v, error %v", c, asked.Load(), last, err)
			}
			for i := range h.Rows {
				for j, v := range h.Row(i) {
					a, b := i, j
					if c.lower {
						a, b = max(i, j), min(i, j)
					}
					if v != float64(1000*a+b) {
						t.Fatalf("%+v: (%d, %d) is %v", c, i, j, v)
					}
				}
			}
		}
	}
	stopped, cancel := context.WithCancelCause(ctx)
	reason := errors.New("enough")
	_, err := objects.Pairs(stopped, 100, 100, false, objects.Options{Threads: 2}, func(stop objects.Stop) func(i, lo, hi int, out []float64) {
		return func(i, lo, hi int, out []float64) {
			cancel(reason)
			for !stop(0) {
			}
		}
	})
	if !errors.Is(err, reason) {
		t.Errorf("got %v", err)
	}
	if _, err := objects.Each(ctx, 1, objects.Options{Threads: -1}, nil); err == nil || err.Error() != "objects: threads must be ≥ 0, got -1" {
		t.Errorf("got %v", err)
	}
}

func TestCatalogue(t *testing.T) {
	var names []string
	for _, d := range objects.Catalogue() {
		names = append(names, d.Name)
		k, err := objects.Parse(d.Example)
		if err != nil {
			t.Errorf("%s: %v", d.Name, err)
			continue
		}
		again, err := objects.Parse(k.String())
		if err != nil || again != k || !objects.IsObjectKernel(d.Example) {
			t.Errorf("%q: its text %q is read as %v, %v", d.Example, k, again, err)
		}
		if d.Formula == "" || d.Source == "" {
			t.Errorf("%s has no formula or no source", d.Name)
		}
	}
	if got := strings.Join(names, " "); got != "spectrum subsequence subtree" {
		t.Errorf("the catalogue has %s", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a name is registered twice")
		}
	}()
	objects.Register(kernels.Description{Name: "subtree"}, nil)
}

func FuzzParse(f *testing.F) {
	for _, d := range objects.Catalogue() {
		f.Add(d.Example)
	}
	f.Add("spectrum(length=3,normalized=0)")
	f.Fuzz(func(t *testing.T, text string) {
		k, err := objects.Parse(text)
		if err != nil {
			return
		}
		again, err := objects.Parse(k.String())
		if err != nil || again != k || !objects.IsObjectKernel(text) {
			t.Errorf("%q is read as %v, that as %v: %v", text, k, again, err)
		}
	})
}

// TestGramBeyondMemoryIsRefused: a Gram matrix that does not fit in memory is refused
// before any value is computed, and the error says what fits. A million texts are never
// attempted.
func TestGramBeyondMemoryIsRefused(t *testing.T) {
	ctx := context.Background()
	many := make([]string, 1<<20)
	for i := range many {
		many[i] = "word"
	}
	for _, text := range []string{"subsequence(length=2,decay=0.5)", "spectrum(length=2)", "spectrum(length=2)+spectrum(length=1)"} {
		k, err := objects.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		room := int64(2 * 8 * len(words) * len(words))
		if _, err := k.Gram(ctx, words, objects.Options{Memory: room}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		for _, o := range []objects.Options{{Memory: room - 1}, {Memory: 1 << 30}, {}} {
			list := words
			if o.Memory != room-1 {
				list = many // 17 TB
			}
			want := fmt.Sprintf("need %d bytes", 16*int64(len(list))*int64(len(list)))
			if _, err := k.Gram(ctx, list, o); !errors.Is(err, backend.ErrMemory) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s of %d, memory %d: %v", text, len(list), o.Memory, err)
			}
		}
		if _, err := k.Cross(ctx, words, others, objects.Options{Memory: 1}); !errors.Is(err, backend.ErrMemory) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
