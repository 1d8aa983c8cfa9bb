package adjoint_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/backend/ref"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/internal/adjoint"
	"github.com/mercer-go/mercer/kernels"
)

type host = backend.Host[float64]

const seed = 7 // seed of all random numbers, which each failure logs

func random(r *rand.Rand, rows, cols int) host {
	h := host{Rows: rows, Cols: cols, Stride: cols + 2, Data: make([]float64, rows*(cols+2))}
	for i := range h.Data {
		h.Data[i] = math.NaN() // detects reads of the elements between two rows
	}
	for i := range rows {
		for j := range cols {
			h.Row(i)[j] = r.NormFloat64()
		}
	}
	return h
}

// positive returns h, with absolute values of the features if k requires nonnegative features.
func positive(k kernels.Kernel, h host) host {
	if rule := kernels.PointRule(k); rule != nil && rule(slices.Repeat([]float64{-1}, h.Cols)) != nil {
		for i := range h.Rows {
			for j, v := range h.Row(i) {
				h.Row(i)[j] = math.Abs(v)
			}
		}
	}
	return h
}

// kernelTexts returns kernels that have derivatives: the examples of the catalog, and compositions.
func kernelTexts() []string {
	list := []string{
		"gaussian(sigma=[1,2,0.7])", "cosineseries(l=3)", "exp(0.2*linear())",
		"0.5*gaussian(sigma=2)*linear() + 2*exponential(sigma=3) + 3",
	}
	for _, d := range kernels.Catalogue() {
		if k, err := kernels.Parse(d.Example); err != nil || kernels.CheckGrad(k, 3) == nil {
			list = append(list, d.Example)
		}
	}
	return list
}

func parse(t *testing.T, text string) kernels.Kernel {
	t.Helper()
	k, err := kernels.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestGramGradient compares the gradients with sums over kernels.EvalGrad.
func TestGramGradient(t *testing.T) {
	backendtest.OnDevices(t, func(t *testing.T, dev backend.Device) {
		for _, text := range kernelTexts() {
			for _, symmetric := range []bool{false, true} {
				for _, factored := range []bool{false, true} {
					if testing.Short() && symmetric != factored {
						continue
					}
					k := parse(t, text)
					t.Run(fmt.Sprintf("%s/%t/%t", text, symmetric, factored), func(t *testing.T) { checkGramGradient(t, dev, k, symmetric, factored) })
				}
			}
		}
	})
}

func checkGramGradient(t *testing.T, dev backend.Device, k kernels.Kernel, symmetric, factored bool) {
	r := rand.New(rand.NewPCG(seed, 1))
	n, m, d := 37, 19, 3
	x, z := positive(k, random(r, n, d)), positive(k, random(r, m, d))
	copy(x.Row(5), x.Row(3)) // coincident points
	copy(z.Row(2), x.Row(8))
	zArg := z
	if symmetric {
		z, zArg, m = x, host{}, n
	}
	w := adjoint.Weights{Dense: random(r, n, m)}
	dense := w.Dense
	if factored {
		w = adjoint.Weights{U: random(r, n, 2), V: random(r, m, 2)}
		for i := range n {
			for j := range m {
				dense.Row(i)[j] = w.U.Row(i)[0]*w.V.Row(j)[0] + w.U.Row(i)[1]*w.V.Row(j)[1]
			}
		}
	}
	got, err := adjoint.GramGradient(context.Background(), dev, adjoint.GramLoss{Kernel: k, X: x, Z: zArg, Weights: w}, adjoint.WantX|adjoint.WantZ|adjoint.WantTheta|adjoint.WantShift)
	if err != nil {
		t.Fatal(err)
	}
	wantX, sizeX := backend.NewHost[float64](n, d), 0.0
	wantZ, wantShift := backend.NewHost[float64](m, d), backend.NewHost[float64](m, d)
	theta, sizeTheta := make([]float64, len(kernels.Params(k))), 0.0
	dx, dz := make([]float64, d), make([]float64, d)
	for i := range n {
		for j := range m {
			if err := kernels.EvalGrad(k, x.Row(i), z.Row(j), dx, dz); err != nil {
				t.Fatal(err)
			}
			weight := dense.Row(i)[j]
			for p := range d {
				wantX.Row(i)[p] += weight * dx[p]
				wantZ.Row(j)[p] += weight * dz[p]
				wantShift.Row(j)[p] += weight * dx[p]
				// sizeX bounds the terms for X and Z, and the parts of a term that cancel. All |x| are below 4.
				sizeX = max(sizeX, math.Abs(weight)*(math.Abs(dx[p])+math.Abs(dz[p])), math.Abs(weight*kernels.Eval(k, x.Row(i), x.Row(i))))
			}
			for q, g := range kernels.Gradient(k) {
				v := weight * kernels.Eval(g, x.Row(i), z.Row(j))
				theta[q] += v
				sizeTheta = max(sizeTheta, math.Abs(v))
			}
		}
	}
	if symmetric {
		for i, v := range wantZ.Data {
			wantX.Data[i] += v
		}
		if got.Z.Rows != 0 {
			t.Error("a gradient with respect to Z, which is X")
		}
		wantZ = host{}
	}
	// A sum has n+m terms. Cancellation in a kernel's statistics loses at most a factor of 1024 (package cpu).
	tol := float64(n+m) * 64 * 1024 * 0x1p-53 * sizeX
	compare(t, "x", got.X, wantX, tol)
	compare(t, "z", got.Z, wantZ, tol)
	compare(t, "shift", got.Shift, wantShift, tol)
	tolTheta := float64(n*m) * 64 * 64 * 0x1p-53 * sizeTheta
	for q, v := range theta {
		if !(math.Abs(got.Theta[q]-v) <= tolTheta) {
			t.Errorf("seed %d: by parameter %d: %v, want %v, allowed %g", seed, q, got.Theta[q], v, tolTheta)
		}
	}
	if len(got.Theta) != len(theta) {
		t.Errorf("%d parameters, want %d", len(got.Theta), len(theta))
	}
	onlyX, err := adjoint.GramGradient(context.Background(), dev, adjoint.GramLoss{Kernel: k, X: x, Z: zArg, Weights: w}, adjoint.WantX)
	if err != nil || onlyX.Z.Rows != 0 || onlyX.Theta != nil || !slices.Equal(onlyX.X.Data, got.X.Data) {
		t.Errorf("the gradient with respect to X alone differs: %v", err)
	}
}

func compare(t *testing.T, name string, got, want host, tol float64) {
	t.Helper()
	if got.Rows != want.Rows || got.Rows > 0 && got.Cols != want.Cols {
		t.Fatalf("%s: %d×%d, want %d×%d", name, got.Rows, got.Cols, want.Rows, want.Cols)
	}
	for i := range got.Rows {
		for j, v := range got.Row(i) {
			if !(math.Abs(v-want.Row(i)[j]) <= tol) {
				t.Errorf("seed %d: %s: row %d, column %d is %v, want %v, allowed %g", seed, name, i, j, v, want.Row(i)[j], tol)
				return
			}
		}
	}
}

// TestGramGradientBlocks checks that the gradients do not depend on the number of blocks.
func TestGramGradientBlocks(t *testing.T) {
	if testing.Short() {
		t.Skip("6 million pairs: left out of -short")
	}
	dev := backendtest.Device(t, "cpu")
	r := rand.New(rand.NewPCG(seed, 2))
	n, m := 3100, 2000
	x, z := random(r, n, 2), random(r, m, 2)
	w := adjoint.Weights{U: random(r, n, 1), V: random(r, m, 1)}
	k := kernels.Sum{kernels.Gaussian{Sigma: 2}, kernels.Laplacian{Sigma: 1}}
	ctx, want := context.Background(), adjoint.WantX|adjoint.WantZ|adjoint.WantTheta
	got, err := adjoint.GramGradient(ctx, dev, adjoint.GramLoss{Kernel: k, X: x, Z: z, Weights: w}, want)
	if err != nil {
		t.Fatal(err)
	}
	sum := backend.NewHost[float64](m, 2)
	for first := 0; first < n; first += 500 {
		rows := min(500, n-first)
		blockGradients, err := adjoint.GramGradient(ctx, dev, adjoint.GramLoss{Kernel: k, X: x.View(first, 0, rows, 2), Z: z, Weights: adjoint.Weights{U: w.U.View(first, 0, rows, 1), V: w.V}}, want)
		if err != nil {
			t.Fatal(err)
		}
		// The tolerance allows m roundings of sums whose terms are below 100.
		compare(t, "x", blockGradients.X, got.X.View(first, 0, rows, 2), float64(m)*100*0x1p-53)
		for i, v := range blockGradients.Z.Data {
			sum.Data[i] += v
		}
	}
	compare(t, "z", got.Z, sum, float64(n)*100*0x1p-53)
}

// dense returns k(X, Z), computed by kernels.Eval.
func dense(k kernels.Kernel, x, z host) *mat.Dense {
	g := mat.NewDense(x.Rows, z.Rows, nil)
	for i := range x.Rows {
		for j := range z.Rows {
			g.Set(i, j, kernels.Eval(k, x.Row(i), z.Row(j)))
		}
	}
	return g
}

func matOf(h host) *mat.Dense {
	m := mat.NewDense(h.Rows, h.Cols, nil)
	for i := range h.Rows {
		m.SetRow(i, h.Row(i))
	}
	return m
}

// ridgeLoss returns the sum of the elements of weights∘f(Z), computed by dense linear algebra.
func ridgeLoss(t *testing.T, k kernels.Kernel, x, y, z, weights host, lambda float64) float64 {
	t.Helper()
	g := dense(k, x, x)
	for i := range x.Rows {
		g.Set(i, i, g.At(i, i)+lambda)
	}
	var alpha, f mat.Dense
	if err := alpha.Solve(g, matOf(y)); err != nil {
		t.Fatal(err)
	}
	f.Mul(dense(k, z, x), &alpha)
	f.MulElem(&f, matOf(weights))
	return mat.Sum(&f)
}

// addScaled returns h + s·direction.
func addScaled(h, direction host, s float64) host {
	m := backend.NewHost[float64](h.Rows, h.Cols)
	for i := range h.Rows {
		for j, v := range h.Row(i) {
			m.Row(i)[j] = v + s*direction.Row(i)[j]
		}
	}
	return m
}

func inner(a, b host) float64 {
	sum := 0.0
	for i := range a.Rows {
		for j, v := range a.Row(i) {
			sum += v * b.Row(i)[j]
		}
	}
	return sum
}

// TestRidgeGradient compares all gradients of a kernel ridge regression with finite differences of dense algebra.
func TestRidgeGradient(t *testing.T) {
	backendtest.OnDevices(t, func(t *testing.T, dev backend.Device) {
		for _, text := range []string{"gaussian(sigma=1.5)", "gaussian(sigma=[1,2,0.7])", "matern52(sigma=2)", "polynomial(degree=2,c=1) + 0.5*matern32(sigma=1)"} {
			for _, symmetric := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%t", text, symmetric), func(t *testing.T) { checkRidge(t, dev, parse(t, text), symmetric) })
			}
		}
	})
}

func checkRidge(t *testing.T, dev backend.Device, k kernels.Kernel, symmetric bool) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(seed, 3))
	n, m, d, outputs, lambda := 23, 11, 3, 2, 0.3
	x, y, z := random(r, n, d), random(r, n, outputs), random(r, m, d)
	zArg := z
	if symmetric {
		z, zArg, m = x, host{}, n
	}
	weights := random(r, m, outputs)
	ridge, err := adjoint.NewRidge(ctx, dev, k, x, y, lambda)
	if err != nil {
		t.Fatal(err)
	}
	defer ridge.Close()
	f := backend.NewHost[float64](m, outputs)
	if err := ridge.Predict(ctx, zArg, f); err != nil {
		t.Fatal(err)
	}
	value := ridgeLoss(t, k, x, y, z, weights, lambda)
	// 1e5 bounds the condition number (n·k(x,x)+λ)/λ.
	if got := inner(f, weights); !(math.Abs(got-value) <= 1e5*float64(n)*0x1p-53*(1+math.Abs(value))) {
		t.Errorf("seed %d: the loss is %v, by dense algebra %v", seed, got, value)
	}
	g, err := ridge.Gradient(ctx, zArg, weights, adjoint.WantX|adjoint.WantZ|adjoint.WantTheta)
	if err != nil {
		t.Fatal(err)
	}
	params := kernels.Params(k)
	directions := map[string]func(s float64) (kernels.Kernel, host, host, host, float64){}
	derivatives := map[string]float64{}
	add := func(name string, derivative float64, perturb func(s float64) (kernels.Kernel, host, host, host, float64)) {
		directions[name], derivatives[name] = perturb, derivative
	}
	dx, dy, dz := random(r, n, d), random(r, n, outputs), random(r, z.Rows, d)
	add("x", inner(g.X, dx), func(s float64) (kernels.Kernel, host, host, host, float64) {
		nx := addScaled(x, dx, s)
		if symmetric {
			return k, nx, y, nx, lambda
		}
		return k, nx, y, z, lambda
	})
	add("y", inner(g.Y, dy), func(s float64) (kernels.Kernel, host, host, host, float64) {
		return k, x, addScaled(y, dy, s), z, lambda
	})
	if !symmetric {
		add("z", inner(g.Z, dz), func(s float64) (kernels.Kernel, host, host, host, float64) {
			return k, x, y, addScaled(z, dz, s), lambda
		})
	}
	add("lambda", g.Lambda, func(s float64) (kernels.Kernel, host, host, host, float64) { return k, x, y, z, lambda + s })
	for i, p := range params {
		add("theta "+p.Name, g.Theta[i], func(s float64) (kernels.Kernel, host, host, host, float64) {
			values := make([]float64, len(params))
			for j, q := range params {
				values[j] = q.Value
			}
			if p.Log {
				values[i] *= math.Exp(s)
			} else {
				values[i] += s
			}
			perturbed, err := kernels.WithParams(k, values)
			if err != nil {
				t.Fatal(err)
			}
			return perturbed, x, y, z, lambda
		})
	}
	for name, perturb := range directions {
		const h = 0x1p-12
		loss := func(s float64) float64 {
			k, x, y, z, lambda := perturb(s)
			return ridgeLoss(t, k, x, y, z, weights, lambda)
		}
		fine := (8*(loss(h)-loss(-h)) - (loss(2*h) - loss(-2*h))) / (12 * h)
		coarse := (8*(loss(2*h)-loss(-2*h)) - (loss(4*h) - loss(-4*h))) / (24 * h)
		// |fine−coarse| bounds the truncation error, and 1e5 bounds the condition number of the system.
		tol := math.Abs(fine-coarse) + 1e5*0x1p-53*(math.Abs(value)+float64(m))/h
		if !(math.Abs(derivatives[name]-fine) <= tol) || tol > 1e-4*(1+math.Abs(fine)) {
			t.Errorf("seed %d: by %s: %v, by differences %v, allowed %g", seed, name, derivatives[name], fine, tol)
		}
	}
	// A second call must give the same bits, and only the requested gradients.
	withoutWant, err := ridge.Gradient(ctx, zArg, weights, 0)
	if err != nil || !slices.Equal(withoutWant.Y.Data, g.Y.Data) || withoutWant.X.Rows != 0 || withoutWant.Z.Rows != 0 || withoutWant.Theta != nil {
		t.Errorf("without X, Z and θ: %+v, %v", withoutWant, err)
	}
}

// TestSolve checks the factor, the solution, and the gradients with respect to K and λ.
func TestSolve(t *testing.T) {
	backendtest.OnDevices(t, func(t *testing.T, dev backend.Device) {
		ctx := context.Background()
		r := rand.New(rand.NewPCG(seed, 4))
		n, outputs, lambda := 29, 3, 0.5
		k := backend.NewHost[float64](n, n)
		x := random(r, n, 2)
		if err := adjoint.Gram(ctx, dev, kernels.Gaussian{Sigma: 1}, x, host{}, k); err != nil {
			t.Fatal(err)
		}
		var sym mat.Dense
		sym.CloneFrom(matOf(k))
		if !mat.Equal(&sym, sym.T()) {
			t.Error("the Gram matrix of X with itself is not symmetric")
		}
		y, weights, dk := random(r, n, outputs), random(r, n, outputs), random(r, n, n)
		for i := range n { // K must remain symmetric
			for j := range i {
				dk.Row(j)[i] = dk.Row(i)[j]
			}
		}
		l, alpha, u := backend.NewHost[float64](n, n), backend.NewHost[float64](n, outputs), backend.NewHost[float64](n, outputs)
		if err := adjoint.Factor(ctx, dev, k, lambda, l); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(adjoint.Solve(ctx, dev, l, y, alpha), adjoint.Solve(ctx, dev, l, weights, u)); err != nil {
			t.Fatal(err)
		}
		byK, byLambda, err := adjoint.SolveGradient(alpha, u)
		if err != nil {
			t.Fatal(err)
		}
		loss := func(s, shift float64) float64 {
			a := matOf(addScaled(k, dk, s))
			for i := range n {
				a.Set(i, i, a.At(i, i)+lambda+shift)
			}
			var alpha mat.Dense
			if err := alpha.Solve(a, matOf(y)); err != nil {
				t.Fatal(err)
			}
			alpha.MulElem(&alpha, matOf(weights))
			return mat.Sum(&alpha)
		}
		const h = 0x1p-12
		for _, c := range []struct {
			name  string
			got   float64
			value func(s float64) float64
		}{
			{"k", inner(byK, dk), func(s float64) float64 { return loss(s, 0) }},
			{"lambda", byLambda, func(s float64) float64 { return loss(0, s) }},
		} {
			fine := (8*(c.value(h)-c.value(-h)) - (c.value(2*h) - c.value(-2*h))) / (12 * h)
			coarse := (8*(c.value(2*h)-c.value(-2*h)) - (c.value(4*h) - c.value(-4*h))) / (24 * h)
			// 100 bounds the condition number n/λ + 1.
			tol := math.Abs(fine-coarse) + 100*0x1p-53*(math.Abs(loss(0, 0))+float64(n))/h
			if !(math.Abs(c.got-fine) <= tol) || tol > 1e-5*math.Abs(fine) {
				t.Errorf("seed %d: by %s: %v, by differences %v, allowed %g", seed, c.name, c.got, fine, tol)
			}
		}
	})
}

// TestErrors checks that the errors for invalid arguments name the argument and the position.
func TestErrors(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	ctx, r := context.Background(), rand.New(rand.NewPCG(seed, 5))
	x, y, z := random(r, 5, 2), random(r, 5, 1), random(r, 3, 2)
	gaussian := kernels.Gaussian{Sigma: 1}
	bad := addScaled(x, x, 0)
	bad.Row(3)[1] = math.Inf(1)
	out := backend.NewHost[float64](5, 5)
	ones := backend.NewHost[float64](5, 5)
	for i := range ones.Data {
		ones.Data[i] = 1
	}
	ridge, err := adjoint.NewRidge(ctx, dev, gaussian, x, y, 1)
	if err != nil {
		t.Fatal(err)
	}
	canceledCtx, stop := context.WithCancelCause(ctx)
	stop(errors.New("the user left"))
	gradient := func(k kernels.Kernel, w adjoint.Weights) error {
		_, err := adjoint.GramGradient(ctx, dev, adjoint.GramLoss{Kernel: k, X: x, Z: z, Weights: w}, adjoint.WantX)
		return err
	}
	fit := func(x, y host, lambda float64) error {
		_, err := adjoint.NewRidge(ctx, dev, gaussian, x, y, lambda)
		return err
	}
	_, _, mismatch := adjoint.SolveGradient(y, z)
	_, wrongCols := ridge.Gradient(ctx, host{}, x, 0)
	_, wrongRows := ridge.Gradient(ctx, z, y, 0)
	canceled := adjoint.Factor(canceledCtx, dev, ones, 1, out)
	_, stoppedGradient := adjoint.GramGradient(canceledCtx, dev, adjoint.GramLoss{Kernel: gaussian, X: x, Weights: adjoint.Weights{Dense: ones}}, adjoint.WantX)
	_, stoppedFit := adjoint.NewRidge(canceledCtx, dev, gaussian, x, y, 1)
	for _, c := range []struct {
		err  error
		want string
	}{
		{adjoint.Gram(ctx, dev, gaussian, bad, host{}, out), "adjoint: gram: x: row 4, column 2 is +Inf"},
		{adjoint.Gram(ctx, dev, gaussian, x, z, out), "adjoint: gram: dst is 5×5, k(X, Z) is 5×3"},
		{adjoint.Gram(ctx, dev, gaussian, x, y, out), "adjoint: gram: z has 1 feature, x has 2"},
		{adjoint.Gram(ctx, nil, gaussian, x, host{}, out), "adjoint: gram: no device was given"},
		{adjoint.Gram(ctx, dev, nil, x, host{}, out), "adjoint: gram: the kernel is nil"},
		{adjoint.Gram(ctx, dev, kernels.ChiSquared{Gamma: 1}, x, host{}, out), "features must be finite numbers ≥ 0"},
		{gradient(gaussian, adjoint.Weights{}), "adjoint: gradient of a gram matrix: u is empty: 0 rows, 0 columns"},
		{gradient(gaussian, adjoint.Weights{Dense: ones}), "the weights are 5×5, k(X, Z) is 5×3"},
		{gradient(gaussian, adjoint.Weights{U: x, V: y}), "u has 2 columns, v has 1"},
		{gradient(kernels.Gradient(gaussian)[0], adjoint.Weights{U: y, V: z.View(0, 0, 3, 1)}), "contains a derivative"},
		{fit(x, z, 1), "adjoint: kernel ridge: y has 3 rows, x has 5"},
		{fit(x, y, -1), "adjoint: kernel ridge: lambda must be a finite number ≥ 0, got -1"},
		{fit(backend.NewHost[float64](5, 2), y, 0), "raise lambda"},
		{adjoint.Factor(ctx, dev, ones, 0, out), "adjoint: factor: the matrix K + λI is not positive definite for lambda = 0: raise lambda"},
		{adjoint.Factor(ctx, dev, x, 0, out), "must be square"},
		{canceled, "the user left"},
		{stoppedGradient, "adjoint: gradient of a gram matrix: the user left"},
		{stoppedFit, "the user left"},
		{adjoint.Solve(ctx, dev, ones, z, z), "adjoint: solve: y has 3 rows, the factor has 5"},
		{mismatch, "adjoint: gradient of a solve: u has 3 rows, alpha has 5"},
		{wrongCols, "adjoint: kernel ridge: gradient: the gradient with respect to f has 2 columns, f has 1"},
		{wrongRows, "the gradient with respect to f has 5 rows, z has 3"},
		{ridge.Predict(ctx, z, y), "dst is 5×1, the predictions are 3×1"},
	} {
		text := fmt.Sprint(c.err)
		if c.err == nil || !strings.Contains(text, c.want) || strings.Contains(text, "\n") {
			t.Errorf("got %q, want %q", text, c.want)
		}
	}
	if err := adjoint.Factor(ctx, dev, ones, 0, out); !errors.Is(err, backend.ErrNotPosDef) {
		t.Errorf("%v does not match ErrNotPosDef", err)
	}
	ridge.Close()
	if _, err := ridge.Gradient(ctx, z, z.View(0, 0, 3, 1), 0); err == nil || !strings.Contains(err.Error(), "the Ridge has been closed") {
		t.Errorf("after Close: %v", err)
	}
	if inUse, _ := dev.InUse(); inUse != 0 {
		t.Errorf("%d bytes have not been given back", inUse)
	}
}
