package objects_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/backend/ref"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/internal/required"
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

// TestLearnerOnTexts checks on every device that the predictions of kernel ridge regression on
// texts agree with gonum's solution of (K + λI)α = y.
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
		if points, err := kernels.TrainingPoints(n, slices.Clone(gram.Data)); err != nil || !slices.Equal(train.Data, points) {
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
				// The condition number of K + λI is at most about n/λ, because the norm of K is at most n.
				tol := 10 * float64(n) * 0x1p-53 * float64(n) / lambda * mat.Max(length)
				if a, b := got.At(i, 0), want.At(i, 0); math.Abs(a-b) > tol {
					t.Errorf("%s, %s: %q is predicted as %v, want %v", device, k, others[i], a, b)
				}
			}
		}
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
		reparsed, err := objects.Parse(k.String())
		if err != nil || reparsed != k || !objects.IsObjectKernel(d.Example) {
			t.Errorf("%q: its text %q is read as %v, %v", d.Example, k, reparsed, err)
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
		reparsed, err := objects.Parse(k.String())
		if err != nil || reparsed != k || !objects.IsObjectKernel(text) {
			t.Errorf("%q is read as %v, that as %v: %v", text, k, reparsed, err)
		}
	})
}

// TestGramBeyondMemoryIsRefused checks that a Gram matrix that does not fit in memory is refused before any value
// is computed.
func TestGramBeyondMemoryIsRefused(t *testing.T) {
	ctx := context.Background()
	size := 1 << 20 // the points would take 17 TB
	if required.FewCases() {
		size /= 2
	}
	copies := make([]string, size)
	for i := range copies {
		copies[i] = "word"
	}
	for _, text := range []string{"subsequence(length=2,decay=0.5)", "spectrum(length=2)", "spectrum(length=2)+spectrum(length=1)"} {
		k, err := objects.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		limit := int64(2 * 8 * len(words) * len(words))
		if _, err := k.Gram(ctx, words, objects.Options{Memory: limit}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		for _, o := range []objects.Options{{Memory: limit - 1}, {Memory: 1 << 30}, {}} {
			list := words
			if o.Memory != limit-1 {
				list = copies
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
