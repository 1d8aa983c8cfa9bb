package svm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// Pairs specifies the machines of all pairs of K classes. For two classes p < q, f and b minimize the objective
// ½‖f‖² + C Σ w_i max(1 − y_i(f(x_i) + b), 0) over the rows of both classes, with y_i = −1 for class p and 1 for
// class q. If Nu is not 0, f, b and the margin ρ minimize ½‖f‖² + Σ w_i max(ρ − y_i(f(x_i) + b), 0) − Nu ρ Σw, and
// Solve divides them by ρ, which gives the machine for C = 1/ρ.
type Pairs struct {
	Kernel  kernels.Kernel
	X       numeric.Points
	Weights []float64 // weights of the rows of X
	Rows    [][]int   // the rows of each class
	Names   []string  // names of the classes in error messages
	C       float64
	Nu      float64 // ν, which CheckNu has accepted; 0 for the formulation with C
	Params  Params  // parameters without zero fields; Cache is the size of the cache of each machine

	shareGram bool  // whether the machines copy their rows of K from gram; Allot sets it
	gram      *gram // k(X, X)
}

// At returns the index of the pair of classes a < b among the pairs of k classes: (0, 1), (0, 2), …, (1, 2), ….
func At(a, b, k int) int { return a*(2*k-a-1)/2 + b - a - 1 }

// workers is the maximum number of pairs that are solved at the same time.
const workers = 8

// sharedFeatures is the minimum number of features for which the support vector machines of more than two classes share
// one matrix k(X, X). For 5600 samples of 26 classes with 16, 64 and 192 features, sharing multiplied the time of a fit
// by 1.4, 0.73 and 0.36 (two threads, AVX-512, 2026-11-27).
const sharedFeatures = 64

// Allot limits the caches of all pairs of classes that are solved at the same time to half of the memory that the
// fit may take. It makes the pairs share k(X, X) if this is faster and the memory suffices.
func (f *Pairs) Allot(dev backend.Device, memory int64) {
	n, cacheMemory := int64(f.X.Rows), CacheWithin(dev, memory, math.MaxInt64)
	shareGram := len(f.Rows) > 2 && f.X.Sparse == nil && f.X.Cols >= sharedFeatures && 8*n*n <= min(f.Params.Cache, cacheMemory)/2
	f.Params.Cache = max(min(f.Params.Cache, cacheMemory/int64(f.workers(dev))), 1) // at least 1: 0 would select the default
	f.shareGram = shareGram                                                         // f.Bytes reads f.shareGram
	f.shareGram = shareGram && f.Bytes(dev, f.X.Rows) <= run.Available(dev, memory)
}

func (f *Pairs) open(t *run.Task) error {
	if !f.shareGram {
		return nil
	}
	k, err := newGram(t.B, f.Kernel, f.X)
	f.gram = &gram{k, countedInts(f.X.Rows)}
	return err
}

func (f *Pairs) workers(dev backend.Device) int {
	k := len(f.Rows)
	return max(1, min(workers, k*(k-1)/2, dev.Info().Threads))
}

// largest returns the number of rows of the largest pair.
func (f *Pairs) largest() int {
	var sizes []int
	for _, rows := range f.Rows {
		sizes = append(sizes, len(rows))
	}
	slices.Sort(sizes)
	return sizes[len(sizes)-1] + sizes[len(sizes)-2]
}

// Bytes returns the memory of all machines for n rows, in bytes.
func (f *Pairs) Bytes(dev backend.Device, n int) int64 {
	pair := n
	if len(f.Rows) > 2 {
		pair = min(n, f.largest())
	}
	bytes := int64(f.workers(dev)) * Bytes(dev, f.Kernel, f.X, pair, f.Params.Cache, f.Nu > 0)
	if f.shareGram {
		bytes += 8 * int64(n) * int64(n)
		if _, ok := dev.F64().(backend.Wrapper[float64]); !ok {
			bytes += 8 * int64(n) * int64(n)
		}
		bytes += f.X.PlacedBytes(dev.F64(), n)
	}
	return bytes
}

// penalty returns the factor by which a weight is multiplied to give the upper bound of α.
func (f *Pairs) penalty() float64 {
	if f.Nu > 0 {
		return 1
	}
	return f.C
}

// problem returns the quadratic program of the machine for two classes, given their rows. The program uses the
// vectors of mem, and is valid until the next program uses mem.
func (f *Pairs) problem(mem *memory, first, second []int) *Problem {
	n, rows := len(first)+len(second), slices.Concat(first, second)
	var x numeric.Points
	if f.X.Sparse == nil {
		h := mem.matrix(&mem.points, n, f.X.Cols)
		for r, i := range rows {
			copy(h.Row(r), f.X.Dense.Row(i))
		}
		x = numeric.DensePoints(h)
	} else {
		x = f.X.Take(rows)
	}
	vectors := grow(&mem.program, 4*n)
	clear(vectors)
	p := &Problem{
		Kernel: f.Kernel, X: x, gram: f.gram.submatrix(rows), mem: mem,
		Sign: vectors[:n], P: vectors[n : 2*n], C: vectors[2*n : 3*n], Alpha: vectors[3*n:],
	}
	for r := range n {
		i, sign := 0, 1.0
		if r < len(first) {
			i, sign = first[r], -1
		} else {
			i = second[r-len(first)]
		}
		p.Sign[r], p.P[r], p.C[r] = sign, -1, f.penalty()*f.Weights[i]
	}
	if f.Nu > 0 {
		f.separate(p, len(first))
	}
	return p
}

// Solve solves all machines and reports the progress of the task from 0 to share. The results are in the order of At.
func (f *Pairs) Solve(t *run.Task, share float64) ([]*Result, error) {
	k := len(f.Rows)
	results := make([]*Result, k*(k-1)/2)
	if err := f.open(t); err != nil {
		return nil, err
	}
	err := f.forEachPair(t, 0, share, func(mem *memory, pair, a, b int) error {
		p := f.problem(mem, f.Rows[a], f.Rows[b])
		var err error
		if k == 2 {
			results[pair], err = SolveIn(t, p, f.Params, 0, share)
		} else {
			results[pair], err = f.quietly(t, p)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return results, t.Step("solve", share)
}

// Support collects the support vectors of all machines by class. The results are the indices of the support
// vectors in the order of their classes, the support vectors, their coefficients, and the number for each class.
// The matrix coef has K−1 columns, one for the machine with each other class in ascending order.
func (f *Pairs) Support(results []*Result) (rows []int, points numeric.Points, coef backend.Host[float64], counts []float64) {
	k := len(f.Rows)
	counts = make([]float64, k)
	for c := range k {
		for r, i := range f.Rows[c] {
			line, used := make([]float64, k-1), false
			for other := range k {
				var v float64
				switch {
				case other < c: // the machine of other and c stores the rows of class c last
					v = results[At(other, c, k)].Beta[len(f.Rows[other])+r]
					line[other] = v
				case other > c:
					v = results[At(c, other, k)].Beta[r]
					line[other-1] = v
				}
				used = used || v != 0
			}
			if used {
				rows, coef.Data = append(rows, i), append(coef.Data, line...)
				counts[c]++
			}
		}
	}
	coef.Rows, coef.Cols, coef.Stride = len(rows), k-1, k-1
	return rows, f.X.Take(rows), coef, counts
}

// quietly solves one machine without reporting progress.
func (f *Pairs) quietly(t *run.Task, p *Problem) (*Result, error) {
	return Solve(t, p, f.Params, func(float64) error { return t.Stopped() })
}

// Sigmoids fits to each machine the A ≤ 0 and B for which 1/(1 + exp(A(f(x) + b) + B)) is the probability of its
// second class, from the values f(x) + b of held-out samples in a cross-validation of Parts folds (Platt 1999).
// Sigmoids reports the progress of the task from base to 1.
func (f *Pairs) Sigmoids(t *run.Task, base float64, seed uint64) (a, b []float64, err error) {
	k := len(f.Rows)
	a, b = make([]float64, k*(k-1)/2), make([]float64, k*(k-1)/2)
	err = f.forEachPair(t, base, 1-base, func(mem *memory, pair, first, second int) error {
		values, sign, weight, err := f.heldOut(t, mem, seed, pair, first, second)
		if err != nil {
			return err
		}
		a[pair], b[pair] = sigmoid(values, sign, weight)
		return nil
	})
	if err == nil {
		err = t.Step("solve", 1)
	}
	return a, b, err
}

// Parts is the number of folds of the cross-validation in Sigmoids.
const Parts = 5

// heldOut returns the decision values of the rows of a pair, each by a machine that was fitted without this row.
func (f *Pairs) heldOut(t *run.Task, mem *memory, seed uint64, pair, a, b int) (values, sign, weight []float64, err error) {
	r := rand.New(rand.NewPCG(seed, uint64(pair)))
	// Divide each class separately: if each class has two rows, every machine has both classes.
	split := func(rows []int) (in, out [Parts][]int) {
		order := r.Perm(len(rows))
		for k, pos := range order {
			for part := range Parts {
				if k%Parts == part {
					out[part] = append(out[part], rows[pos])
				} else {
					in[part] = append(in[part], rows[pos])
				}
			}
		}
		return in, out
	}
	inA, outA := split(f.Rows[a])
	inB, outB := split(f.Rows[b])
	for part := range Parts {
		n := len(outA[part]) + len(outB[part])
		if n == 0 {
			continue
		}
		var decision []float64
		switch {
		case len(inA[part]) == 0 || len(inB[part]) == 0: // the machine would have only one class
			decision = make([]float64, n)
		default:
			p := f.problem(mem, inA[part], inB[part])
			res, err := f.quietly(t, p)
			if err != nil {
				return nil, nil, nil, err
			}
			x := f.X.Take(slices.Concat(outA[part], outB[part]))
			if decision, err = KernelSum(t.B, f.Kernel, x, p.X, res.Beta); err != nil {
				return nil, nil, nil, err
			}
			for i := range decision {
				decision[i] += res.Intercept
			}
		}
		values = append(values, decision...)
		for _, i := range outA[part] {
			sign, weight = append(sign, -1), append(weight, f.Weights[i])
		}
		for _, i := range outB[part] {
			sign, weight = append(sign, 1), append(weight, f.Weights[i])
		}
	}
	return values, sign, weight, nil
}

// forEachPair calls work for every pair of classes a < b on several goroutines. If there is more than one pair, it
// reports the number of solved pairs as progress from base to base + share.
func (f *Pairs) forEachPair(t *run.Task, base, share float64, work func(mem *memory, pair, a, b int) error) error {
	k := len(f.Rows)
	if k == 2 {
		return work(&memory{}, 0, 0, 1)
	}
	type pair struct{ index, a, b int }
	var list []pair
	for a := range k {
		for b := a + 1; b < k; b++ {
			list = append(list, pair{At(a, b, k), a, b})
		}
	}
	var (
		mu       sync.Mutex
		next     int
		solved   int
		firstErr error
		failAt   int
		group    sync.WaitGroup
	)
	largest := f.largest()
	for range f.workers(t.Dev) {
		group.Go(func() {
			mem := &memory{minSize: min(largest*largest, int(f.Params.Cache/8))}
			for {
				mu.Lock()
				if next == len(list) || firstErr != nil {
					mu.Unlock()
					return
				}
				p := list[next]
				next++
				mu.Unlock()
				err := work(mem, p.index, p.a, p.b)
				if err != nil {
					err = fmt.Errorf("classes %q and %q: %w", f.Names[p.a], f.Names[p.b], err)
				}
				mu.Lock()
				solved++
				if err == nil && firstErr == nil {
					err = t.Step("solve", base+share*0.999*float64(solved)/float64(len(list)))
				}
				// If several pairs fail, return the error of the first of them in the list.
				if err != nil && (firstErr == nil || p.index < failAt) {
					firstErr, failAt = err, p.index
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return firstErr
}
