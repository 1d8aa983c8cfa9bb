package bench

import (
	"bufio"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/bench/pypeer"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/modelfile"
	"github.com/mercer-go/mercer/solvers"
)

// centersSeed is that of scikit-learn's choice of centers, which all get.
const centersSeed = 7

// only returns the library of scikit-learn alone: the other ones have no part in
// fits but ridge.
func (c *fitBench) only() []fitPeer {
	return slices.DeleteFunc(slices.Clone(c.peers), func(p fitPeer) bool { return p.name != sklearn })
}

// nystrom makes the entries of kernel ridge regression with M centers: those that
// scikit-learn's Nystroem draws, where it is here, so that all solve one problem.
func (c *fitBench) nystrom(_ string, n int) ([]Entry, error) {
	s := newSynthetic(n, c.Features, fitLambda)
	j := c.judge(s)
	m := c.Centers
	if m == 0 {
		m = int(10 * math.Sqrt(float64(n)))
	}
	m = min(m, n)
	parameters := s.parameters()
	parameters["centers"], parameters["seed"], parameters["n"] = m, centersSeed, n
	rows := rand.New(rand.NewPCG(centersSeed, 0)).Perm(n)[:m]
	var list []candidate
	for _, p := range c.only() {
		w := pythonCandidate(p.name, p, "nystrom", parameters, func(p *pypeer.Process) (function, error) {
			points, err := p.Get("centers")
			if err != nil {
				return function{}, err
			}
			beta, err := p.Get("beta")
			return function{points: points, coef: beta.Data}, err
		})
		if p.python != nil {
			if err := putAll(p.python, s.x, s.y); err != nil {
				w.reason = err.Error()
			} else if rows, err = drawn(p.python, parameters); err != nil {
				return nil, err
			}
		}
		list = append(list, w)
	}
	centers := backend.NewHost[float64](m, c.Features)
	for i, row := range rows {
		copy(centers.Row(i), s.x.Row(row))
	}
	var own []candidate
	for _, d := range c.devices {
		for _, method := range []solvers.Method{solvers.Auto, solvers.Normal} {
			name := ownName(d)
			if method != solvers.Auto {
				name += directName
			}
			var res *solvers.NystromResult
			own = append(own, candidate{
				name: name, own: true,
				run: func() (err error) {
					res, err = solvers.SolveNystrom(c.ctx, d, solvers.NystromProblem{
						Kernel: s.kernel, Data: solvers.InMemory(s.x, s.y, nil), Centers: centers, Lambda: s.lambda,
					}, solvers.StreamParams{Method: method, Tol: fitTol, Memory: c.Memory})
					return err
				},
				result: func() (function, error) {
					if res == nil {
						return function{}, errNothing
					}
					return function{points: centers, coef: res.Beta.Data}, nil
				},
			})
		}
	}
	return c.entries(append(own, list...), j, j.normalResidual, nystromLimit(n, m, c.Features, s.lambda)), nil
}

// nystromLimit is the residual that a solution by way of S^(−1/2) can leave, as
// scikit-learn's: Φ S^(−1/2) is formed with an error of √κ·(d + 8 + 10√M)u relative
// to its norm, κ ≤ M/λ being the condition of S where it matters beside λ, and the
// normal equations of it are solved with one of 10√n·u times their condition,
// which is at most nM/λ over M. The margin of 1000 is the factor by which norms of
// matrices exceed what the residual divides by, ‖Φᵀy‖, for targets of mean 0.
func nystromLimit(n, m, d int, lambda float64) float64 {
	u := 0x1p-53
	forming := math.Sqrt(float64(m)/lambda) * (float64(d) + 8 + 10*math.Sqrt(float64(m))) * u
	solving := 10 * math.Sqrt(float64(n)) * u * float64(n) / lambda
	return max(1000*(forming+solving), fitTol)
}

// drawn is what rows scikit-learn takes for centers.
func drawn(p *pypeer.Process, parameters map[string]any) ([]int, error) {
	if _, err := p.Run("centers", parameters); err != nil {
		return nil, err
	}
	h, err := p.Get("rows")
	if err != nil {
		return nil, err
	}
	rows := make([]int, len(h.Data))
	for i, v := range h.Data {
		rows[i] = int(v)
	}
	return rows, nil
}

func (c *fitBench) entries(list []candidate, j judge, residual func(function) (float64, error), limit float64) []Entry {
	entries := make([]Entry, len(list))
	for i, w := range list {
		entries[i] = c.entry(w, j, residual, limit)
	}
	return entries
}

// The parameters of ε-support vector regression.
const (
	svrC       = 1.0
	svrEpsilon = 0.1
	svrTol     = 1e-3
	svrCache   = 200 << 20
)

// svr makes the entries of ε-support vector regression.
func (c *fitBench) svr(_ string, n int) ([]Entry, error) {
	s := newSynthetic(n, c.Features, fitLambda)
	j := c.judge(s)
	var list []candidate
	for _, d := range c.devices {
		var m *learners.SupportModel
		list = append(list, candidate{
			name: ownName(d), own: true,
			run: func() (err error) {
				l := learners.SVR{Kernel: s.kernel, C: svrC, Epsilon: svrEpsilon, Tol: svrTol, Cache: svrCache}
				m, err = l.Fit(c.ctx, d, matrixOf(s.x), matrixOf(s.y), learners.Options{Memory: c.Memory})
				return err
			},
			result: func() (function, error) { return s.allRows(m) },
		})
	}
	parameters := s.parameters()
	parameters["c"], parameters["epsilon"], parameters["tol"], parameters["cache"] = svrC, svrEpsilon, svrTol, svrCache
	for _, p := range c.only() {
		w := pythonCandidate(p.name, p, "svr", parameters, func(p *pypeer.Process) (function, error) {
			beta, err := p.Get("beta")
			if err != nil {
				return function{}, err
			}
			b, err := p.Get("intercept")
			if err != nil {
				return function{}, err
			}
			return function{points: s.x, coef: beta.Data, intercept: b.Data[0]}, nil
		})
		if p.python != nil {
			if err := putAll(p.python, s.x, s.y); err != nil {
				w.reason = err.Error()
			}
		}
		list = append(list, w)
	}
	// SMO ends when no pair of samples violates the conditions of optimality by more
	// than tol (Fan, Chen and Lin 2005): with a b between the two, y − f(x) is within
	// tol of where its β says it is for every sample, which adds at most tol·C to the
	// gap. 2, because b is a mean over samples and may lie beside the best.
	limit := 2 * svrTol * svrC * float64(n) / j.idle(svrC, svrEpsilon)
	return c.entries(list, j, func(f function) (float64, error) { return j.gap(f, svrC, svrEpsilon) }, limit), nil
}

// allRows is m with a coefficient for every sample, in their order, which is that
// of its support vectors.
func (s *synthetic) allRows(m *learners.SupportModel) (function, error) {
	if m == nil {
		return function{}, errNothing
	}
	beta, support, next := make([]float64, s.x.Rows), m.Support(), 0
	for i := range s.x.Rows {
		if next < support.RawMatrix().Rows && slices.Equal(support.RawRowView(next), s.x.Row(i)) {
			beta[i] = m.Beta()[next]
			next++
		}
	}
	if next != support.RawMatrix().Rows {
		return function{}, fmt.Errorf("bench: fit: svr: %d of %d support vectors are samples", next, support.RawMatrix().Rows)
	}
	return function{points: s.x, coef: beta, intercept: m.Intercept()}, nil
}

func matrixOf(h backend.Host[float64]) *mat.Dense { return mat.NewDense(h.Rows, h.Cols, h.Data) }

// file makes the entries of kernel ridge regression from a CSV file to a model in
// another file.
func (c *fitBench) file(_ string, n int) (entries []Entry, err error) {
	s := newSynthetic(n, c.Features, fitLambda)
	j := c.judge(s)
	folder, err := os.MkdirTemp("", "mercer-bench-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(folder)
		}
	}()
	table := filepath.Join(folder, "table.csv")
	if err := s.writeCSV(table); err != nil {
		return nil, err
	}
	var list []candidate
	for _, d := range c.devices {
		var m *learners.KernelRidgeModel
		list = append(list, candidate{
			name: ownName(d), own: true,
			run: func() (err error) {
				m, err = c.fromFile(d, s, table, filepath.Join(folder, "mercer.safetensors"))
				return err
			},
			result: func() (function, error) {
				if m == nil {
					return function{}, errNothing
				}
				return function{points: s.x, coef: m.Alpha().RawMatrix().Data}, nil
			},
		})
	}
	parameters := s.parameters()
	parameters["csv"], parameters["model"] = table, filepath.Join(folder, "sklearn.joblib")
	for _, p := range c.only() {
		list = append(list, pythonCandidate(p.name, p, "file", parameters, alphaOf(s)))
	}
	last := &list[len(list)-1]
	before := last.close
	last.close = func() {
		if before != nil {
			before()
		}
		os.RemoveAll(folder)
	}
	return c.entries(list, j, j.residual, ridgeLimit(n, c.Features, "float64", s.lambda)), nil
}

// fromFile reads a table, fits and saves the model.
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
	l := learners.KernelRidge{Kernel: s.kernel, Lambda: s.lambda, Solver: solvers.Params{Tol: fitTol}}
	m, err := l.Fit(c.ctx, d, x, y, learners.Options{Memory: c.Memory})
	if err != nil {
		return nil, err
	}
	return m, modelfile.Save(model, modelfile.Bundle{Model: m, Encoder: e})
}

// writeCSV writes X and y with a header line, every digit of them.
func (s *synthetic) writeCSV(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	for j := range s.x.Cols {
		fmt.Fprintf(w, "x%d,", j+1)
	}
	w.WriteString("y\n")
	var line []byte
	for i := range s.x.Rows {
		line = line[:0]
		for _, v := range s.x.Row(i) {
			line = append(strconv.AppendFloat(line, v, 'g', -1, 64), ',')
		}
		line = append(strconv.AppendFloat(line, s.y.Data[i], 'g', -1, 64), '\n')
		w.Write(line)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}
