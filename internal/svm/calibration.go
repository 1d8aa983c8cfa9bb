package svm

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/internal/elementary"
)

// sigmoid returns the A ≤ 0 and B for which 1/(1 + exp(A f + B)) best fits the probability of sign 1: they
// minimize the cross-entropy with Platt's regularized targets (Platt 1999; Lin, Lin and Weng 2007). If the values
// f and the signs are independent or negatively related, A is 0, and the probability is the mean of the targets.
func sigmoid(values, sign, weight []float64) (a, b float64) {
	scale := 0.0
	for _, f := range values {
		scale = max(scale, math.Abs(f))
	}
	if scale > 0 {
		unit := make([]float64, len(values))
		for i, f := range values {
			unit[i] = f / scale
		}
		if a, b = freeSigmoid(unit, sign, weight); a < 0 {
			return a / scale, b
		}
	}
	return 0, constant(sign, weight)
}

// constant returns the B of Platt's sigmoid 1/(1 + exp(A·f + B)) with the smallest loss for A = 0.
func constant(sign, weight []float64) float64 {
	positive, negative := weightOfSigns(sign, weight)
	high, low := positive*(positive+1)/(positive+2), negative/(negative+2)
	return elementary.Log((positive + negative - high - low) / (high + low))
}

// weightOfSigns returns the total weights of the samples of sign 1 and of sign −1.
func weightOfSigns(sign, weight []float64) (positive, negative float64) {
	for i, s := range sign {
		if s > 0 {
			positive += weight[i]
		} else {
			negative += weight[i]
		}
	}
	return positive, negative
}

// freeSigmoid returns A and B like sigmoid, but A may be positive. It uses Newton's method with a
// backtracking line search (Lin, Lin and Weng 2007).
func freeSigmoid(values, sign, weight []float64) (a, b float64) {
	positive, negative := weightOfSigns(sign, weight)
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
				sum += weight[i] * (t*z + math.Log1p(elementary.Exp(-z)))
			} else {
				sum += weight[i] * ((t-1)*z + math.Log1p(elementary.Exp(z)))
			}
		}
		return sum
	}
	b = elementary.Log((negative + 1) / (positive + 1))
	value := loss(a, b)
	for range 100 {
		// 1e-12 keeps the Hessian positive definite.
		haa, hbb, hab, ga, gb := 1e-12, 1e-12, 0.0, 0.0, 0.0
		for i, f := range values {
			z := a*f + b
			var p, q float64
			if z >= 0 {
				p, q = elementary.Exp(-z)/(1+elementary.Exp(-z)), 1/(1+elementary.Exp(-z))
			} else {
				p, q = 1/(1+elementary.Exp(z)), elementary.Exp(z)/(1+elementary.Exp(z))
			}
			d2, d1 := weight[i]*p*q, weight[i]*(target(i)-p)
			haa += f * f * d2
			hbb += d2
			hab += f * d2
			ga += f * d1
			gb += d1
		}
		if max(math.Abs(ga), math.Abs(gb)) < 1e-13*(positive+negative) {
			break
		}
		det := haa*hbb - hab*hab
		da, db := -(hbb*ga-hab*gb)/det, -(haa*gb-hab*ga)/det
		slope, step := ga*da+gb*db, 1.0
		for ; step >= 1e-10; step /= 2 {
			if next := loss(a+step*da, b+step*db); next <= value+1e-4*step*slope+16*0x1p-52*value { // accept an increase by a rounding error
				a, b, value = a+step*da, b+step*db, next
				break
			}
		}
		if step < 1e-10 {
			break // rounding errors prevent a further decrease
		}
	}
	return a, b
}

// couple sets p to the minimum of Σ_{t≠u} (r_ut p_t − r_tu p_u)² with Σp = 1, where r_tu is the probability of
// class t given that the class is t or u (Wu, Lin and Weng 2004, algorithm 2).
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
