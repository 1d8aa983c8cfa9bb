package onnx

import (
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/svm"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

// logistic returns 1/(1 + e^−v).
func (g *graph) logistic(v value) value {
	one := g.number(1)
	return g.op("Div", one, g.op("Add", one, g.op("Exp", g.op("Neg", v))))
}

// probabilities returns the n×K probabilities for the decision values of logistic regression. If machines is true,
// each of K > 2 classes has its own logistic regression, and the K probabilities are divided by their sum.
func (g *graph) probabilities(decision value, classes int, machines bool) value {
	switch {
	case classes == 2:
		return g.concat([]value{g.logistic(g.op("Neg", decision)), g.logistic(decision)})
	case machines:
		p := g.logistic(decision)
		return g.op("Div", p, g.sum(p, 1, true))
	}
	return g.node("Softmax", []attribute{intAttribute("axis", 1)}, decision)
}

// memberships returns the n×t predictions of kernel-knn and kernel-vote: weighted means or sums of the targets.
func (g *graph) memberships(m learners.Model, x sample) value {
	parts, state := learners.PartsOf(m), m.State()
	z := densePoints(parts.Points)
	weights, targets := state.Arrays["weights"].Row(0), state.Arrays["targets"]
	values := g.gram(parts.Kernel, x, z)
	if k, ok := state.Params["k"].(float64); ok {
		return g.nearest(values, parts.Kernel, z, weights, targets, k)
	}
	weighted := mat.NewDense(targets.Rows, targets.Cols, nil)
	for i, w := range weights {
		for j, y := range targets.Row(i) {
			weighted.Set(i, j, w*y)
		}
	}
	sums := g.product(values, g.matrix(weighted), false)
	if _, ok := m.(learners.Classifier); ok {
		return sums
	}
	return g.op("Div", sums, g.product(values, g.numbers(weights, len(weights), 1), false))
}

// nearest returns weighted means of the targets of the samples z nearest to x. It ranks them by K(z, z) − 2K(x, z) for
// the kernel K, and takes samples up to the total weight k. Among equal distances, TopK selects the smaller index.
func (g *graph) nearest(values value, kernel kernels.Kernel, z backend.Host[float64], weights []float64, targets backend.Host[float64], k float64) value {
	diag := make([]float64, z.Rows)
	for i := range diag {
		diag[i] = kernels.Diag(kernel, z.Row(i))
	}
	// count is the largest possible number of neighbors, which occurs if they have the smallest weights.
	count, sum := 0, 0.0
	for _, w := range slices.Sorted(slices.Values(weights)) {
		if sum >= k {
			break
		}
		count, sum = count+1, sum+w
	}
	keys := g.op("Sub", g.numbers(diag, 1, len(diag)), g.op("Mul", values, g.number(2)))
	order := g.name()
	g.nodes = message(g.nodes, 1, encodeNode("TopK", []attribute{intAttribute("axis", 1), intAttribute("largest", 0)},
		[]value{keys, g.integers(int64(count))}, g.name(), order))
	w := g.op("Gather", g.numbers(weights, len(weights)), order)
	cumulative := g.node("CumSum", []attribute{intAttribute("exclusive", 1)}, w, g.integers(1))
	unfilled := g.op("Max", g.op("Sub", g.number(k), cumulative), g.number(0))
	weight := g.op("Div", g.op("Min", w, unfilled), g.number(k)) // n×count
	flat := make([]float64, 0, targets.Rows*targets.Cols)
	for i := range targets.Rows {
		flat = append(flat, targets.Row(i)...)
	}
	y := g.op("Gather", g.numbers(flat, targets.Rows, targets.Cols), order) // n×count×t
	return g.sum(g.op("Mul", g.op("Unsqueeze", weight, g.integers(2)), y), 1, false)
}

// pairSigns returns a matrix with a row for each pair of classes: −1 for its first class and 1 for its second.
func pairSigns(k int) *mat.Dense {
	signs := mat.NewDense(k*(k-1)/2, k, nil)
	for a := range k {
		for c := a + 1; c < k; c++ {
			signs.Set(svm.At(a, c, k), a, -1)
			signs.Set(svm.At(a, c, k), c, 1)
		}
	}
	return signs
}

// votes returns the decision values of K classes for the values of the pairs: see svm.Votes.
func (g *graph) votes(pairs value, k int) value {
	if k == 2 {
		return pairs
	}
	signs := g.matrix(pairSigns(k))
	// Initially each pair votes for its first class, which gives class c k−1−c votes. A positive value moves the vote.
	first := make([]float64, k)
	for c := range first {
		first[c] = float64(k - 1 - c)
	}
	votes := g.product(g.cast(g.op("Greater", pairs, g.number(0))), signs, false, g.numbers(first, k))
	sums := g.product(pairs, signs, false)
	tieBreak := g.op("Div", g.op("Div", sums, g.op("Add", g.op("Abs", sums), g.number(1))), g.number(3))
	return g.op("Add", votes, tieBreak)
}

// votedValues returns the decision values of a voted perceptron with the functions f_0, …, f_M: see online.Votes.Count.
func (g *graph) votedValues(m *learners.VotedModel, x sample) value {
	parts, state, classes := learners.PartsOf(m), m.State(), m.Classes()
	values := g.gram(parts.Kernel, x, densePoints(parts.Points))
	order, delta, count := state.Arrays["order"].Row(0), state.Arrays["delta"], state.Arrays["votes"].Row(0)
	index := make([]int64, len(order))
	for i, v := range order {
		index[i] = int64(v)
	}
	inner := g.node("Gather", []attribute{intAttribute("axis", 1)}, values, g.integers(index...))
	inner = g.op("Add", inner, g.number(state.Params["bias"].(float64)))
	total := 0.0
	for _, n := range count {
		total += n
	}
	hypotheses := make([]value, delta.Cols) // n×M×1 for each class: the values of f_1, …, f_M
	for c := range hypotheses {
		change := make([]float64, delta.Rows)
		for i := range change {
			change[i] = delta.Row(i)[c]
		}
		f := g.op("CumSum", g.op("Mul", inner, g.numbers(change, len(change))), g.integers(1))
		hypotheses[c] = g.op("Unsqueeze", f, g.integers(2))
	}
	votes := make([]float64, len(count)-1)
	for i := range votes {
		votes[i] = count[i+1] / total
	}
	initial := make([]float64, delta.Cols) // the votes of f_0 = 0
	initial[0] = count[0] / total
	if delta.Cols == 1 {
		if !classes.ZeroIsPositive {
			initial[0] = -initial[0]
		}
		positive := g.cast(g.positive(classes, g.op("Squeeze", hypotheses[0], g.integers(2))))
		sign := g.op("Sub", g.op("Mul", positive, g.number(2)), g.number(1))
		return g.product(sign, g.numbers(votes, len(votes), 1), false, g.number(initial[0]))
	}
	f := g.node("Concat", []attribute{intAttribute("axis", 2)}, hypotheses...)
	winner := g.node("ArgMax", []attribute{intAttribute("axis", 2), intAttribute("keepdims", 1)}, f) // n×M×1
	number := make([]int64, delta.Cols)
	for c := range number {
		number[c] = int64(c)
	}
	indicator := g.cast(g.op("Equal", winner, g.integers(number...)))
	sums := g.sum(g.op("Mul", indicator, g.numbers(votes, len(votes), 1)), 1, false)
	return g.op("Add", sums, g.numbers(initial, len(initial)))
}

// mostProbable returns the index of the class with the largest probability in each of n rows. Among classes with
// equal probabilities, it prefers the class in index.
func (g *graph) mostProbable(probabilities, index value) value {
	tied := g.node("GatherElements", []attribute{intAttribute("axis", 1)}, probabilities, g.op("Unsqueeze", index, g.integers(1)))
	largest := g.node("ReduceMax", []attribute{intsAttribute("axes", 1), intAttribute("keepdims", 1)}, probabilities)
	best := g.node("ArgMax", []attribute{intAttribute("axis", 1), intAttribute("keepdims", 0)}, probabilities)
	return g.op("Where", g.op("Squeeze", g.op("Greater", largest, tied), g.integers(1)), best, index)
}

// coupled returns the n×K probabilities of an SVC from the decision values of its pairs of classes: see
// svm.Probabilities. The rows of sigmoid are the coefficients A and B of Platt scaling for each pair.
func (g *graph) coupled(pairs value, sigmoid backend.Host[float64], k int) value {
	a, b := sigmoid.Row(0), sigmoid.Row(1)
	s := g.logistic(g.op("Neg", g.op("Add", g.op("Mul", pairs, g.numbers(a, len(a))), g.numbers(b, len(b)))))
	second := g.op("Min", g.op("Max", s, g.number(1e-7)), g.number(1-1e-7))
	first := g.op("Sub", g.number(1), second)
	if k == 2 {
		return g.concat([]value{first, second})
	}
	return g.couple(first, second, k)
}

// couple returns the n×K probabilities of K > 2 classes from the n×K(K−1)/2 probabilities of the
// first and of the second class of each pair, by the iteration of package svm (Wu, Lin and Weng
// 2004, algorithm 2). A row that has converged keeps its probabilities.
func (g *graph) couple(first, second value, k int) value {
	signs := pairSigns(k)
	pairs, _ := signs.Dims()
	lowerMatrix, upperMatrix := mat.NewDense(pairs, k*k, nil), mat.NewDense(pairs, k*k, nil)
	for a := range k {
		for c := a + 1; c < k; c++ {
			lowerMatrix.Set(svm.At(a, c, k), c*k+a, 1)
			upperMatrix.Set(svm.At(a, c, k), a*k+c, 1)
		}
	}
	lower, upper := g.matrix(lowerMatrix), g.matrix(upperMatrix)
	square := func(v value) value { return g.op("Reshape", v, g.integers(-1, int64(k), int64(k))) }
	r := square(g.op("Add", g.product(second, lower, false), g.product(first, upper, false)))
	transposed := square(g.op("Add", g.product(second, upper, false), g.product(first, lower, false)))
	diagonal := g.sum(g.op("Mul", r, r), 1, false) // n×K
	unit := make([]float64, k*k)
	for i := range k {
		unit[i*k+i] = 1
	}
	q := g.op("Sub", g.op("Mul", g.op("Unsqueeze", diagonal, g.integers(2)), g.numbers(unit, k, k)), g.op("Mul", r, transposed))
	start := g.product(second, g.matrix(mat.NewDense(pairs, k, nil)), false, g.number(1/float64(k)))
	active := g.op("Not", g.op("Less", g.sum(start, 1, true), g.number(0))) // n×1, all elements true
	p := g.loop(max(100, k), start, active, func(g *graph, p, active value) (value, value, value) {
		qp := g.sum(g.op("Mul", q, g.op("Unsqueeze", p, g.integers(1))), 2, false)
		total := g.sum(g.op("Mul", p, qp), 1, true)
		axes := []attribute{intsAttribute("axes", 1), intAttribute("keepdims", 1)}
		maxDeviation := g.node("ReduceMax", axes, g.op("Abs", g.op("Sub", qp, total)))
		active = g.op("And", active, g.op("Not", g.op("Less", maxDeviation, g.number(0.005/float64(k)))))
		next, one, two := p, g.number(1), g.number(2)
		for t := range k {
			column := g.integers(int64(t))
			element := func(v value) value { return g.node("Gather", []attribute{intAttribute("axis", 1)}, v, column) }
			qtt, qpt := element(diagonal), element(qp)
			diff := g.op("Div", g.op("Sub", total, qpt), qtt) // n×1
			grown := g.op("Add", one, diff)
			change := g.op("Mul", diff, g.op("Add", g.op("Mul", diff, qtt), g.op("Mul", two, qpt)))
			total = g.op("Div", g.op("Div", g.op("Add", total, change), grown), grown)
			row := g.op("Squeeze", element(q), g.integers(1)) // n×K
			qp = g.op("Div", g.op("Add", qp, g.op("Mul", diff, row)), grown)
			next = g.op("Div", g.op("Add", next, g.op("Mul", diff, g.numbers(unit[t*k:(t+1)*k], k))), grown)
		}
		anyActive := g.node("ReduceMax", []attribute{intAttribute("keepdims", 0)}, g.node("Cast", []attribute{intAttribute("to", int64Type)}, active))
		return g.op("Where", active, next, p), active, g.node("Cast", []attribute{intAttribute("to", boolType)}, anyActive)
	})
	return g.op("Div", p, g.sum(p, 1, true))
}
