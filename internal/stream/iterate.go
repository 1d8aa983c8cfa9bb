package stream

import (
	"context"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/krylov"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
)

// Solution is the result of Iterate.
type Solution struct {
	Beta     backend.Host[float64] // β, M×t
	Bias     []float64             // b of each output
	Residual float64               // the largest ‖z − Hβ‖ / ‖z‖ over the outputs
	Iters    int                   // number of products with H
	Reason   string                // why the residual exceeds the tolerance; "" if it does not
	Sums     *Sums                 // data for a bound on the error of the solution; nil if H and z are not stored
}

// Sums describes a solution of Hβ = z for sums H and z over the samples, in float64.
type Sums struct {
	Scale       float64      // the functions φ are Scale times the functions of the model; 1 except for Fourier
	Lambda      float64      // λ of the penalty
	N           int          // number of samples of weight > 0
	TotalWeight float64      // Σ w_i over the samples
	Weighted    bool         // whether a weight is not 1
	Box         [2][]float64 // the smallest and the largest value of each feature over the samples of weight > 0
	Roots       []float64    // s_a = √(Σ w_i φ_a² + λS_aa) of each function
	// WeakVectors is an approximation of H⁻¹β, M×t, for centers, and empty otherwise.
	WeakVectors backend.Host[float64]
	Targets     []TargetSums
}

// TargetSums is the part of Sums for one target.
type TargetSums struct {
	ResidualNorm float64 // ‖z − Hβ‖, computed from H and z
	Square       float64 // an upper bound on Σ w_i (y_i − Offset)²
	FitBound     float64 // Σ_a s_a|β_a|
	Diagonal     float64 // ‖v‖ with v_a = (|l_a| + |H_aa − l_a|)|β_a| for the diagonal l of the factor of H
	Offset       float64 // the number that is subtracted from each y_i
	Size         float64 // the standard deviation of the y_i, or their root mean square without an intercept; ignores the weights
}

// IterationBytes returns the device memory of Iterate, in bytes.
func IterationBytes(m, t int) int64 { return numeric.Bytes(numeric.Elements(5*m, t)) }

// Iterate solves Hβ = z by preconditioned conjugate gradients for all outputs at the same time. If the
// preconditioner is the inverse of H up to rounding, Iterate first tries steps of iterative refinement (Björck
// 1987), with the stored H if its rounding errors are small enough, and otherwise with residuals from passes.
//
// The residual in the stopping test is computed from the samples in a separate pass. If it exceeds the residual of
// the recurrence, the iteration restarts with it (residual replacement, van der Vorst and Ye 2000). The iteration
// ends when a restart no longer reduces the residual.
func (w *Equations) Iterate(pre *Preconditioner, tol float64, maxIter int) (*Solution, error) {
	var beta, r, z, p, q backend.Matrix[float64]
	var err error
	for _, to := range []*backend.Matrix[float64]{&beta, &r, &z, &p, &q} {
		if *to, err = w.mem.New(w.m, w.t); err != nil {
			return nil, err
		}
		defer w.mem.Free(*to)
	}
	size, err := w.scales(tol)
	if err != nil {
		return nil, err
	}
	best := &Solution{}
	numeric.Copy(w.b, r, w.z)
	measure := func() (improved bool, err error) {
		residualNorms, err := w.norms(r)
		if err != nil {
			return false, err
		}
		maxResidual := 0.0
		for j, v := range residualNorms {
			maxResidual = max(maxResidual, numeric.Ratio(v, size[j]))
		}
		if maxResidual-maxResidual != 0 {
			return false, message.Errorf("the solution is not finite: {scale the features and targets down|raise $lambda}")
		}
		if best.Beta.Data != nil && !(maxResidual < best.Residual) {
			return false, nil
		}
		improved = best.Beta.Data == nil || maxResidual < 0.5*best.Residual
		best.Residual = maxResidual
		best.Beta = backend.NewHost[float64](w.m, w.t)
		if err := w.b.Download(best.Beta, beta); err != nil {
			return false, err
		}
		best.Bias, err = w.bias(beta)
		return improved, err
	}
	ones := numeric.Repeated(1.0, w.t)
	resumed := w.Checkpoints.takeResumed()
	exact := pre.exact
	if pre.sums != nil {
		if s, err := w.bySums(pre.sums, pre, [4]backend.Matrix[float64]{beta, r, z, q}, size, tol); s != nil || err != nil {
			return s, err
		}
		numeric.Zero(w.b, beta)
		numeric.Copy(w.b, r, w.z)
	}
	for range 2 {
		if !exact || best.Beta.Data != nil && best.Residual <= tol {
			break
		}
		if err := pre.Apply(z, r); err != nil {
			return nil, err
		}
		w.b.ColAxpy(ones, z, beta)
		if err := w.residual(r, beta); err != nil {
			return nil, err
		}
		best.Iters++
		if _, err := measure(); err != nil {
			return nil, err
		}
	}
	for {
		if resumed == nil && exact && best.Residual <= tol {
			return best, nil
		}
		descent := &gradients{Equations: w, pre: pre, beta: beta, r: r, z: z, p: p, q: q, size: size, tol: tol / 2, maxIter: maxIter, best: best}
		if resumed != nil {
			if resumed.Best.Rows > 0 { // compute the residual of the best solution, which the checkpoint does not contain
				if err := w.b.Upload(beta, resumed.Best); err != nil {
					return nil, err
				}
				if err := w.residual(r, beta); err != nil {
					return nil, err
				}
				if _, err := measure(); err != nil {
					return nil, err
				}
			}
			if err := descent.resume(resumed); err != nil {
				return nil, err
			}
			resumed = nil
		} else {
			descent.Pass = Pass{Began: best.Iters, Least: -1, Before: make([]float64, w.t)}
		}
		began := descent.Began
		if err := descent.descend(); err != nil {
			return nil, err
		}
		if err := w.residual(r, beta); err != nil {
			return nil, err
		}
		best.Iters++
		improved, err := measure()
		if err != nil {
			return nil, err
		}
		switch {
		case best.Residual <= tol:
			return best, nil
		case best.Iters >= maxIter:
			best.Reason = "no more iterations are allowed"
			return best, nil
		case !improved || best.Iters <= began+1:
			best.Reason = "rounding errors prevent a smaller residual"
			return best, nil
		}
		exact = true // all later values of best.Residual are computed from the samples
	}
}

// storedSums holds H and its Cholesky factor in one matrix: H above the diagonal of a, and the factor below it.
type storedSums struct {
	a                backend.Matrix[float64]
	diag, factorDiag []float64 // diagonals of H and of the factor
}

// bySums solves Hβ = z without a pass: by the factor and two steps of refinement with the stored H. The field Residual
// of the result is the residual with the stored H and z, plus a bound on the effect of the rounding errors of H and z.
// bySums returns nil if Residual exceeds tol.
//
// Let s_a² = Σ w_i φ_a², and c = numeric.SumRounding(n+M). Element a of the computed residual r̂ differs from element a
// of r = z − Hβ for the exact sums by at most
//
//	|r̂ − r|_a ≤ c s_a (Σ_b s_b |β_b| + √Σ w_i y_i²)
func (w *Equations) bySums(k *storedSums, pre krylov.Preconditioner[float64], buffers [4]backend.Matrix[float64], size []float64, tol float64) (*Solution, error) {
	beta, r, z, q := buffers[0], buffers[1], buffers[2], buffers[3]
	shift, roots, total := make([]float64, w.m), make([]float64, w.m), 0.0
	g := backend.NewHost[float64](w.m, 1)
	if w.Intercept {
		if err := w.b.Download(g, w.g); err != nil {
			return nil, err
		}
	}
	for i := range shift {
		shift[i] = k.diag[i] - k.factorDiag[i]
		square := k.diag[i] + g.Data[i]*g.Data[i]/w.feed.total // the diagonal element before centering
		roots[i] = math.Sqrt(square)
		total += square
	}
	unit := numeric.SumRounding(w.feed.N+w.m) * math.Sqrt(total)
	ones, minus := numeric.Repeated(1.0, w.t), numeric.Repeated(-1.0, w.t)
	s := &Solution{Beta: backend.NewHost[float64](w.m, w.t)}
	for s.Iters < 2 {
		if err := pre.Apply(z, r); err != nil {
			return nil, err
		}
		w.b.ColAxpy(ones, z, beta)
		numeric.Copy(w.b, r, w.z)
		w.b.Symm(backend.Upper, -1, k.a, beta, 1, r)
		if err := numeric.ScaleRows(w.b, q, beta, shift); err != nil {
			return nil, err
		}
		w.b.ColAxpy(minus, q, r)
		s.Iters++
	}
	residualNorms, err := w.norms(r)
	if err != nil {
		return nil, err
	}
	if err := w.b.Download(s.Beta, beta); err != nil {
		return nil, err
	}
	s.Sums = &Sums{Scale: 1, Lambda: w.Lambda, N: w.feed.N, TotalWeight: w.feed.total, Weighted: w.feed.weighted, Box: w.feed.box, Roots: roots, Targets: make([]TargetSums, w.t)}
	for j, v := range residualNorms {
		target := TargetSums{ResidualNorm: v, Square: w.squares[j], Size: w.feed.spread[j].Deviation()}
		if !w.Intercept {
			target.Size = math.Hypot(target.Size, w.feed.spread[j].Mean())
		}
		if w.feed.offset != nil {
			target.Offset = w.feed.offset[j]
		}
		for i, root := range roots {
			size := math.Abs(s.Beta.Row(i)[j])
			target.FitBound += root * size
			diagonal := (math.Abs(k.factorDiag[i]) + math.Abs(shift[i])) * size
			target.Diagonal += diagonal * diagonal
		}
		target.Diagonal = math.Sqrt(target.Diagonal)
		s.Sums.Targets[j] = target
		s.Residual = max(s.Residual, numeric.Ratio(v+unit*(math.Sqrt(target.Square)+target.FitBound), size[j]))
	}
	if !(s.Residual <= tol) {
		return nil, nil
	}
	if _, ok := w.basis.(*Centers); ok {
		if err := pre.Apply(z, beta); err != nil {
			return nil, err
		}
		s.Sums.WeakVectors = backend.NewHost[float64](w.m, w.t)
		if err := w.b.Download(s.Sums.WeakVectors, z); err != nil {
			return nil, err
		}
	}
	s.Bias, err = w.bias(beta)
	return s, err
}

type gradients struct {
	*Equations
	pre              krylov.Preconditioner[float64]
	beta, r, z, p, q backend.Matrix[float64]
	size             []float64 // norms of the columns of z
	tol              float64
	maxIter          int
	best             *Solution
	Pass
}

// Checkpoints specifies how the state of a solution is saved.
type Checkpoints struct {
	Due     func() bool         // reports whether it is time to save
	Save    func(s State) error // also called once the context is done
	Resumed *State              // the state from which the solution continues; nil to start from the beginning
}

// State holds the state from which conjugate gradients continue after an interruption.
type State struct {
	Pass
	Iters         int
	Best, X, R, P backend.Host[float64] // the best solution so far, β, the residual and the search direction
}

// takeResumed returns Resumed at its first call, and nil afterwards.
func (c *Checkpoints) takeResumed() *State {
	if c == nil {
		return nil
	}
	s := c.Resumed
	c.Resumed = nil
	return s
}

// Pass holds the numbers of a State that are not matrices.
type Pass struct {
	Step, Since, Began int
	Least              krylov.Number
	Before             []float64 // rᵀP⁻¹r of the preceding step
}

// descend solves He = r by conjugate gradients and adds e to β. It stops when the residuals of the recurrence are
// below tol·size, after maxIter products with H, or when many products have brought no progress. It overwrites r.
func (g *gradients) descend() error {
	const maxStalled = 30
	w := g.Equations
	rho, curvature, residualSquares := make([]float64, w.t), make([]float64, w.t), make([]float64, w.t)
	for ; ; g.Step++ {
		if err := context.Cause(w.ctx); err != nil {
			return g.interrupted(err)
		}
		if w.Checkpoints != nil && w.Checkpoints.Due() {
			if err := g.save(); err != nil {
				return err
			}
		}
		if err := w.b.ColDot(residualSquares, g.r, g.r); err != nil {
			return g.interrupted(err)
		}
		maxSquare, active := 0.0, make([]bool, w.t)
		for j := range residualSquares {
			active[j] = residualSquares[j] > g.tol*g.size[j]*g.tol*g.size[j]
			if active[j] {
				maxSquare = max(maxSquare, residualSquares[j]/(g.size[j]*g.size[j]))
			}
		}
		stalled, minSquare := g.Since+1, g.Least
		if g.Least < 0 || maxSquare < float64(g.Least) {
			stalled, minSquare = 0, krylov.Number(maxSquare)
		}
		if maxSquare == 0 || g.best.Iters >= g.maxIter || stalled > maxStalled {
			return nil
		}
		if err := g.pre.Apply(g.z, g.r); err != nil {
			return g.interrupted(err)
		}
		if err := w.b.ColDot(rho, g.r, g.z); err != nil {
			return g.interrupted(err)
		}
		// The next p is z + (ρ/ρ′)p, where ρ′ is the ρ of the preceding step. Store it in z: a checkpoint needs
		// the present p.
		if g.Step > 0 {
			factor := make([]float64, w.t)
			for j := range factor {
				if active[j] {
					factor[j] = numeric.Ratio(rho[j], g.Before[j])
				}
			}
			w.b.ColAxpy(factor, g.p, g.z)
		}
		if err := w.apply(g.q, g.z); err != nil {
			return g.interrupted(err)
		}
		if err := w.b.ColDot(curvature, g.z, g.q); err != nil {
			return g.interrupted(err)
		}
		g.p, g.z = g.z, g.p
		copy(g.Before, rho)
		g.Since, g.Least = stalled, minSquare
		g.best.Iters++
		step, negStep := make([]float64, w.t), make([]float64, w.t)
		for j := range step {
			if active[j] && curvature[j] > 0 {
				step[j] = rho[j] / curvature[j]
				negStep[j] = -step[j]
			}
		}
		w.b.ColAxpy(step, g.p, g.beta)
		w.b.ColAxpy(negStep, g.q, g.r)
		// If an error interrupts Sync, β and r are undefined: do not save them.
		if err := w.b.Sync(); err != nil {
			return err
		}
	}
}

// interrupted saves β, r and p as they were at the start of the step, if the context has ended.
func (g *gradients) interrupted(err error) error {
	if g.Checkpoints == nil || g.ctx.Err() == nil {
		return err
	}
	if saveErr := g.save(); saveErr != nil {
		return saveErr
	}
	return err
}

func (g *gradients) save() error {
	st := State{Pass: g.Pass, Iters: g.best.Iters, Best: g.best.Beta}
	b := g.b.With(context.WithoutCancel(g.ctx), nil)
	for _, m := range []struct {
		to   *backend.Host[float64]
		from backend.Matrix[float64]
	}{{&st.X, g.beta}, {&st.R, g.r}, {&st.P, g.p}} {
		*m.to = backend.NewHost[float64](g.m, g.t)
		if err := b.Download(*m.to, m.from); err != nil {
			return err
		}
	}
	return g.Checkpoints.Save(st)
}

// resume restores the state from a checkpoint, except for the best solution.
func (g *gradients) resume(st *State) error {
	g.Pass = st.Pass
	g.best.Iters = st.Iters
	for _, m := range []struct {
		to   backend.Matrix[float64]
		from backend.Host[float64]
	}{{g.beta, st.X}, {g.r, st.R}, {g.p, st.P}} {
		if err := g.b.Upload(m.to, m.from); err != nil {
			return err
		}
	}
	return nil
}

// Factored is a preconditioner P = LLᵀ with L on the device.
type Factored struct {
	B backend.Backend[float64]
	L backend.Matrix[float64]
}

func (f Factored) Apply(z, r backend.Matrix[float64]) error {
	numeric.Copy(f.B, z, r)
	numeric.SolveCholesky(f.B, f.L, z)
	return nil
}
