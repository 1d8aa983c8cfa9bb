package learners

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/mercer-go/mercer/backend"
	"gonum.org/v1/gonum/mat"
)

// SVCProbabilityModel is a fitted SVC that knows probabilities.
type SVCProbabilityModel struct {
	SVCModel
	// Of each pair the probability of the second class is
	// 1/(1 + exp(A f + B)); A in row 0, B in row 1.
	sigmoid backend.Host[float64]
}

// svcParts is into how many parts the samples of a pair are divided for the
// decision values that a sigmoid is fitted to.
const svcParts = 5

// FitProbabilities is Fit, and fits for each pair of classes a sigmoid to decision
// values of samples that the machine has not seen: those of five machines, each
// fitted to four fifths of the pair (Platt 2000, with the algorithm of Lin, Lin
// and Weng 2007). For K > 2 the probabilities of the pairs are coupled (Wu, Lin
// and Weng 2004, their second method). It costs six times as much as Fit. The
// class that is most probable need not be the one that is predicted.
func (l SVC) FitProbabilities(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (*SVCProbabilityModel, error) {
	f, err := l.prepare(ctx, dev, x, y, o)
	if err != nil {
		return nil, fmt.Errorf("learners: svc: %w", err)
	}
	m, err := f.fitProbabilities()
	if err != nil {
		return nil, fmt.Errorf("learners: svc: %w", err)
	}
	return m, nil
}

func (f *svcFit) fitProbabilities() (*SVCProbabilityModel, error) {
	const first = 1. / (1 + svcParts)
	f.share = first
	model, err := f.fit()
	if err != nil {
		return nil, err
	}
	f.base, f.share = first, 1-first
	m := &SVCProbabilityModel{SVCModel: *model, sigmoid: backend.NewHost[float64](2, len(model.b))}
	err = f.each(func(pair, a, b int, t *task) error {
		values, sign, weight, err := f.heldOut(pair, a, b)
		if err != nil {
			return err
		}
		m.sigmoid.Row(0)[pair], m.sigmoid.Row(1)[pair] = sigmoid(values, sign, weight)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, f.t.at("solve", 1)
}

// heldOut returns the decision values of a pair's rows by machines that were
// fitted without them.
func (f *svcFit) heldOut(pair, a, b int) (values, sign, weight []float64, err error) {
	r := rand.New(rand.NewPCG(f.l.Seed, uint64(pair)))
	// Each class is divided by itself, so that no machine lacks one of two
	// that have two rows.
	parts := func(rows []int) (in, out [svcParts][]int) {
		order := r.Perm(len(rows))
		for k, at := range order {
			for part := range svcParts {
				if k%svcParts == part {
					out[part] = append(out[part], rows[at])
				} else {
					in[part] = append(in[part], rows[at])
				}
			}
		}
		return in, out
	}
	inA, outA := parts(f.rows[a])
	inB, outB := parts(f.rows[b])
	for part := range svcParts {
		n := len(outA[part]) + len(outB[part])
		if n == 0 {
			continue
		}
		var decision []float64
		switch {
		case len(inA[part]) == 0 || len(inB[part]) == 0: // nothing is known of one
			decision = make([]float64, n)
		default:
			p := f.problem(inA[part], inB[part])
			res, err := f.machine(nil, p)
			if err != nil {
				return nil, nil, nil, err
			}
			x := f.problem(outA[part], outB[part]).x
			if decision, err = kernelSum(f.t.B, f.kernel, x, p.x, res.beta); err != nil {
				return nil, nil, nil, err
			}
			for i := range decision {
				decision[i] += res.b
			}
		}
		values = append(values, decision...)
		for _, i := range outA[part] {
			sign, weight = append(sign, -1), append(weight, f.weight[i])
		}
		for _, i := range outB[part] {
			sign, weight = append(sign, 1), append(weight, f.weight[i])
		}
	}
	return values, sign, weight, nil
}

// sigmoid returns the A and B with which 1/(1 + exp(A f + B)) tells the
// probability of sign 1 best, by Newton's method with a backtracking line search
// on the cross-entropy against Platt's regularised targets (Lin, Lin and Weng
// 2007).
func sigmoid(values, sign, weight []float64) (a, b float64) {
	var positive, negative float64
	for i, s := range sign {
		if s > 0 {
			positive += weight[i]
		} else {
			negative += weight[i]
		}
	}
	target := func(i int) float64 {
		if sign[i] > 0 {
			return (positive + 1) / (positive + 2)
		}
		return 1 / (negative + 2)
	}
	loss := func(a, b float64) (sum float64) {
		for i, f := range values {
			z, t := a*f+b, target(i)
			if z >= 0 {
				sum += weight[i] * (t*z + math.Log1p(math.Exp(-z)))
			} else {
				sum += weight[i] * ((t-1)*z + math.Log1p(math.Exp(z)))
			}
		}
		return sum
	}
	b = math.Log((negative + 1) / (positive + 1))
	now := loss(a, b)
	for range 100 {
		// Gradient and Hessian, with a ridge that keeps it definite.
		haa, hbb, hab, ga, gb := 1e-12, 1e-12, 0.0, 0.0, 0.0
		for i, f := range values {
			z := a*f + b
			var p, q float64
			if z >= 0 {
				p, q = math.Exp(-z)/(1+math.Exp(-z)), 1/(1+math.Exp(-z))
			} else {
				p, q = 1/(1+math.Exp(z)), math.Exp(z)/(1+math.Exp(z))
			}
			d2, d1 := weight[i]*p*q, weight[i]*(target(i)-p)
			haa += f * f * d2
			hbb += d2
			hab += f * d2
			ga += f * d1
			gb += d1
		}
		if math.Abs(ga) < 1e-5 && math.Abs(gb) < 1e-5 {
			break
		}
		det := haa*hbb - hab*hab
		da, db := -(hbb*ga-hab*gb)/det, -(haa*gb-hab*ga)/det
		slope, step := ga*da+gb*db, 1.0
		for ; step >= 1e-10; step /= 2 {
			if next := loss(a+step*da, b+step*db); next < now+1e-4*step*slope {
				a, b, now = a+step*da, b+step*db, next
				break
			}
		}
		if step < 1e-10 {
			break // as good as rounding allows
		}
	}
	return a, b
}

// Proba implements Prober.
func (m *SVCProbabilityModel) Proba(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	pairs, err := m.Pairs(ctx, dev, x)
	if err != nil {
		return nil, err
	}
	n, _ := pairs.Dims()
	k := m.classes.Len()
	out, r := mat.NewDense(n, k, nil), mat.NewDense(k, k, nil)
	for i := range n {
		row := out.RawRowView(i)
		for a := range k {
			for c := a + 1; c < k; c++ {
				at := pairOf(a, c, k)
				z := m.sigmoid.Row(0)[at]*pairs.At(i, at) + m.sigmoid.Row(1)[at]
				// Never 0 or 1: one pair does not decide alone.
				second := min(max(1/(1+math.Exp(z)), 1e-7), 1-1e-7)
				r.Set(c, a, second)
				r.Set(a, c, 1-second)
			}
		}
		if k == 2 {
			row[0], row[1] = r.At(0, 1), r.At(1, 0)
			continue
		}
		couple(row, r)
	}
	return out, nil
}

// couple sets p to the probabilities that minimise Σ_{t≠u} (r_ut p_t − r_tu p_u)²
// with Σp = 1, r_tu being the probability of t among t and u (Wu, Lin and Weng
// 2004, algorithm 2).
func couple(p []float64, r *mat.Dense) {
	k := len(p)
	q := mat.NewDense(k, k, nil)
	for t := range k {
		p[t] = 1 / float64(k)
		for u := range k {
			if u != t {
				q.Set(t, t, q.At(t, t)+r.At(u, t)*r.At(u, t))
				q.Set(t, u, -r.At(u, t)*r.At(t, u))
			}
		}
	}
	qp := make([]float64, k)
	for range max(100, k) {
		total := 0.0
		for t := range k {
			qp[t] = 0
			for u, v := range q.RawRowView(t) {
				qp[t] += v * p[u]
			}
			total += p[t] * qp[t]
		}
		worst := 0.0
		for t := range k {
			worst = max(worst, math.Abs(qp[t]-total))
		}
		if worst < 0.005/float64(k) {
			break
		}
		for t := range k {
			diff := (total - qp[t]) / q.At(t, t)
			p[t] += diff
			total = (total + diff*(diff*q.At(t, t)+2*qp[t])) / (1 + diff) / (1 + diff)
			for u, v := range q.RawRowView(t) {
				qp[u] = (qp[u] + diff*v) / (1 + diff)
				p[u] /= 1 + diff
			}
		}
	}
	sum := 0.0
	for _, v := range p {
		sum += v
	}
	for t := range p {
		p[t] /= sum
	}
}

// State implements Model: that of the SVCModel, and "sigmoid", 2×K(K−1)/2.
func (m *SVCProbabilityModel) State() State { return stateOf(m) }

func (m *SVCProbabilityModel) fields() []field {
	return append(m.machineFields(), fixedParam("probability", true), matrixField("sigmoid", &m.sigmoid, exactly(2), func() int { return len(m.b) }))
}
