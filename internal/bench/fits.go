package bench

import (
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/bench/pypeer"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/solvers"
)

// ridge returns the contest in which all implementations solve (K + λI)α = y. In float32 Mercer does not refine α.
func (c *fitBench) ridge(j judge, precision string) contest {
	s := j.synthetic
	k := contest{task: "ridge", parameters: s.parameters(), sendData: putAll(s.x, s.y), result: alphaOf(s), residual: j.residual, limit: ridgeLimit(s.x.Rows, c.Features, precision, s.lambda)}
	k.peers = []string{"gonum", sklearn, "torch", "cupy", "gpytorch"}
	if precision == "float64" {
		k.mercer = func(d backend.Device) []competitor {
			return []competitor{c.bySolver(d, s, ownName(d), solvers.Auto), c.bySolver(d, s, ownName(d)+directName, solvers.Dual)}
		}
		return k
	}
	x, y := toFloat32(s.x), toFloat32(s.y)
	k.sendData = putAll(x, y)
	k.mercer = func(d backend.Device) []competitor {
		return []competitor{newCompetitor(ownName(d)+directName, func() (backend.Host[float32], error) {
			return direct(d.F32().With(c.ctx, nil), s.kernel, x, y, float32(s.lambda))
		}, func(alpha backend.Host[float32]) (function, error) {
			return function{points: s.x, coef: converted[float64](alpha.Data)}, nil
		})}
	}
	return k
}

// ridgeLimit bounds the residual of a direct solver of (K + λI)α = y relative to ‖y‖, for the unit roundoff u:
//   - An element of K has a relative error of at most (d + 8)u, from the distance and from exp; in float32 the
//     rounding of X adds less than 4u.
//   - The factorization and the two triangular solves each have a backward error of γ = 10√n·u with probability
//     practically 1 (Higham and Mary 2019).
//   - The total error ‖ΔK‖ of K is at most n·(2γ + (d + 8)u), and ‖α‖ ≤ ‖y‖/λ.
//
// The limit is at most 1/2.
func ridgeLimit(n, d int, precision string, lambda float64) float64 {
	unit := roundoff[float64]()
	if precision == "float32" {
		unit = roundoff[float32]()
	}
	bound := float64(n) * (20*math.Sqrt(float64(n)) + float64(d) + 12) * unit / lambda
	return min(max(bound, fitTol), 0.5)
}

func (s *synthetic) parameters() map[string]any {
	return map[string]any{"gamma": s.gamma(), "sigma": s.kernel.Sigma, "lambda": s.lambda}
}

// putAll returns a function that sends X and y to a process.
func putAll[T backend.Float](x, y backend.Host[T]) func(*pypeer.Process) error {
	return func(p *pypeer.Process) error {
		return errors.Join(pypeer.Put(p, "x", x.Rows, x.Cols, x.Data), pypeer.Put(p, "y", y.Rows, 0, y.Data))
	}
}

// alphaOf returns a function that reads the α that a process has computed.
func alphaOf(s *synthetic) func(*pypeer.Process) (function, error) {
	return func(p *pypeer.Process) (function, error) {
		a, err := p.Get("alpha")
		if err == nil && len(a.Data) != s.x.Rows {
			err = fmt.Errorf("bench: fit: the library returned %d coefficients for %d rows", len(a.Data), s.x.Rows)
		}
		return function{points: s.x, coef: a.Data}, err
	}
}

// direct solves (K + λI)α = y by Cholesky in the precision of T. It uses packed storage if the device supports it.
func direct[T backend.Float](q backend.Backend[T], k kernels.Kernel, x, y backend.Host[T], lambda T) (alpha backend.Host[T], err error) {
	alpha = backend.NewHost[T](y.Rows, y.Cols)
	mem := placer[T]{q: q}
	defer mem.free()
	mx, b := mem.place(x), mem.alloc(y.Rows, y.Cols) // the solution overwrites b, a copy of y
	if mem.err != nil {
		return alpha, mem.err
	}
	if err := q.Upload(b, y); err != nil {
		return alpha, err
	}
	if h, ok := q.(backend.PackedBackend[T]); ok {
		a, err := h.NewPacked(x.Rows)
		if err != nil {
			return alpha, err
		}
		defer a.Free()
		h.GramPacked(a, k, mx)
		h.AddDiagPacked([]T{lambda}, a)
		if err := h.PotrfPacked(a); err != nil {
			return alpha, err
		}
		h.TrsmPacked(backend.NoTrans, a, b)
		h.TrsmPacked(backend.Transpose, a, b)
		return alpha, q.Download(alpha, b)
	}
	a := mem.alloc(x.Rows, x.Rows)
	if mem.err != nil {
		return alpha, mem.err
	}
	q.Gram(a, k, mx, mx)
	q.AddDiag([]T{lambda}, a)
	if err := q.Potrf(backend.Lower, a); err != nil {
		return alpha, err
	}
	twoTriangles(q, a, b)
	return alpha, q.Download(alpha, b)
}

func (c *fitBench) byGonum(p Peer, s *synthetic, precision string) competitor {
	n := s.x.Rows
	x := mat.NewDense(n, s.x.Cols, s.x.Data)
	y := mat.NewVecDense(n, s.y.Data)
	w := newCompetitor(p.Name, func() (*mat.VecDense, error) {
		if err := c.ctx.Err(); err != nil {
			return nil, err
		}
		k := mat.NewSymDense(n, nil)
		k.SymOuterK(1, x)
		norms := make([]float64, n)
		for i := range norms {
			norms[i] = k.At(i, i)
		}
		raw, gamma := k.RawSymmetric(), s.gamma()
		for i := range n {
			row := raw.Data[i*raw.Stride+i : i*raw.Stride+n]
			for j, v := range row {
				row[j] = math.Exp(-gamma * max(norms[i]+norms[i+j]-2*v, 0))
			}
			row[0] += s.lambda
		}
		var factor mat.Cholesky
		if !factor.Factorize(k) {
			return nil, errors.New("bench: fit: gonum: the matrix is not positive definite")
		}
		alpha := mat.NewVecDense(n, nil)
		return alpha, factor.SolveVecTo(alpha, y)
	}, func(alpha *mat.VecDense) (function, error) {
		return function{points: s.x, coef: alpha.RawVector().Data}, nil
	})
	w.Optional = true
	if w.Reason = p.Missing; w.Reason == "" && precision == "float32" {
		w.Reason = "gonum/mat has no float32"
	}
	w.Enter = func() func() { return p.Library.Threads(c.Threads[0]) }
	return w
}

// centersSeed is the seed with which scikit-learn draws the centers for all implementations.
const centersSeed = 7

// nystrom returns the contest in which all implementations fit kernel ridge regression with the same M centers.
func (c *fitBench) nystrom(j judge) contest {
	s, n := j.synthetic, j.x.Rows
	m := c.Centers
	if m == 0 {
		m = int(10 * math.Sqrt(float64(n)))
	}
	m = min(m, n)
	centers := backend.NewHost[float64](m, c.Features)
	setCenters := func(rows []int) {
		for i, row := range rows {
			copy(centers.Row(i), s.x.Row(row))
		}
	}
	setCenters(rand.New(rand.NewPCG(centersSeed, 0)).Perm(n)[:m])
	k := contest{task: "nystrom", peers: []string{sklearn}, parameters: s.parameters(), residual: j.normalResidual, limit: nystromLimit(n, m, c.Features, s.lambda)}
	k.parameters["centers"], k.parameters["seed"], k.parameters["n"] = m, centersSeed, n
	k.sendData = func(p *pypeer.Process) error {
		err := putAll(s.x, s.y)(p)
		if err == nil {
			_, err = p.Run("centers", k.parameters)
		}
		if err != nil {
			return err
		}
		h, err := p.Get("rows")
		rows := make([]int, len(h.Data))
		for i, v := range h.Data {
			rows[i] = int(v)
		}
		setCenters(rows)
		return err
	}
	k.result = func(p *pypeer.Process) (function, error) {
		points, err := p.Get("centers")
		if err != nil {
			return function{}, err
		}
		beta, err := p.Get("beta")
		return function{points: points, coef: beta.Data}, err
	}
	k.mercer = func(d backend.Device) (list []competitor) {
		for _, method := range []solvers.Method{solvers.Auto, solvers.Normal} {
			name := ownName(d)
			if method != solvers.Auto {
				name += directName
			}
			list = append(list, newCompetitor(name, func() (*solvers.StreamResult, error) {
				return solvers.SolveNystrom(c.ctx, d, solvers.NystromProblem{
					Kernel: s.kernel, Data: solvers.InMemory(s.x, s.y, nil, nil), Centers: centers, Lambda: s.lambda,
				}, solvers.StreamParams{Method: method, Tol: fitTol, Memory: c.Memory})
			}, func(res *solvers.StreamResult) (function, error) {
				return function{points: centers, coef: res.Beta.Data}, nil
			}))
		}
		return list
	}
	return k
}

// nystromLimit bounds the residual, divided by ‖Φᵀy‖, of a solution that uses S^(−1/2), as in scikit-learn. Here
// Φ = k(X, c) and S = k(c, c) for M centers c, and u is the unit roundoff:
//   - The condition number κ of S, without negligible eigenvalues, is at most M/λ.
//   - ΦS^(−1/2) has a relative error of √κ·(d + 8 + 10√M)u.
//   - Solving the normal equations adds an error of 10√n·u·n/λ.
//
// The factor 1000 covers the ratio of matrix norms to ‖Φᵀy‖.
func nystromLimit(n, m, d int, lambda float64) float64 {
	u := 0x1p-53
	formError := math.Sqrt(float64(m)/lambda) * (float64(d) + 8 + 10*math.Sqrt(float64(m))) * u
	solveError := 10 * math.Sqrt(float64(n)) * u * float64(n) / lambda
	return max(1000*(formError+solveError), fitTol)
}

// These are the parameters of ε-support vector regression.
const (
	svrC       = 1.0
	svrEpsilon = 0.1
	svrTol     = 1e-3
	svrCache   = 200 << 20
)

func (c *fitBench) svr(j judge) contest {
	s := j.synthetic
	k := contest{task: "svr", peers: []string{sklearn}, parameters: s.parameters(), sendData: putAll(s.x, s.y)}
	k.parameters["c"], k.parameters["epsilon"], k.parameters["tol"], k.parameters["cache"] = svrC, svrEpsilon, svrTol, svrCache
	k.residual = func(f function) (float64, error) { return j.gap(f, svrC, svrEpsilon) }
	// SMO ends when no pair of samples violates the optimality conditions by more than tol (Fan, Chen and Lin
	// 2005). For some intercept, each sample then adds at most tol·C to the gap; the factor 2 allows for its error.
	k.limit = 2 * svrTol * svrC * float64(s.x.Rows) / j.idle(svrC, svrEpsilon)
	k.result = func(p *pypeer.Process) (function, error) {
		beta, err := p.Get("beta")
		if err != nil {
			return function{}, err
		}
		b, err := p.Get("intercept")
		if err != nil {
			return function{}, err
		}
		return function{points: s.x, coef: beta.Data, intercept: b.Data[0]}, nil
	}
	k.mercer = func(d backend.Device) []competitor {
		l := learners.SVR{Kernel: s.kernel, C: svrC, Epsilon: svrEpsilon, Tol: svrTol, Cache: svrCache, NoStandardize: true}
		return []competitor{newCompetitor(ownName(d), func() (*learners.SupportModel, error) {
			return l.Fit(c.ctx, d, matrixOf(s.x), matrixOf(s.y), learners.Options{Memory: c.Memory})
		}, s.allRows)}
	}
	return k
}

// allRows returns m as a function with a coefficient for each sample, which is 0 unless it is a support vector.
func (s *synthetic) allRows(m *learners.SupportModel) (function, error) {
	beta, values := make([]float64, s.x.Rows), m.Beta()
	support, _ := m.Trace()
	for j, i := range support {
		beta[i] = values[j]
	}
	return function{points: s.x, coef: beta, intercept: m.Intercept()}, nil
}

// nearest is the number of neighbors in a prediction. The predictions for at least checkedMeans samples are checked.
const nearest, checkedMeans = 5, 100

// neighbors returns the contest of predictions for all samples by the mean targets of their nearest samples.
func (c *fitBench) neighbors(j judge) contest {
	s := j.synthetic
	k := contest{task: "neighbors", peers: []string{sklearn}, parameters: map[string]any{"k": nearest}, sendData: putAll(s.x, s.y)}
	// The mean has the rounding errors of nearest − 1 additions and a division.
	k.limit = nearest * 0x1p-53
	k.residual = func(f function) (float64, error) {
		maxError, largest := 0.0, floats.Norm(s.y.Data, math.Inf(1))
		for i := 0; i < s.x.Rows; i += max(1, s.x.Rows/checkedMeans) {
			distances, order := make([]float64, s.x.Rows), make([]int, s.x.Rows)
			for p := range distances {
				distances[p] = floats.Distance(s.x.Row(i), s.x.Row(p), 2)
			}
			floats.Argsort(distances, order)
			mean := 0.0
			for _, p := range order[:nearest] {
				mean += s.y.Data[p] / nearest
			}
			maxError = max(maxError, math.Abs(f.values[i]-mean)/largest)
		}
		return maxError, nil
	}
	k.result = func(p *pypeer.Process) (function, error) {
		v, err := p.Get("values")
		if err == nil && len(v.Data) != s.x.Rows {
			err = fmt.Errorf("bench: fit: the library returned %d means for %d rows", len(v.Data), s.x.Rows)
		}
		return function{values: v.Data}, err
	}
	k.mercer = func(d backend.Device) []competitor {
		return []competitor{newCompetitor(ownName(d), func() (*mat.Dense, error) {
			m, err := learners.KernelKNN{K: nearest}.Fit(c.ctx, d, matrixOf(s.x), matrixOf(s.y), learners.Options{Memory: c.Memory})
			if err != nil {
				return nil, err
			}
			return m.Predict(c.ctx, d, matrixOf(s.x))
		}, func(m *mat.Dense) (function, error) { return function{values: m.RawMatrix().Data}, nil })}
	}
	return k
}

func matrixOf(h backend.Host[float64]) *mat.Dense { return mat.NewDense(h.Rows, h.Cols, h.Data) }

// file returns the contest in which all implementations read a CSV file, fit a kernel ridge model and save the model.
func (c *fitBench) file(j judge) (contest, error) {
	s, table := j.synthetic, filepath.Join(c.folder, "table.csv")
	k := contest{task: "file", peers: []string{sklearn}, parameters: s.parameters(), result: alphaOf(s), residual: j.residual, limit: ridgeLimit(j.x.Rows, c.Features, "float64", s.lambda)}
	k.parameters["csv"], k.parameters["model"] = table, filepath.Join(c.folder, "sklearn.joblib")
	k.mercer = func(d backend.Device) []competitor {
		return []competitor{newCompetitor(ownName(d), func() (*learners.KernelRidgeModel, error) {
			return c.fromFile(d, s, table, filepath.Join(c.folder, "mercer.safetensors"))
		}, func(m *learners.KernelRidgeModel) (function, error) {
			return function{points: s.x, coef: m.Alpha().RawMatrix().Data}, nil
		})}
	}
	return k, s.writeCSV(table)
}

func (c *fitBench) fromFile(d backend.Device, s *synthetic, table, model string) (*learners.KernelRidgeModel, error) {
	t, err := dataset.Read(table, nil)
	if err != nil {
		return nil, err
	}
	e, err := dataset.Learn(t, dataset.Rules{Targets: []string{"y"}})
	if err != nil {
		return nil, err
	}
	x, err := e.Features(t)
	if err != nil {
		return nil, err
	}
	y, err := e.Targets(t)
	if err != nil {
		return nil, err
	}
	l := learners.KernelRidge{Kernel: s.kernel, Lambda: s.lambda, Tol: fitTol, NoIntercept: true}
	m, err := l.Fit(c.ctx, d, x, y, learners.Options{Memory: c.Memory})
	if err != nil {
		return nil, err
	}
	return m, modelfile.Save(model, modelfile.Bundle{Model: m, Encoder: e})
}

// writeCSV writes X and y with all digits to a CSV file with a header.
func (s *synthetic) writeCSV(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := csv.NewWriter(f)
	line := make([]string, s.x.Cols+1)
	for j := range line {
		line[j] = fmt.Sprintf("x%d", j+1)
	}
	line[s.x.Cols] = "y"
	_ = w.Write(line) // w.Error below returns the first error
	for i := range s.x.Rows {
		for j, v := range s.x.Row(i) {
			line[j] = fmt.Sprint(v)
		}
		line[s.x.Cols] = fmt.Sprint(s.y.Data[i])
		_ = w.Write(line)
	}
	w.Flush()
	return errors.Join(w.Error(), f.Close())
}
