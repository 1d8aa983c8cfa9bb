package adjoint

import (
	"context"
	"errors"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/kernels"
)

// Ridge is a kernel ridge regression, f(Z) = k(Z, X)α with (K + λI)α = y, whose factor remains on the device.
// Several goroutines may call the methods, except Close. X must not change before Close.
type Ridge struct {
	dev    backend.Device
	kernel kernels.Kernel
	x      host
	alpha  host
	l      matrix
}

// NewRidge fits the n×t targets y to the n×d points x. It computes a Gram matrix and takes n³/3
// further operations. The fit occupies 8n² bytes of device memory until Close.
func NewRidge(ctx context.Context, dev backend.Device, k kernels.Kernel, x, y host, lambda float64) (*Ridge, error) {
	r := &Ridge{dev: dev, kernel: k, x: x}
	if err := r.fit(ctx, y, lambda); err != nil {
		r.Close()
		return nil, wrapError("kernel ridge", err)
	}
	return r, nil
}

func (r *Ridge) fit(ctx context.Context, y host, lambda float64) error {
	if err := checkPoints(r.kernel, "x", r.x, r.x.Cols); err != nil {
		return err
	}
	if err := checkRows("y", y, r.x.Rows, "x"); err != nil {
		return err
	}
	if err := checkLambda(lambda); err != nil {
		return err
	}
	w, err := newWork(ctx, r.dev)
	if err != nil {
		return err
	}
	defer w.Mem.FreeAll()
	x, err := w.Mem.Place(r.x)
	if err != nil {
		return err
	}
	if r.l, err = w.B.New(r.x.Rows, r.x.Rows); err != nil {
		return err
	}
	w.B.Gram(r.l, r.kernel, x, x)
	w.B.AddDiag([]float64{lambda}, r.l)
	if err := w.B.Potrf(backend.Lower, r.l); err != nil {
		return explain(err, lambda)
	}
	r.alpha = backend.NewHost[float64](y.Rows, y.Cols)
	return w.solve(r.l, y, r.alpha)
}

// Close releases the factor's memory.
func (r *Ridge) Close() {
	if r.l != nil {
		r.l.Free()
		r.l = nil
	}
}

// Predict sets dst, m×t, to k(Z, X)α for the m×d points z. If z has no rows, Predict uses Z = X.
func (r *Ridge) Predict(ctx context.Context, z, dst host) error {
	if z.Rows == 0 {
		z = r.x
	}
	err := checkPoints(r.kernel, "z", z, r.x.Cols)
	if err == nil && (dst.Rows != z.Rows || dst.Cols != r.alpha.Cols) {
		err = fmt.Errorf("dst is %d×%d, the predictions are %d×%d", dst.Rows, dst.Cols, z.Rows, r.alpha.Cols)
	}
	if err == nil {
		err = r.product(ctx, z, r.x, r.alpha, dst)
	}
	return wrapError("kernel ridge: predict", err)
}

// product sets dst ← k(A, B)V.
func (r *Ridge) product(ctx context.Context, a, b, v, dst host) error {
	w, err := newWork(ctx, r.dev)
	if err != nil {
		return err
	}
	defer w.Mem.FreeAll()
	var m [3]matrix
	for i, h := range []host{a, b, v} {
		if m[i], err = w.Mem.Place(h); err != nil {
			return err
		}
	}
	out, err := w.buffer(dst)
	if err != nil {
		return err
	}
	w.B.GramMul(out.m, r.kernel, m[0], m[1], m[2])
	return out.download()
}

// RidgeGradients holds the gradients of a loss with respect to all inputs of a prediction. X, n×d, Y, n×t, and Z,
// m×d, have the shapes of the inputs. If the points z are X, the field Z has no rows, and the field X is the sum
// of the gradients with respect to both uses of X. Gradients that were not requested are empty.
type RidgeGradients struct {
	X, Y, Z host
	Lambda  float64
	Theta   []float64 // see the field Theta of Gradients
}

// Gradient returns the gradients of a loss, given byF, m×t, its gradient with respect to f(Z). It always computes
// the gradients with respect to y and λ; WantX, WantZ and WantTheta request the others.
func (r *Ridge) Gradient(ctx context.Context, z, byF host, want Want) (*RidgeGradients, error) {
	g, err := r.gradient(ctx, z, byF, want)
	return g, wrapError("kernel ridge: gradient", err)
}

func (r *Ridge) gradient(ctx context.Context, z, byF host, want Want) (*RidgeGradients, error) {
	if r.l == nil {
		return nil, errors.New("the Ridge has been closed")
	}
	symmetric := z.Rows == 0
	points := z
	if symmetric {
		points = r.x
	}
	if err := checkPoints(r.kernel, "z", points, r.x.Cols); err != nil {
		return nil, err
	}
	if err := checkRows("the gradient with respect to f", byF, points.Rows, "z"); err != nil {
		return nil, err
	}
	if byF.Cols != r.alpha.Cols {
		return nil, fmt.Errorf("the gradient with respect to f has %s, f has %d", count.Of(byF.Cols, "column"), r.alpha.Cols)
	}
	u := backend.NewHost[float64](r.x.Rows, byF.Cols)
	if err := r.product(ctx, r.x, points, byF, u); err != nil {
		return nil, err
	}
	w, err := newWork(ctx, r.dev)
	if err != nil {
		return nil, err
	}
	defer w.Mem.FreeAll()
	if err := w.solve(r.l, u, u); err != nil {
		return nil, err
	}
	g := &RidgeGradients{Y: u, Lambda: lambdaGradient(r.alpha, u)}
	inner := backend.NewHost[float64](u.Rows, u.Cols) // the gradient with respect to k(X, X) is inner αᵀ
	for i, v := range u.Data {
		inner.Data[i] = -v
	}
	if symmetric {
		for i := range inner.Rows {
			row := inner.Row(i)
			for t, v := range byF.Row(i) {
				row[t] += v
			}
		}
	}
	if want&(WantX|WantTheta) != 0 {
		k, err := gramGradient(ctx, r.dev, GramLoss{Kernel: r.kernel, X: r.x, Weights: Weights{U: inner, V: r.alpha}}, want&^WantZ)
		if err != nil {
			return nil, err
		}
		g.X, g.Theta = k.X, k.Theta
	}
	if symmetric || want == 0 {
		return g, nil
	}
	// In k(Z, X), X is the second argument: exchange WantX and WantZ.
	swapped := want & WantTheta
	if want&WantX != 0 {
		swapped |= WantZ
	}
	if want&WantZ != 0 {
		swapped |= WantX
	}
	k, err := gramGradient(ctx, r.dev, GramLoss{Kernel: r.kernel, X: z, Z: r.x, Weights: Weights{U: byF, V: r.alpha}}, swapped)
	if err != nil {
		return nil, err
	}
	g.Z = k.X
	if want&WantX != 0 {
		for i, v := range k.Z.Data {
			g.X.Data[i] += v
		}
	}
	for i, v := range k.Theta {
		g.Theta[i] += v
	}
	return g, nil
}
