package gonum_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distmv"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/backend/ref"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/gonum"
	"github.com/mercer-go/mercer/internal/check"
)

const seed = 9 // seed of all random numbers; each failure logs it

// userMatrix is a user-defined matrix type.
type userMatrix struct{ rows, cols int }

func (m userMatrix) Dims() (int, int)    { return m.rows, m.cols }
func (m userMatrix) At(i, j int) float64 { return float64(10*i + j) }
func (m userMatrix) T() mat.Matrix       { return mat.Transpose{Matrix: m} }

func TestHost(t *testing.T) {
	data := make([]float64, 24)
	for i := range data {
		data[i] = float64(i)
	}
	d := mat.NewDense(4, 6, data)
	part := d.Slice(1, 3, 2, 5)
	vector := mat.NewVecDense(24, data)
	banded := mat.NewBandDense(3, 3, 1, 1, data[:9])
	var nilDense *mat.Dense
	var missingSym *mat.SymDense
	for _, c := range []struct {
		name   string
		m      mat.Matrix
		first  int // index of element (0, 0) in data; −1 means that Host makes a copy
		stride int
		fails  string
	}{
		{name: "dense", m: d, stride: 6},
		{name: "part", m: part, first: 8, stride: 6},
		{name: "vector", m: vector, stride: 1},
		{name: "column", m: d.ColView(2), first: 2, stride: 6},
		{name: "row", m: d.RowView(1), first: 6, stride: 1},
		{name: "row, lying", m: d.RowView(1).T(), first: 6, stride: 6},
		{name: "vector, lying", m: mat.TransposeVec{Vector: vector}, stride: 24},
		{name: "column, lying", m: d.ColView(2).T(), first: -1},
		{name: "transposed", m: d.T(), first: -1},
		{name: "part transposed", m: part.T(), first: -1},
		{name: "twice transposed", m: mat.Transpose{Matrix: d.T()}, first: -1},
		{name: "symmetric", m: mat.NewSymDense(4, data[:16]), first: -1},
		{name: "triangle", m: mat.NewTriDense(4, mat.Upper, data[:16]), first: -1},
		{name: "diagonal", m: mat.NewDiagDense(5, data[:5]), first: -1},
		{name: "band", m: banded, first: -1},
		{name: "band transposed", m: banded.T(), first: -1},
		{name: "the user's", m: userMatrix{3, 5}, first: -1},
		{name: "the user's, transposed", m: userMatrix{3, 5}.T(), first: -1},
		{name: "nil", fails: "x is missing"},
		{name: "nil dense", m: nilDense, fails: "x is missing"},
		{name: "nil symmetric", m: missingSym, fails: "x is missing"},
		{name: "empty", m: &mat.Dense{}, fails: "x is empty: 0 rows, 0 columns"},
		{name: "no columns", m: userMatrix{3, 0}, fails: "x is empty: 3 rows, 0 columns"},
	} {
		h, err := gonum.Host("x", c.m)
		if c.fails != "" {
			if err == nil || err.Error() != c.fails {
				t.Errorf("%s: %v, want %s", c.name, err, c.fails)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		check.Host("test", h)
		rows, cols := c.m.Dims()
		if h.Rows != rows || h.Cols != cols {
			t.Errorf("%s: %d×%d, want %d×%d", c.name, h.Rows, h.Cols, rows, cols)
			continue
		}
		if c.first >= 0 && (&h.Data[0] != &data[c.first] || h.Stride != c.stride) {
			t.Errorf("%s: not in the matrix's memory, or with stride %d instead of %d", c.name, h.Stride, c.stride)
		}
		for i := range rows {
			for j := range cols {
				if got, want := h.Row(i)[j], c.m.At(i, j); got != want {
					t.Errorf("%s: (%d, %d) is %v, want %v", c.name, i, j, got, want)
				}
			}
		}
		dense, err := gonum.Dense(h)
		if err != nil || !mat.Equal(dense, c.m) || &dense.RawMatrix().Data[0] != &h.Data[0] {
			t.Errorf("%s: back to a dense matrix: %v", c.name, err)
		}
	}
	for _, h := range []backend.Host[float64]{{}, {Rows: 2, Cols: 3, Stride: 3, Data: data[:5]}, {Rows: 2, Cols: 3, Stride: 2, Data: data}} {
		if _, err := gonum.Dense(h); err == nil || !strings.HasPrefix(err.Error(), "gonum: Dense: ") {
			t.Errorf("%+v: %v", h, err)
		}
	}
}

// positive returns a part of a larger matrix, random and positive definite with a condition number below 10³.
func positive(r *rand.Rand, n int) *mat.SymDense {
	large := mat.NewSymDense(n+3, nil)
	for i := range n + 3 {
		for j := range i + 1 {
			large.SetSym(i, j, r.NormFloat64()/math.Sqrt(float64(n)))
		}
	}
	s := large.SliceSym(1, n+1).(*mat.SymDense)
	for i := range n {
		s.SetSym(i, i, 4+s.At(i, i)) // the random part has eigenvalues within about ±2√2
	}
	return s
}

func random(r *rand.Rand, rows, cols int) *mat.Dense {
	m := mat.NewDense(rows, cols, nil)
	for i := range rows {
		for j := range cols {
			m.Set(i, j, r.NormFloat64())
		}
	}
	return m
}

// TestCholesky compares every method with the same method of mat.Cholesky.
func TestCholesky(t *testing.T) {
	backendtest.OnDevices(t, func(t *testing.T, dev backend.Device) {
		for _, n := range []int{1, 2, 7, 40, 131} {
			t.Run(fmt.Sprint(n), func(t *testing.T) { checkCholesky(t, dev, n) })
		}
	})
}

func checkCholesky(t *testing.T, dev backend.Device, n int) {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	a := positive(r, n)
	original := mat.DenseCopyOf(a)
	c := gonum.Cholesky{Device: dev}
	var want mat.Cholesky
	if !c.Factorize(a) || !want.Factorize(a) {
		t.Fatalf("seed %d: not positive definite: %v", seed, c.Err())
	}
	defer c.Close()
	if !mat.Equal(a, original) {
		t.Error("the matrix has been changed")
	}
	// Both factorizations are backward stable: the error is about n·u times the condition number, below 10³.
	tol := float64(n+10) * 1e3 * 0x1p-53
	checkMatrix := func(name string, got, want mat.Matrix) {
		t.Helper()
		if !mat.EqualApprox(got, want, tol) {
			t.Errorf("seed %d: %s differs from mat.Cholesky's by more than %g", seed, name, tol)
		}
	}
	checkValue := func(name string, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) <= tol*math.Abs(want)+tol) {
			t.Errorf("seed %d: %s is %v, of mat.Cholesky %v", seed, name, got, want)
		}
	}
	check := func() {
		t.Helper()
		m := want.SymmetricDim()
		if c.SymmetricDim() != m || c.IsEmpty() {
			t.Fatalf("order %d, want %d", c.SymmetricDim(), m)
		}
		checkMatrix("the matrix", &c, &want)
		checkValue("LogDet", c.LogDet(), want.LogDet())
		checkValue("Cond", c.Cond(), want.Cond())
		var s1, s2 mat.SymDense
		c.ToSym(&s1)
		want.ToSym(&s2)
		checkMatrix("ToSym", &s1, &s2)
		var u1, u2, l1, l2 mat.TriDense
		c.UTo(&u1)
		want.UTo(&u2)
		c.LTo(&l1)
		want.LTo(&l2)
		checkMatrix("UTo", &u1, &u2)
		checkMatrix("LTo", &l1, &l2)
		b := random(r, m, 3)
		for _, rhs := range []mat.Matrix{b, random(r, 3, m).T()} {
			var x1, x2 mat.Dense
			if err := errors.Join(c.SolveTo(&x1, rhs), want.SolveTo(&x2, rhs)); err != nil {
				t.Fatal(err)
			}
			checkMatrix("SolveTo", &x1, &x2)
		}
		var x mat.Dense
		x.CloneFrom(b)
		column := x.Slice(0, m, 1, 2).(*mat.Dense) // a column of x, to be solved in place
		if err := c.SolveTo(column, column); err != nil {
			t.Fatal(err)
		}
		var v1, v2 mat.VecDense
		if err := errors.Join(c.SolveVecTo(&v1, b.ColView(1)), want.SolveVecTo(&v2, b.ColView(1))); err != nil {
			t.Fatal(err)
		}
		checkMatrix("SolveVecTo", &v1, &v2)
		checkMatrix("SolveTo in place", column, &v2)
		checkMatrix("its neighbors", x.ColView(2), b.ColView(2))
		var d1, d2 mat.Dense
		if err := errors.Join(c.SolveCholTo(&d1, &c), want.SolveCholTo(&d2, &want)); err != nil {
			t.Fatal(err)
		}
		checkMatrix("SolveCholTo", &d1, &d2)
		var i1, i2 mat.SymDense
		if err := errors.Join(c.InverseTo(&i1), want.InverseTo(&i2)); err != nil {
			t.Fatal(err)
		}
		checkMatrix("InverseTo", &i1, &i2)
		if err := c.InverseTo(&i1); err != nil {
			t.Fatal(err)
		}
		checkMatrix("InverseTo again", &i1, &i2)
	}
	check()
	x := random(r, n, 1).ColView(0)
	if !c.SymRankOne(&c, 0.5, x) || !want.SymRankOne(&want, 0.5, x) {
		t.Fatal("the update failed")
	}
	check()
	if c.SymRankOne(&c, -1e6, x) {
		t.Error("a downdate to what is not positive definite succeeded")
	}
	check()
	c.Scale(3, &c)
	want.Scale(3, &want)
	check()
	longer := mat.NewVecDense(n+1, nil)
	longer.SetVec(n, 9)
	longer.SetVec(0, 0.3)
	c2, want2 := gonum.Cholesky{Device: dev}, mat.Cholesky{}
	if !c2.ExtendVecSym(&c, longer) || !want2.ExtendVecSym(&want, longer) {
		t.Fatal("the extension failed")
	}
	c.Clone(&c2)
	want.Clone(&want2)
	check()
	c.SetFromU(want.RawU())
	check()
	if det, w := c2.Det(), want2.Det(); math.Abs(det-w) > 10*tol*float64(n)*math.Abs(w) && !math.IsInf(w, 1) {
		t.Errorf("Det is %v, of mat.Cholesky %v", det, w)
	}
	c2.Close()
	// After a Factorize has failed, a Factorize of a positive definite matrix must succeed.
	indefinite := mat.NewSymDense(n, nil)
	indefinite.CopySym(a)
	indefinite.SetSym(n/2, n/2, -1)
	var pivot *backend.PivotError
	if c.Factorize(indefinite) || !c.IsEmpty() || !errors.As(c.Err(), &pivot) || pivot.Index != n/2 {
		t.Errorf("a matrix with a negative pivot: empty %t, %v", c.IsEmpty(), c.Err())
	}
	if !c.Factorize(a) || c.Err() != nil || !want.Factorize(a) {
		t.Errorf("after that: %v", c.Err())
	}
	check()
}

// TestMethods checks that *gonum.Cholesky has all methods of *mat.Cholesky, with the same types of parameters,
// except that *gonum.Cholesky takes the place of *mat.Cholesky.
func TestMethods(t *testing.T) {
	mercer, reference := reflect.TypeFor[*gonum.Cholesky](), reflect.TypeFor[*mat.Cholesky]()
	for i := range reference.NumMethod() {
		want := reference.Method(i)
		got, ok := mercer.MethodByName(want.Name)
		if !ok {
			t.Errorf("%s is missing", want.Name)
			continue
		}
		text := func(m reflect.Method, receiver reflect.Type) string {
			return strings.ReplaceAll(m.Type.String(), receiver.String(), "*Cholesky")
		}
		if g, w := text(got, mercer), text(want, reference); g != w {
			t.Errorf("%s is %s, of mat.Cholesky %s", want.Name, g, w)
		}
	}
	var _ mat.Symmetric = (*gonum.Cholesky)(nil)
}

// TestMisuse checks that misuse panics with the same value as in mat.Cholesky.
func TestMisuse(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	panics := func(f func()) (v any) {
		defer func() { v = recover() }()
		f()
		return nil
	}
	a := positive(rand.New(rand.NewPCG(seed, 1)), 4)
	chol := gonum.Cholesky{Device: dev}
	var reference mat.Cholesky
	if !chol.Factorize(a) || !reference.Factorize(a) {
		t.Fatal(chol.Err())
	}
	for _, c := range []struct {
		name              string
		mercer, reference func()
	}{
		{"solve by nothing", func() { new(gonum.Cholesky).SolveTo(new(mat.Dense), a) }, func() { new(mat.Cholesky).SolveTo(new(mat.Dense), a) }},
		{"inverse of nothing", func() { new(gonum.Cholesky).InverseTo(new(mat.SymDense)) }, func() { new(mat.Cholesky).InverseTo(new(mat.SymDense)) }},
		{"factor of nothing", func() { chol.Factorize(&mat.SymDense{}) }, func() { new(mat.Cholesky).Factorize(&mat.SymDense{}) }},
		{"too few rows", func() { refactored(dev, a).SolveTo(new(mat.Dense), mat.NewDense(3, 1, nil)) }, func() { reference.SolveTo(new(mat.Dense), mat.NewDense(3, 1, nil)) }},
		{"wrong result", func() { refactored(dev, a).SolveTo(mat.NewDense(4, 2, nil), mat.NewDense(4, 1, nil)) }, func() { reference.SolveTo(mat.NewDense(4, 2, nil), mat.NewDense(4, 1, nil)) }},
		{"short vector", func() { refactored(dev, a).SolveVecTo(new(mat.VecDense), mat.NewVecDense(3, nil)) }, func() { reference.SolveVecTo(new(mat.VecDense), mat.NewVecDense(3, nil)) }},
		{"wrong inverse", func() { refactored(dev, a).InverseTo(mat.NewSymDense(3, nil)) }, func() { reference.InverseTo(mat.NewSymDense(3, nil)) }},
	} {
		got, want := panics(c.mercer), panics(c.reference)
		if got == nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: panics with %v, mat.Cholesky with %v", c.name, got, want)
		}
	}
	noDevice := gonum.Cholesky{}
	if noDevice.Factorize(a) || noDevice.Err() == nil || !strings.Contains(noDevice.Err().Error(), "set Cholesky.Device") {
		t.Errorf("without a device: %v", noDevice.Err())
	}
	ctx, stop := context.WithCancelCause(context.Background())
	stop(errors.New("the user left"))
	canceled := gonum.Cholesky{Device: dev, Context: ctx}
	if canceled.Factorize(a) || canceled.Err() == nil || !strings.Contains(canceled.Err().Error(), "the user left") {
		t.Errorf("with a context that is done: %v", canceled.Err())
	}
}

func refactored(dev backend.Device, a mat.Symmetric) *gonum.Cholesky {
	c := &gonum.Cholesky{Device: dev}
	c.Factorize(a)
	return c
}

// TestCondition checks that SolveVecTo returns a correct solution and a mat.Condition error for a nearly singular A.
func TestCondition(t *testing.T) {
	backendtest.OnDevices(t, func(t *testing.T, dev backend.Device) {
		a := mat.NewSymDense(3, []float64{1, 0, 0, 0, 1, 0, 0, 0, 1e-17})
		c := gonum.Cholesky{Device: dev}
		if !c.Factorize(a) {
			t.Fatal(c.Err())
		}
		defer c.Close()
		var x mat.VecDense
		var condition mat.Condition
		if err := c.SolveVecTo(&x, mat.NewVecDense(3, []float64{1, 2, 3e-17})); !errors.As(err, &condition) {
			t.Errorf("got %v, want a mat.Condition", err)
		}
		if want := mat.NewVecDense(3, []float64{1, 2, 3}); !mat.EqualApprox(&x, want, 16*0x1p-53) { // allows for the errors of a square root, its square, and a division
			t.Errorf("the solution is %v", mat.Formatted(&x))
		}
	})
}

// TestInsideGonum checks that other packages of gonum accept the embedded factor.
func TestInsideGonum(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	r := rand.New(rand.NewPCG(seed, 2))
	a := positive(r, 6)
	c := refactored(dev, a)
	x := []float64{1, 0, -1, 2, 0.5, 0}
	got := distmv.NewNormalChol(make([]float64, 6), &c.Cholesky, nil).LogProb(x)
	want, ok := distmv.NewNormal(make([]float64, 6), a, nil)
	if !ok {
		t.Fatal("not positive definite")
	}
	if w := want.LogProb(x); math.Abs(got-w) > 1e3*16*0x1p-53*math.Abs(w) { // the bound is the condition number times 16 roundings
		t.Errorf("seed %d: the logarithm of the density is %v, want %v", seed, got, w)
	}
}
