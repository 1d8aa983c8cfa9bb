package learners

import (
	"context"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/solvers/svm"
	"gonum.org/v1/gonum/mat"
)

// SVCProbabilityModel is a fitted SVC that knows probabilities.
type SVCProbabilityModel struct {
	SVCModel
	// Of each pair the probability of the second class is
	// 1/(1 + exp(A f + B)); A in row 0, B in row 1.
	sigmoid backend.Host[float64]
}

// FitProbabilities is Fit, and fits for each pair of classes a sigmoid to decision
// values of samples that the machine has not seen: those of five machines, each
// fitted to four fifths of the pair (Platt 2000, with the algorithm of Lin, Lin
// and Weng 2007). For K > 2 the probabilities of the pairs are coupled (Wu, Lin
// and Weng 2004, their second method). It costs six times as much as Fit. The
// class that is most probable need not be the one that is predicted.
func (l SVC) FitProbabilities(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (m *SVCProbabilityModel, err error) {
	defer named(svcName, &m, &err)
	const share = 1. / (1 + svm.Parts)
	model, p, t, err := l.fit(ctx, dev, x, y, o, share)
	if err != nil {
		return nil, err
	}
	a, b, err := p.Sigmoids(t, share, l.Seed)
	return &SVCProbabilityModel{SVCModel: *model, sigmoid: backend.Host[float64]{Rows: 2, Cols: len(a), Stride: len(a), Data: append(a, b...)}}, err
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
				at := svm.At(a, c, k)
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
		svm.Couple(row, r)
	}
	return out, nil
}

// State implements Model: that of the SVCModel, and "sigmoid", 2×K(K−1)/2.
func (m *SVCProbabilityModel) State() State { return stateOf(m) }

func (m *SVCProbabilityModel) fields() []field {
	return append(m.machineFields(), fixedField("probability", true), matrixField("sigmoid", &m.sigmoid, exactly(2), func() int { return len(m.b) }))
}
