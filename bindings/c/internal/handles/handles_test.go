package handles

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	_ "github.com/mercer-go/mercer/backend/ref"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/learnertest"
	"github.com/mercer-go/mercer/solvers"
)

func open(t *testing.T, name string) *Device {
	t.Helper()
	d, err := Open(name, 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Free() })
	return d
}

// samples returns n points of d numbers and a smooth function of them.
func samples(t *testing.T, n, d int) (x, y backend.Host[float64]) {
	t.Helper()
	const seed = 7
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	x, y = backend.NewHost[float64](n, d), backend.NewHost[float64](n, 1)
	for i := range n {
		for j := range d {
			x.Row(i)[j] = r.NormFloat64()
			y.Row(i)[0] += math.Sin(float64(j+1) * x.Row(i)[j])
		}
	}
	return x, y
}

func gramOf(k kernels.Kernel, x, z backend.Host[float64]) backend.Host[float64] {
	g := backend.NewHost[float64](x.Rows, z.Rows)
	for i := range x.Rows {
		for j := range z.Rows {
			g.Row(i)[j] = kernels.Eval(k, x.Row(i), z.Row(j))
		}
	}
	return g
}

func float64s(h backend.Host[float64]) Matrix { return Matrix{F64: h} }

// TestFactor checks the solutions and the residuals of a factor on every device, for a kernel and for a given K.
func TestFactor(t *testing.T) {
	const n, outputs, lambda = 70, 3, 0.5
	ctx := context.Background()
	x, _ := samples(t, n, 4)
	k := kernels.Gaussian{Sigma: 2}
	g := gramOf(k, x, x)
	y := backend.NewHost[float64](n, outputs)
	for i := range y.Data {
		y.Data[i] = math.Cos(float64(i))
	}
	a := denseOf(g)
	shifted := mat.DenseCopyOf(a)
	for i := range n {
		shifted.Set(i, i, shifted.At(i, i)+lambda)
	}
	// The first term is from Higham 2002, theorem 10.4. The second term allows for errors of 2⁻⁴⁰ in kernel values.
	bound := func(alpha, y *mat.Dense) float64 {
		u := 0x1p-53
		return (n*(3*n+1)*u*(n+lambda) + n*0x1p-40) * mat.Norm(alpha, 2) / mat.Norm(y, 2)
	}
	for _, device := range []string{"ref", "cpu", "cpu/generic"} {
		d := open(t, device)
		for _, givenGram := range []bool{false, true} {
			text, points := k.String(), float64s(x)
			if givenGram {
				text, points = "", float64s(g)
			}
			f, err := NewFactor(ctx, d, text, lambda, points)
			if err != nil {
				t.Fatal(err)
			}
			alpha := make([]float64, n*outputs)
			reported, err := f.Solve(ctx, float64s(y), alpha, true)
			if err != nil {
				t.Fatal(err)
			}
			for j := range outputs {
				column := mat.NewDense(n, 1, nil)
				want := mat.NewDense(n, 1, nil)
				for i := range n {
					column.Set(i, 0, alpha[i*outputs+j])
					want.Set(i, 0, y.Row(i)[j])
				}
				var r mat.Dense
				r.Mul(shifted, column)
				r.Sub(&r, want)
				if got := mat.Norm(&r, 2) / mat.Norm(want, 2); got > bound(column, want) || reported > bound(column, want) {
					t.Errorf("%s, given %t: column %d: residual %g, reported as %g, bound %g", device, givenGram, j, got, reported, bound(column, want))
				}
			}
			checkChanged(t, f, text == "", g, x, y, alpha, bound)
			if err := f.Free(); err != nil {
				t.Error(err)
			}
			if _, err := f.Solve(ctx, float64s(y), alpha, false); !errors.Is(err, ErrFreed) {
				t.Errorf("after Free: %v", err)
			}
		}
		if inUse, _ := d.dev.InUse(); inUse != 0 {
			t.Errorf("%s: %d bytes are still in use", device, inUse)
		}
	}
}

// checkChanged removes samples from a factor, appends them again, and compares the solutions.
func checkChanged(t *testing.T, f *Factor, givenGram bool, g, x, y backend.Host[float64], alpha []float64, bound func(alpha, y *mat.Dense) float64) {
	t.Helper()
	ctx := context.Background()
	n, outputs := y.Rows, y.Cols
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	for _, out := range []int{0, n / 2, n - 1} {
		if err := f.Remove(ctx, out); err != nil {
			t.Fatal(err)
		}
		sample := order[out]
		order = append(slices.Delete(order, out, out+1), sample)
		values := x.Row(sample)
		if givenGram {
			values = make([]float64, n)
			for j, otherSample := range order {
				values[j] = g.Row(sample)[otherSample]
			}
		}
		if err := f.Append(ctx, values); err != nil {
			t.Fatal(err)
		}
	}
	targets, want := backend.NewHost[float64](n, outputs), mat.NewDense(n, outputs, nil)
	for i, sample := range order {
		copy(targets.Row(i), y.Row(sample))
		want.SetRow(i, alpha[sample*outputs:(sample+1)*outputs])
	}
	got := mat.NewDense(n, outputs, nil)
	residual, err := f.Solve(ctx, float64s(targets), got.RawMatrix().Data, true)
	if err != nil {
		t.Fatal(err)
	}
	limit := 4 * bound(want, denseOf(targets))
	if residual > limit {
		t.Errorf("given %t: residual %g after changes, bound %g", givenGram, residual, limit)
	}
	var d mat.Dense
	d.Sub(got, want)
	// The bound follows from ‖α − α′‖ ≤ ‖(K + λI)⁻¹‖‖r − r′‖ for the residuals r, r′ of the solutions, with λ = ½.
	if distance := mat.Norm(&d, 2); distance > 2*2*limit*mat.Norm(denseOf(targets), 2) {
		t.Errorf("given %t: the solution moved by %g", givenGram, distance)
	}
}

// TestDeviceStaysOpen checks that a freed device remains usable for the factors made on it.
func TestDeviceStaysOpen(t *testing.T) {
	d, err := Open("ref", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	x, y := samples(t, 5, 2)
	f, err := NewFactor(context.Background(), d, "linear()", 1, float64s(x))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Free(); err != nil {
		t.Fatal(err)
	}
	if err := d.Free(); !errors.Is(err, ErrFreed) {
		t.Errorf("second Free: %v", err)
	}
	if _, err := f.Solve(context.Background(), float64s(y), make([]float64, 5), false); err != nil {
		t.Error(err)
	}
	if _, err := NewFactor(context.Background(), d, "linear()", 1, float64s(x)); !errors.Is(err, ErrFreed) {
		t.Errorf("new factor: %v", err)
	}
	if err := f.Free(); err != nil {
		t.Error(err)
	}
}

// TestFewRows compares predictions for a small number of rows, which use a copy of the model on the device, with
// predictions for many rows. Freeing the model must release the memory of the copy.
func TestFewRows(t *testing.T) {
	ctx := context.Background()
	x, y := samples(t, 60, 3)
	for _, device := range []string{"ref", "cpu", "cpu/generic"} {
		d := open(t, device)
		for _, l := range []Learner{
			{Name: "kernel-ridge", Parameters: []string{"kernel=gaussian(sigma=1)"}},
			{Name: "ridge"}, {Name: "kernel-knn"},
		} {
			m, err := Fit(ctx, d, l, float64s(x), float64s(y), nil)
			if err != nil {
				t.Fatal(err)
			}
			oneCall, inBlocks := make([]float64, 60), make([]float64, 60)
			if err := m.Predict(ctx, d, Values, float64s(x), oneCall); err != nil {
				t.Fatal(err)
			}
			for i := 0; i < 60; i += fewRows {
				end := min(i+fewRows, 60)
				if err := m.Predict(ctx, d, Values, float64s(x.View(i, 0, end-i, 3)), inBlocks[i:end]); err != nil {
					t.Fatal(err)
				}
			}
			// The bound is for two sums of 60 products. Kernel values are exact to 2⁻⁴⁰, and ‖α‖ ≤ ‖y‖.
			bound := math.Sqrt(60) * (0x1p-40 + 60*0x1p-53) * mat.Norm(denseOf(y), 2)
			for i := range oneCall {
				if math.Abs(oneCall[i]-inBlocks[i]) > bound {
					t.Errorf("%s, %s: row %d: %g and %g differ by more than %g", device, l.Name, i+1, oneCall[i], inBlocks[i], bound)
				}
			}
			if err := m.Free(); err != nil {
				t.Error(err)
			}
			if inUse, _ := d.dev.InUse(); inUse != 0 {
				t.Errorf("%s, %s: %d bytes are still in use", device, l.Name, inUse)
			}
		}
	}
}

// TestPrecomputed compares a model of precomputed kernel values with a model of the kernel.
func TestPrecomputed(t *testing.T) {
	ctx := context.Background()
	d := open(t, "cpu")
	x, y := samples(t, 40, 3)
	z, _ := samples(t, 13, 3)
	k := kernels.Gaussian{Sigma: 1}
	const lambda = 0.1
	fit := func(parameters []string, x Matrix) *Model {
		t.Helper()
		m, err := Fit(ctx, d, Learner{Name: "kernel-ridge", Parameters: append(parameters, "lambda=0.1")}, x, float64s(y), nil)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	byKernel, byValues := fit([]string{"kernel=" + k.String()}, float64s(x)), fit([]string{"kernel=precomputed()"}, float64s(gramOf(k, x, x)))
	f, g := make([]float64, 13), make([]float64, 13)
	if err := byKernel.Predict(ctx, d, Values, float64s(z), f); err != nil {
		t.Fatal(err)
	}
	if err := byValues.Predict(ctx, d, Values, float64s(gramOf(k, z, x)), g); err != nil {
		t.Fatal(err)
	}
	// Errors of 2⁻⁴⁰ in kernel values change α by at most n·2⁻⁴⁰‖α‖/λ, where ‖α‖ ≤ ‖y‖/λ.
	norm := mat.Norm(denseOf(y), 2)
	bound := math.Sqrt(40) * (1 + 40/lambda) * 0x1p-40 * norm / lambda
	for i := range f {
		if math.Abs(f[i]-g[i]) > bound {
			t.Errorf("row %d: %g and %g differ by more than %g", i+1, f[i], g[i], bound)
		}
	}
	if err := byValues.Predict(ctx, d, Values, float64s(z), g); err == nil || !strings.Contains(err.Error(), "3 columns of kernel values, but the model was fitted to 40 objects") {
		t.Errorf("points instead of values: %v", err)
	}
	data, err := byValues.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	restored, err := FromBytes(data)
	if err != nil {
		t.Fatal(err)
	}
	h := make([]float64, 13)
	if err := restored.Predict(ctx, d, Values, float64s(gramOf(k, z, x)), h); err != nil || !slices.Equal(g, h) {
		t.Errorf("bytes change predictions, %v", err)
	}
}

// TestTableModel checks that a model fitted to a table encodes raw rows as the encoder does, and refuses texts.
func TestTableModel(t *testing.T) {
	ctx := context.Background()
	d := open(t, "ref")
	csv := "a,kind,b,y\n1,u,10,1\n2,v,30,2\n4,u,20,5\n8,v,50,7\n"
	for _, withTexts := range []bool{false, true} {
		table, err := dataset.ReadCSV("-", strings.NewReader(csv))
		if err != nil {
			t.Fatal(err)
		}
		if !withTexts {
			table, err = dataset.NewTable("-", dataset.Numbers("a", []float64{1, 2, 4, 8}), dataset.Numbers("b", []float64{10, 30, 20, 50}), dataset.Numbers("y", []float64{1, 2, 5, 7}))
			if err != nil {
				t.Fatal(err)
			}
		}
		x, y, e := learnertest.Encode(t, table, dataset.Rules{Targets: []string{"y"}, Standardize: true})
		fitted, err := learners.Ridge{Lambda: 1}.Fit(ctx, d.dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "m.safetensors")
		if err := modelfile.Save(path, modelfile.Bundle{Model: fitted, Encoder: e}); err != nil {
			t.Fatal(err)
		}
		m, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		raw := backend.Host[float64]{Rows: 2, Cols: 2, Stride: 2, Data: []float64{4, 20, math.NaN(), 50}}
		got := make([]float64, 2)
		err = m.Predict(ctx, d, Values, float64s(raw), got)
		if withTexts {
			if err == nil || !strings.Contains(err.Error(), "the table that the model was fitted to has 3") {
				t.Errorf("two of three columns: %v", err)
			}
			row := backend.Host[float64]{Rows: 1, Cols: 3, Stride: 3, Data: []float64{1, 2, 3}}
			if err := m.Predict(ctx, d, Values, float64s(row), got[:1]); err == nil || !strings.Contains(err.Error(), `column "kind" of the model has texts`) {
				t.Errorf("texts: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		original, err := dataset.NewTable("-", dataset.Numbers("a", []float64{4, math.NaN()}), dataset.Numbers("b", []float64{20, 50}))
		if err != nil {
			t.Fatal(err)
		}
		z, err := e.Features(original)
		if err != nil {
			t.Fatal(err)
		}
		want, err := fitted.Predict(ctx, d.dev, z)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want.RawMatrix().Data) {
			t.Errorf("predictions %v, want %v", got, want.RawMatrix().Data)
		}
		var decoded description
		text, err := m.Describe(nil)
		if err != nil || json.Unmarshal([]byte(text), &decoded) != nil || !decoded.Raw || !decoded.Missing || !slices.Equal(decoded.Names, []string{"a", "b"}) {
			t.Errorf("told %s, %v", text, err)
		}
	}
}

// TestSparseTableModel checks that a model fitted to a sparse table takes and scales a column for each feature.
func TestSparseTableModel(t *testing.T) {
	ctx := context.Background()
	d := open(t, "ref")
	const cols = 70
	table, err := dataset.ReadLIBSVM("-", strings.NewReader("2 3:1\n4 3:2\n6 3:3 70:1\n8 3:4\n10 3:5\n0 70:1\n"))
	if err != nil {
		t.Fatal(err)
	}
	x, y, e := learnertest.Encode(t, table, dataset.Rules{Targets: []string{"label"}, Standardize: true})
	if !e.Sparse() {
		t.Fatal("the table is encoded as a dense one")
	}
	fitted, err := learners.Ridge{Lambda: 1}.Fit(ctx, d.dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.safetensors")
	if err := modelfile.Save(path, modelfile.Bundle{Model: fitted, Encoder: e}); err != nil {
		t.Fatal(err)
	}
	m, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	raw := backend.NewHost[float64](6, cols)
	for i, row := range [][2]float64{{1, 0}, {2, 0}, {3, 1}, {4, 0}, {5, 0}, {0, 1}} {
		raw.Row(i)[2], raw.Row(i)[cols-1] = row[0], row[1]
	}
	got := make([]float64, raw.Rows)
	if err := m.Predict(ctx, d, Values, float64s(raw), got); err != nil {
		t.Fatal(err)
	}
	want, err := fitted.Predict(ctx, d.dev, x)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want.RawMatrix().Data) {
		t.Errorf("predictions %v, want %v", got, want.RawMatrix().Data)
	}
	shortRow := backend.NewHost[float64](1, cols-1)
	if err := m.Predict(ctx, d, Values, float64s(shortRow), got[:1]); err == nil || !strings.Contains(err.Error(), "x has 69 columns, but the table that the model was fitted to has 70") {
		t.Errorf("69 of 70 columns: %v", err)
	}
	var decoded description
	text, err := m.Describe(nil)
	if err != nil || json.Unmarshal([]byte(text), &decoded) != nil || decoded.Features != cols || !slices.Equal(decoded.Names, e.FeatureNames()) {
		t.Errorf("told %s, %v", text, err)
	}
}

// TestColumns checks the names in the encoder of a model that was fitted through the C interface.
func TestColumns(t *testing.T) {
	ctx := context.Background()
	d := open(t, "ref")
	x, _ := samples(t, 12, 2)
	y := backend.NewHost[float64](12, 1)
	for i := range 12 {
		y.Data[i] = float64(i % 3)
	}
	for _, test := range []struct {
		l             Learner
		names, labels []string
	}{
		{Learner{Name: "kernel-ridge"}, []string{"x1", "x2", "y"}, nil},
		{Learner{Name: "kernel-ridge", Features: []string{"a", "b"}, Targets: []string{"c"}}, []string{"a", "b", "c"}, nil},
		{Learner{Name: "kernel-ridge", Task: learners.Classification}, []string{"x1", "x2", "y"}, []string{"0", "1", "2"}},
		{Learner{Name: "svc", Classes: []string{"p", "q", "r"}}, []string{"x1", "x2", "y"}, []string{"p", "q", "r"}},
		{Learner{Name: "one-class-svm"}, []string{"x1", "x2"}, nil},
		{Learner{Name: "kernel-ridge", Features: []string{"same", "same"}}, nil, nil}, // a table cannot have two columns of the same name
	} {
		m, err := Fit(ctx, d, test.l, float64s(x), float64s(y), nil)
		if err != nil {
			t.Fatal(err)
		}
		e := m.bundle.Encoder
		if test.names == nil {
			if e != nil {
				t.Errorf("%+v: has an encoder", test.l)
			}
			continue
		}
		if !isIdentity(e) || !slices.Equal(append(e.FeatureNames(), e.TargetNames()...), test.names) || !slices.Equal(e.Classes(), test.labels) {
			t.Errorf("%+v: columns %v %v, classes %v", test.l, e.FeatureNames(), e.TargetNames(), e.Classes())
		}
		if err := m.Save(filepath.Join(t.TempDir(), "m")); err != nil {
			t.Error(err)
		}
	}
}

func TestStatus(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(ErrCanceled)
	d := open(t, "ref")
	x, y := samples(t, 4, 2)
	_, canceled := Fit(ctx, d, Learner{Name: "ridge"}, float64s(x), float64s(y), nil)
	_, unknown := Fit(context.Background(), d, Learner{Name: "abacus"}, float64s(x), float64s(y), nil)
	_, form := Fit(context.Background(), d, Learner{Name: "ridge", Parameters: []string{"lambda"}}, float64s(x), float64s(y), nil)
	_, duplicate := Fit(context.Background(), d, Learner{Name: "ridge", Parameters: []string{"lambda=1", "lambda=2"}}, float64s(x), float64s(y), nil)
	_, unavailable := Open("abacus", 0, 0)
	for _, test := range []struct {
		err  error
		want Status
	}{
		{nil, OK}, {canceled, Canceled}, {unknown, Invalid}, {form, Invalid}, {duplicate, Invalid}, {unavailable, Unavailable},
		{&solvers.BudgetError{}, Memory}, {&backend.MemoryError{}, Memory}, {&backend.PivotError{}, NotPositiveDefinite}, {&solvers.ConvergenceError{}, NotConverged},
	} {
		if got := StatusOf(test.err); got != test.want || (test.err == nil) != (test.want == OK) {
			t.Errorf("%v: status %d, want %d", test.err, got, test.want)
		}
	}
}

// TestFloats checks that a matrix of float32 gives the same results as a float64 matrix of the same values.
func TestFloats(t *testing.T) {
	input := backend.Host[float32]{Rows: 2, Cols: 2, Stride: 3, Data: []float32{1, 0.1, 9, 3, 4}}
	h, err := Matrix{F32: input}.host("x")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(h.Data, []float64{1, float64(float32(0.1)), 3, 4}) {
		t.Errorf("got %v", h.Data)
	}
}

// TestTogether checks calls of several goroutines with a model and a factor while these are freed. Each call must
// succeed with the same numbers, or return the error for a freed handle.
func TestTogether(t *testing.T) {
	ctx := context.Background()
	d, err := Open("cpu/generic", 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	x, y := samples(t, 30, 2)
	m, err := Fit(ctx, d, Learner{Name: "kernel-ridge", Parameters: []string{"kernel=gaussian(sigma=1)"}}, float64s(x), float64s(y), nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewFactor(ctx, d, "gaussian(sigma=1)", 1, float64s(x))
	if err != nil {
		t.Fatal(err)
	}
	want, solution := make([]float64, 30), make([]float64, 30)
	if err := m.Predict(ctx, d, Values, float64s(x), want); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Solve(ctx, float64s(y), solution, false); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	var freed atomic.Int32
	for range 4 {
		group.Go(func() {
			got := make([]float64, 30)
			for range 200 {
				err := m.Predict(ctx, d, Values, float64s(x), got)
				if err != nil && !errors.Is(err, ErrFreed) || err == nil && !slices.Equal(got, want) {
					t.Errorf("predict: %v", err)
				}
				_, err = f.Solve(ctx, float64s(y), got, false)
				if err != nil && !errors.Is(err, ErrFreed) || err == nil && !slices.Equal(got, solution) {
					t.Errorf("solve: %v", err)
				}
				if _, err := m.Describe(nil); err != nil && !errors.Is(err, ErrFreed) {
					t.Errorf("tell: %v", err)
				}
			}
			for _, free := range []func() error{d.Free, m.Free, f.Free} {
				if free() == nil {
					freed.Add(1)
				}
			}
		})
	}
	group.Wait()
	if freed.Load() != 3 {
		t.Errorf("%d of 3 were freed once", freed.Load())
	}
}
