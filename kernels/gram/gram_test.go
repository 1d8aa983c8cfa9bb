package gram_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/backend/ref"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/gram"
)

const seed, u = 31, 0x1p-53

func host(rows ...[]float64) backend.Host[float64] {
	h := backend.NewHost[float64](len(rows), len(rows[0]))
	for i, r := range rows {
		copy(h.Row(i), r)
	}
	return h
}

func normals(t *testing.T, n, d int) backend.Host[float64] {
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, uint64(d)))
	h := backend.NewHost[float64](n, d)
	for i := range h.Data {
		h.Data[i] = r.NormFloat64()
	}
	return h
}

func checkNear(t *testing.T, name string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol) {
		t.Errorf("%s is %v, want %v within %g", name, got, want, tol)
	}
}

// TestWorkedCubicMap checks the Gram matrix K of φ(x) = (1, x, x², x³) at −1, 0, 1, whose eigenvalues are the roots
// of (λ−4)(λ²−5λ+2).
func TestWorkedCubicMap(t *testing.T) {
	ctx := context.Background()
	phi := host([]float64{1, -1, 1, -1}, []float64{1, 0, 0, 0}, []float64{1, 1, 1, 1})
	want := host([]float64{4, 1, 0}, []float64{1, 1, 1}, []float64{0, 1, 4})
	for _, name := range []string{"ref", "cpu"} {
		dev := backendtest.Device(t, name, backend.Config{})
		k, err := backend.GramMatrix(ctx, dev, kernels.Linear{}, phi)
		if err != nil {
			t.Fatal(err)
		}
		cross, err := backend.CrossGramMatrix(ctx, dev, kernels.Linear{}, phi, host([]float64{1, 2, 4, 8}))
		if err != nil {
			t.Fatal(err)
		}
		for i := range k.Data {
			if k.Data[i] != want.Data[i] {
				t.Errorf("%s: K is %v", name, k.Data)
			}
		}
		for i, v := range []float64{-5, 1, 15} {
			if cross.Data[i] != v {
				t.Errorf("%s: k(%d, 2) is %v, want %v", name, i, cross.Data[i], v)
			}
		}
		if inUse, _ := dev.InUse(); inUse != 0 {
			t.Errorf("%s: %d bytes are still in use", name, inUse)
		}
	}
	e, err := gram.Decompose(ctx, want)
	if err != nil {
		t.Fatal(err)
	}
	root := math.Sqrt(17)
	for i, v := range []float64{(5 + root) / 2, 4, (5 - root) / 2} {
		checkNear(t, "an eigenvalue", e.Values[i], v, e.Tolerance)
	}
	if e.Negative() != 0 || e.Rank() != 3 {
		t.Errorf("%d negative eigenvalues, rank %d", e.Negative(), e.Rank())
	}
	// The squared distance is 2² + 2² = 8 between φ(−1) and φ(1), and 3 between φ(0) and φ(±1).
	d, err := gram.SquaredDistances(want)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range []float64{0, 3, 8, 3, 0, 3, 8, 3, 0} {
		if d.Data[i] != v {
			t.Errorf("d² is %v", d.Data)
		}
	}
	// The centered Gram matrix is the Gram matrix of φ(x) − mean φ, where mean φ is (1, 0, 2/3, 0).
	c, err := gram.Center(want)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range []float64{19. / 9, -2. / 9, -17. / 9, -2. / 9, 4. / 9, -2. / 9, -17. / 9, -2. / 9, 19. / 9} {
		checkNear(t, "a centered value", want.Data[i], v, 16*u)
	}
	// The centered values are the inner products of φ(2) − mean φ = (0, 2, 10/3, 8) with φ(x) − mean φ at the points x.
	points := host([]float64{-5, 1, 15})
	if err := c.Cross(points); err != nil {
		t.Fatal(err)
	}
	for i, v := range []float64{-10 + 10./9, -20. / 9, 10 + 10./9} {
		checkNear(t, "a centered value", points.Data[i], v, 64*u)
	}
}

// TestFeatures checks that the inner products of the rows of Features are the elements of K, and that Extend maps the
// points of the sample to these rows.
func TestFeatures(t *testing.T) {
	ctx := context.Background()
	dev := backendtest.Device(t, "cpu", backend.Config{})
	n := 40
	for _, c := range []struct {
		k    kernels.Kernel
		rank int
	}{
		{kernels.Polynomial{Degree: 2, C: 1}, 10}, // for three features the rank is 1 + 3 + 6
		{kernels.Cosine{Theta: 0.5}, 6},
		{kernels.Laplacian{Sigma: 1}, n},
	} {
		k, err := backend.GramMatrix(ctx, dev, c.k, normals(t, n, 3))
		if err != nil {
			t.Fatal(err)
		}
		e, err := gram.Decompose(ctx, k)
		if err != nil {
			t.Fatal(err)
		}
		f := e.Features()
		if f.Cols != c.rank {
			t.Errorf("%v: %d columns, want %d", c.k, f.Cols, c.rank)
		}
		// The features omit at most n eigenvalues, each at most e.Tolerance.
		tol := float64(n) * e.Tolerance
		for i := range n {
			for j := range n {
				sum := 0.0
				for p, v := range f.Row(i) {
					sum += v * f.Row(j)[p]
				}
				checkNear(t, "an inner product", sum, k.Row(i)[j], tol)
			}
		}
		extended, err := e.Extend(k)
		if err != nil {
			t.Fatal(err)
		}
		// Extend divides the error tol of the kernel values by the root of an eigenvalue.
		for i := range extended.Data {
			checkNear(t, "an extended value", extended.Data[i], f.Data[i], tol/math.Sqrt(e.Values[e.Rank()-1]))
		}
	}
}

func TestNotPSD(t *testing.T) {
	ctx := context.Background()
	k := host([]float64{1, 2}, []float64{2, 1}) // eigenvalues 3 and −1
	e, err := gram.Decompose(ctx, k)
	if err != nil || e.Negative() != 1 {
		t.Fatalf("%+v, %v", e, err)
	}
	checkNear(t, "the smallest", e.Values[1], -1, e.Tolerance)
	if e.Tolerance = 1.5; e.Negative() != 0 {
		t.Errorf("with a tolerance of 1.5: %+v", e)
	}
	asymmetric := host([]float64{1, 2}, []float64{3, 1})
	for _, f := range []func() error{
		func() error { _, err := gram.Decompose(ctx, asymmetric); return err },
		func() error { _, err := gram.SquaredDistances(asymmetric); return err },
		func() error { _, err := gram.Center(asymmetric); return err },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), "not symmetric: row 2, column 1 has 3") {
			t.Errorf("got %v", err)
		}
	}
	if _, err := gram.Decompose(ctx, host([]float64{1, 2})); err == nil || err.Error() != "gram: decompose: a Gram matrix must be square and not empty, got 1×2" {
		t.Errorf("got %v", err)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := gram.Decompose(canceled, k); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := (gram.Centering{}).Cross(k); err == nil {
		t.Error("centering without means is accepted")
	}
}

func TestErrors(t *testing.T) {
	dev := backendtest.Device(t, "ref", backend.Config{})
	ctx := context.Background()
	x := host([]float64{1, -2})
	for want, f := range map[string]func() error{
		"backend: gram: x: row 1: kernels: chi2: feature 2 is -2: features must be finite numbers ≥ 0": func() error {
			_, err := backend.GramMatrix(ctx, dev, kernels.ChiSquared{Gamma: 1}, x)
			return err
		},
		"backend: gram: x has 2 columns, but z has 1": func() error {
			_, err := backend.CrossGramMatrix(ctx, dev, kernels.Linear{}, x, host([]float64{1}))
			return err
		},
		"backend: gram: the kernel is nil": func() error {
			_, err := backend.GramMatrix(ctx, dev, nil, x)
			return err
		},
		"kernels: gaussian: sigma must be a finite number > 0, got 0": func() error {
			_, err := backend.GramMatrix(ctx, dev, kernels.Gaussian{}, x)
			return err
		},
	} {
		if err := f(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestGonumMatrices checks that matrices of gonum's types are accepted, and that no function
// except Center changes them.
func TestGonumMatrices(t *testing.T) {
	ctx := context.Background()
	sym := mat.NewSymDense(2, []float64{2, 1, 1, 3})
	e, err := gram.Decompose(ctx, sym)
	if err != nil {
		t.Fatal(err)
	}
	checkNear(t, "the trace", e.Values[0]+e.Values[1], 5, 2*e.Tolerance)
	dense := mat.DenseCopyOf(sym)
	dense.Set(0, 1, 1+1e-15) // the elements (i, j) and (j, i) differ by a rounding error
	if _, err := gram.Decompose(ctx, dense); err != nil || dense.At(0, 1) == 1 {
		t.Errorf("the matrix was changed to %v: %v", dense.At(0, 1), err)
	}
	if d, err := gram.SquaredDistances(sym); err != nil || d.At(0, 1) != 3 {
		t.Errorf("d² is %v: %v", d, err)
	}
	c, err := gram.Center(dense)
	if err != nil || math.Abs(mat.Sum(dense)) > 16*u {
		t.Errorf("the centered sum is %v: %v", mat.Sum(dense), err)
	}
	cross := mat.NewDense(1, 2, []float64{2, 1})
	if err := c.Cross(cross); err != nil || math.Abs(mat.Sum(cross)) > 16*u {
		t.Errorf("the centered sum is %v: %v", mat.Sum(cross), err)
	}
	if _, err := gram.Center(sym); err == nil || !strings.Contains(err.Error(), "mat.DenseCopyOf") {
		t.Errorf("got %v", err)
	}
	if _, err := gram.TrainingPoints(nil); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("got %v", err)
	}
}
