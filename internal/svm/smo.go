// Package svm solves the quadratic programs of support vector machines.
package svm

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/internal/selection"
	"github.com/mercer-go/mercer/kernels"
)

// Problem is the quadratic program of all support vector machines:
//
//	min ½ Σ_ij α_i α_j s_i s_j k(x_i, x_j) + Σ_i p_i α_i
//	subject to Σ_i s_i α_i = its value for the initial α, 0 ≤ α_i ≤ c_i
//
// where s_i = ±1. Variable i belongs to row i mod n of X, because regression has two variables for each row.
type Problem struct {
	Kernel kernels.Kernel
	X      numeric.Points // the samples, n rows
	Sign   []float64      // s_i of each variable
	P      []float64
	C      []float64
	Alpha  []float64 // the initial α; Solve overwrites it with the solution
	gram   *gram     // k(X, X), or nil if Solve must compute its rows
	mem    *memory   // memory to reuse, or nil
	nu     form      // plain, or the ν formulation of the problem
	Inside bool      // for OneClass: whether Solve selects a b so large that f ≥ 0 at every row with α < c
}

// A form is a formulation in which a parameter ν replaces C or ε (Schölkopf, Smola, Williamson and Bartlett 2000).
// It fixes the sum of α over the variables with s_i = 1, and the sum over the others, so that a step changes two
// variables with equal s_i.
type form uint8

const (
	plain     form = iota
	nuClasses      // p = 0; the solution determines C
	nuTube         // p_i = −s_i y_i; the solution determines ε
)

// Params holds the settings of the solver.
type Params struct {
	Tol     float64 // maximum violation of the optimality conditions at the end; relative to the initial range of v if this range is below 1; 0 means 1e-3
	MaxIter int     // maximum number of steps, which change a pair of variables; 0 means 10 million, or 100 for each row if this is more
	Cache   int64   // bytes of Go memory for rows of K; 0 means CacheBytes
	Seed    uint64  // seed of the order of the variables in coordinate descent

	given bool // whether the caller set MaxIter: reaching MaxIter is then a warning, otherwise an error
}

// WithDefaults returns p with the defaults for n rows in place of zeros. It returns an error for
// values that are out of range.
func (p Params) WithDefaults(n int) (Params, error) {
	if p.Tol == 0 {
		p.Tol = 1e-3
	}
	if p.given = p.MaxIter > 0; p.MaxIter == 0 {
		p.MaxIter = max(10_000_000, 100*n)
	}
	if p.Cache == 0 {
		p.Cache = CacheBytes
	}
	switch {
	case !(p.Tol > 0) || math.IsInf(p.Tol, 1):
		return p, fmt.Errorf("tol must be a finite number > 0, got %v", p.Tol)
	case p.MaxIter < 0:
		return p, fmt.Errorf("iterations must be an integer ≥ 0, got %d", p.MaxIter)
	case p.Cache < 0:
		return p, fmt.Errorf("cache must be a number of bytes ≥ 0, got %d", p.Cache)
	}
	return p, nil
}

// Bytes returns the memory of Solve in bytes, for n rows like those of x. The argument nu reports whether the
// problem is a ν formulation. If Solve begins with coordinate descent, the result does not include the memory of
// SMO, which may follow. Solve reports that memory by run.ReportPlan.
func Bytes(dev backend.Device, k kernels.Kernel, x numeric.Points, n int, cache int64, nu bool) int64 {
	if !nu && descentWork(k, x) > 0 {
		return x.CopyBytes(n) + 12*int64(x.Cols) + 64*int64(n)
	}
	return smoBytes(dev, x, n, cache)
}

func smoBytes(dev backend.Device, x numeric.Points, n int, cache int64) int64 {
	return CachePlan(dev, x, n, cache, min(n, 256)) + 2*(x.CopyBytes(n)+8*int64(n))
}

// Result is the solution. The learners build their models from it. Problem.Alpha holds α.
type Result struct {
	Beta            []float64 // β_r, the sum of s_i α_i over the variables of row r: f(x) = Σ β_r k(x, x_r) + b
	Intercept       float64   // the intercept b
	Objective       float64   // maximum of the dual, which is the minimum of the primal
	Square          float64   // ‖f‖² = βᵀKβ
	Steps           int       // number of steps, each of which changes a pair of variables
	Rows            int       // number of computed rows of K
	Passes          int       // number of passes of coordinate descent over the variables
	Gap, Tol        float64   // violation of the optimality conditions at the end, and the tolerance for it
	Duality         float64   // duality gap, which bounds the distance of Objective from the maximum
	EquivalentParam float64   // for a ν formulation: the C or ε of the equivalent problem
}

// ConvergenceWarning returns a warning about results that reached MaxIter with a Gap above Tol, or
// "" without such results.
func ConvergenceWarning(results ...*Result) string {
	var worst *Result
	unconverged := 0
	for _, r := range results {
		if r.Gap > r.Tol {
			unconverged++
			if worst == nil || r.Gap > worst.Gap {
				worst = r
			}
		}
	}
	if unconverged == 0 {
		return ""
	}
	suffix := ""
	if len(results) > 1 {
		suffix = fmt.Sprintf("%d of %d machines are ", unconverged, len(results))
	}
	return fmt.Sprintf("%snot optimal after %s: the gap is %.3g, but must be at most %.3g: {raise $tol|raise $iterations}", suffix, count.Of(worst.Steps, "step"), worst.Gap, worst.Tol)
}

// smo solves a Problem by sequential minimal optimization in two levels.
//
// Let F_r = Σ_i s_i α_i k(x_i, x_r) and v_i = −F_r − s_i p_i. The solution is optimal if v_i ≤ v_j for each i whose s_i
// α_i may increase and each j whose s_j α_j may decrease. A step changes a pair (i, j). Of the variables that may
// increase, i has the largest v, and j is chosen so that the quadratic model of the objective decreases most (Fan, Chen
// and Lin 2005, WSS 2). The steps run within a working set whose block of K is in memory: the variables with the
// largest violations in both directions, and variables of the previous set, free variables first (Joachims 1998; Wen et
// al. 2018). After the steps in a set, F is updated with the rows of K of the changed variables, from a cache.
//
// Shrinking removes the rows whose variables stay at bounds, when these are at least a third of the rows in use.
// When the remaining rows are optimal, SMO computes F of the removed rows and continues with all rows.
//
// For the linear kernel on sparse samples, type descent runs first if it is expected to take less time.
type smo struct {
	ctx      context.Context
	b        backend.Backend[float64]
	set      Params
	report   func(gap float64) error
	full     *Problem
	n        int   // number of rows in use
	index    []int // indices in full.X of the rows in use; nil if all rows are in use
	x        numeric.Points
	gram     *gram // submatrix of full.gram for the rows in use, or nil
	sign     []float64
	p        []float64
	c        []float64
	alpha    []float64
	f        []float64 // F of the rows in use
	v        []float64 // v of the variables in use
	rise     []float64 // for each variable in use, 0 if s_i α_i may increase, and −∞ otherwise
	fall     []float64 // for each variable in use, 0 if s_i α_i may decrease, and +∞ otherwise
	cache    *RowCache
	last     []int // the previous working set
	mem      *memory
	marked   []bool    // scratch memory with an element for each variable
	moved    []float64 // scratch memory with an element for each row
	inactive []int     // for each row, the number of successive working sets for which the row could have been removed
	steps    int
	rows     int
	passes   int     // number of passes of coordinate descent
	gap      float64 // violation of the optimality conditions at the last working set
}

// SolveIn solves p like Solve, and reports the progress of the task from base to base + share.
func SolveIn(t *run.Task, p *Problem, set Params, base, share float64) (*Result, error) {
	first := 0.0
	return Solve(t, p, set, func(gap float64) error {
		first = max(first, gap)
		return t.Step("solve", base+share*min(run.LogShare(gap, first, set.Tol), 0.999))
	})
}

// Solve solves p. The argument set must come from WithDefaults. Between working sets Solve calls report with the
// violation of the optimality conditions. If report returns an error, Solve returns this error.
func Solve(t *run.Task, p *Problem, set Params, report func(gap float64) error) (*Result, error) {
	work := 0
	if p.nu == plain {
		work = descentWork(p.Kernel, p.X)
	}
	return solve(t.Ctx, t.B, p, set, report, work, func() {
		run.ReportPlan(t.Ctx, t.Dev, smoBytes(t.Dev, p.X, p.X.Rows, set.Cache))
	})
}

// solve implements Solve. The argument work limits coordinate descent; 0 means SMO alone. Before SMO takes over
// from coordinate descent, solve calls the function continues.
func solve(ctx context.Context, b backend.Backend[float64], p *Problem, set Params, report func(gap float64) error, work int, continues func()) (*Result, error) {
	s := &smo{ctx: ctx, b: b.With(ctx, nil), set: set, report: report, full: p, mem: cmp.Or(p.mem, &memory{})}
	defer s.close()
	s.selectRows(nil)
	s.f = make([]float64, s.n)
	if beta := s.beta(); slices.ContainsFunc(beta, func(v float64) bool { return v != 0 }) {
		f, err := KernelSum(s.b, p.Kernel, p.X, p.X, beta)
		if err != nil {
			return nil, err
		}
		s.f = f
	}
	s.scaleTol()
	if work > 0 {
		if res, err := s.descend(work); res != nil || err != nil {
			return res, err
		}
		continues()
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	for {
		if err := s.optimize(); err != nil {
			return nil, err
		}
		if s.index == nil {
			return s.result()
		}
		if err := s.unshrink(); err != nil {
			return nil, err
		}
	}
}

// scaleTol multiplies the tolerance by the initial range of v if this range is below 1, as for small y or a small sum
// of α. The tolerance remains at least the rounding error of v.
func (s *smo) scaleTol() {
	s.violation()
	if len(s.v) == 0 {
		return
	}
	low, high := slices.Min(s.v), slices.Max(s.v)
	if spread := high - low; spread < 1 {
		s.set.Tol = max(s.set.Tol*spread, 16*0x1p-52*max(math.Abs(low), math.Abs(high)))
	}
}

func (s *smo) close() {
	if s.cache != nil {
		s.rows += s.cache.Misses
		s.cache.Close()
		s.cache = nil
	}
}

// use selects the rows whose indices are in index, or all rows if index is nil. It allocates a cache for
// these rows. The caller must set F.
func (s *smo) use(index []int) error {
	s.close()
	s.selectRows(index)
	return s.open()
}

func (s *smo) selectRows(index []int) {
	p := s.full
	per := len(p.Alpha) / p.X.Rows
	s.index, s.last = index, nil
	if index == nil {
		s.n, s.x, s.gram, s.sign, s.p, s.c, s.alpha = p.X.Rows, p.X, p.gram, p.Sign, p.P, p.C, p.Alpha
	} else {
		s.n = len(index)
		s.x, s.gram = p.X.Take(index), p.gram.submatrix(index)
		s.sign, s.p, s.c, s.alpha = make([]float64, per*s.n), make([]float64, per*s.n), make([]float64, per*s.n), make([]float64, per*s.n)
		for r, i := range index {
			for h := range per {
				to, from := h*s.n+r, h*p.X.Rows+i
				s.sign[to], s.p[to], s.c[to], s.alpha[to] = p.Sign[from], p.P[from], p.C[from], p.Alpha[from]
			}
		}
	}
	q := per * s.n
	state := grow(&s.mem.state, 3*q+s.n)
	s.v, s.rise, s.fall, s.moved = state[:q], state[q:2*q], state[2*q:3*q], state[3*q:]
	s.permitAll()
	s.inactive = grow(&s.mem.inactive, s.n)
	clear(s.inactive)
	s.marked = make([]bool, per*s.n)
}

// open allocates the cache for the rows in use.
func (s *smo) open() error {
	q := min(s.workingSize(), s.n)
	size := CacheSize{s.set.Cache, q, q}
	if s.gram != nil {
		s.cache = s.gram.cache(s.full.Kernel, size, s.mem)
		return nil
	}
	var err error
	s.cache, err = newPointCache(s.ctx, s.b, s.full.Kernel, s.x, size, s.mem)
	return err
}

// workingSize returns the size of the working set, whose block of K fits in the second-level cache.
func (s *smo) workingSize() int {
	return min(max(64, min(s.n/8, 256)), len(s.v))
}

func (s *smo) row(i int) int {
	if i < s.n { // avoid a slow division
		return i
	}
	return i % s.n
}

// beta returns Σ s_i α_i for each row in use.
func (s *smo) beta() []float64 {
	beta := make([]float64, s.n)
	for i, a := range s.alpha {
		beta[s.row(i)] += s.sign[i] * a
	}
	return beta
}

// KernelSum returns k(X, Z)·β. It skips the points of Z for which β is 0.
func KernelSum(b backend.Backend[float64], k kernels.Kernel, x, z numeric.Points, beta []float64) ([]float64, error) {
	var list []int
	var coefficients []float64
	for i, v := range beta {
		if v != 0 {
			list, coefficients = append(list, i), append(coefficients, v)
		}
	}
	out := make([]float64, x.Rows)
	if len(list) == 0 || x.Rows == 0 {
		return out, nil
	}
	m, err := b.New(x.Rows, 1)
	if err != nil {
		return nil, err
	}
	defer m.Free()
	operands, err := numeric.PlaceAll(b, x, z.Take(list), numeric.DensePoints(numeric.Column(coefficients)))
	if err != nil {
		return nil, err
	}
	defer numeric.FreeAll(operands)
	b.GramMul(m, k, operands[0], operands[1], operands[2])
	return out, b.Download(numeric.Column(out), m)
}

// mayRise reports whether s_i α_i may increase, and mayFall whether it may decrease.
func (s *smo) mayRise(i int) bool {
	if s.sign[i] > 0 {
		return s.alpha[i] < s.c[i]
	}
	return s.alpha[i] > 0
}

func (s *smo) mayFall(i int) bool {
	if s.sign[i] > 0 {
		return s.alpha[i] > 0
	}
	return s.alpha[i] < s.c[i]
}

func (s *smo) permit(i int) { s.rise[i], s.fall[i] = offsets(s.mayRise(i), s.mayFall(i)) }

func (s *smo) permitAll() {
	for i := range s.alpha {
		s.permit(i)
	}
}

// violation computes v and returns the largest v of the variables that may increase, and the smallest v of the
// variables that may decrease.
//
// In a ν formulation, there are two such numbers for each sign. violation adds a constant to all v of a sign, so that
// its two numbers add to 0, and returns the two numbers of the sign with the larger difference.
func (s *smo) violation() (maxV, minV float64) {
	if s.full.nu != plain {
		return s.separateViolation()
	}
	maxV, minV = math.Inf(-1), math.Inf(1)
	invalid := 0.0 // NaN if an element of v is not finite

	for first := 0; first < len(s.v); first += s.n { // the first or the second variable of each row
		v, sign, p, rise, fall := s.v[first:][:s.n], s.sign[first:][:s.n], s.p[first:][:s.n], s.rise[first:][:s.n], s.fall[first:][:s.n]
		for r, f := range s.f[:s.n] {
			x := -f - sign[r]*p[r]
			v[r] = x
			invalid += x - x
			if high := x + rise[r]; high > maxV {
				maxV = high
			}
			if low := x + fall[r]; low < minV {
				minV = low
			}
		}
	}
	return maxV + invalid, minV + invalid
}

// optimize processes working sets until the rows in use are optimal within the tolerance, or
// MaxIter steps have been taken. Shrinking may change the rows in use.
func (s *smo) optimize() error {
	for {
		maxV, minV := s.violation()
		gap := maxV - minV
		s.gap = gap
		if math.IsNaN(gap) || math.IsInf(gap, 1) {
			return kernels.Overflow(fmt.Errorf("values of the kernel %v overflow: scale the features down", s.full.Kernel))
		}
		if err := s.report(gap); err != nil {
			return err
		}
		if gap <= s.set.Tol {
			return nil
		}
		if s.steps >= s.set.MaxIter && s.set.given {
			return nil
		}
		if s.steps >= s.set.MaxIter {
			return message.Errorf("not optimal after %s: the gap is %.3g, but must be at most %.3g: {raise $tol|raise $iterations|$penalty|$standardize}", count.Of(s.steps, "step"), gap, s.set.Tol)
		}
		shrunk, err := s.shrink(maxV, minV)
		if err != nil {
			return err
		}
		if shrunk {
			continue
		}
		if err := s.workOn(s.choose(maxV, minV), gap); err != nil {
			return err
		}
	}
}

func (s *smo) choose(maxV, minV float64) []int {
	q := s.workingSize()
	if q == len(s.v) {
		return countedInts(q)
	}
	count := q / 4
	if s.last == nil {
		count = q / 2
	}
	up := largest(&s.mem.up, count, 1, s.v, s.rise, minV)
	down := largest(&s.mem.down, count, -1, s.v, s.fall, -maxV)
	in := s.marked
	clear(in)
	set := make([]int, 0, q)
	add := func(i int) {
		if !in[i] && len(set) < q {
			in[i] = true
			set = append(set, i)
		}
	}
	for k := range max(len(up), len(down)) {
		if k < len(up) {
			add(up[k])
		}
		if k < len(down) {
			add(down[k])
		}
	}
	for _, i := range s.last { // prefer free variables
		if s.mayRise(i) && s.mayFall(i) {
			add(i)
		}
	}
	for _, i := range s.last {
		add(i)
	}
	s.last = set
	return set
}

// largest returns up to n variables in descending order of the key sign·v_i. It considers the variables whose
// sign·(v_i + offset_i) exceeds floor, and raises floor when the list is full.
func largest(memory *[]int, n int, sign float64, v, offset []float64, floor float64) []int {
	list := grow(memory, 4*n)[:0]
	key := func(i int) float64 { return sign * v[i] }
	for i, x := range v {
		if sign*(x+offset[i]) > floor {
			if list = append(list, i); len(list) == 4*n {
				list = selection.Largest(list, n, key)
				floor = key(list[n-1])
			}
		}
	}
	return selection.Largest(list, n, key)
}

func countedInts(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// workOn minimizes over the variables of a working set and updates F.
func (s *smo) workOn(set []int, gap float64) error {
	rows := make([]int, 0, len(set))
	seen := s.marked[:s.n]
	clear(seen)
	for _, i := range set {
		if r := s.row(i); !seen[r] {
			seen[r] = true
			rows = append(rows, r)
			s.moved[r] = 0
		}
	}
	if err := s.cache.Fetch(rows); err != nil {
		return err
	}
	w := newWorking(s, set)
	w.separate = s.full.nu != plain
	// Within the set the tolerance is a tenth of the present violation, but at least Tol/2.
	steps := w.minimize(max(gap/10, s.set.Tol/2), 100*len(set))
	s.steps += steps
	// Add up the changes of the two variables of a row, to use the row of K only once.
	for a, i := range set {
		s.moved[s.row(i)] += w.moved[a]
		s.alpha[i] = w.alpha[a]
		s.permit(i)
	}
	changed := rows[:0]
	for _, r := range rows {
		if s.moved[r] != 0 {
			changed = append(changed, r)
		}
	}
	return s.update(changed)
}

// update adds Σ_r moved_r K_r, the sum over the given rows r, to F, in blocks that stay in the first-level cache.
func (s *smo) update(rows []int) error {
	const block = 2048
	values := make([][]float64, len(rows))
	for a, r := range rows {
		var err error
		if values[a], err = s.cache.Row(r); err != nil {
			return err
		}
	}
	run.Parallel((s.n+block-1)/block, func(begin, end int) {
		for first := begin * block; first < min(end*block, s.n); first += block {
			last := min(first+block, s.n)
			for a, r := range rows {
				numeric.Axpy(s.moved[r], values[a][first:last], s.f[first:last])
			}
		}
	})
	return nil
}

// shrinkRows is the minimum number of rows for which shrinking saves time. Shrinking removes a row whose variables were
// at bounds, and in no violating pair, for shrinkAfter successive working sets.
const (
	shrinkRows  = 2000
	shrinkAfter = 3
)

// shrink removes the rows whose variables are all at bounds and belong to no violating pair, if these are at least a
// third of the rows.
func (s *smo) shrink(maxV, minV float64) (bool, error) {
	if s.n < shrinkRows {
		return false, nil
	}
	for r := range s.inactive {
		s.inactive[r]++
	}
	for i, v := range s.v {
		rise, fall := s.rise[i], s.fall[i]
		if v+rise >= minV || v+fall <= maxV || rise == fall { // they are equal for a free variable
			s.inactive[s.row(i)] = 0
		}
	}
	removed := 0
	for _, times := range s.inactive {
		if times >= shrinkAfter {
			removed++
		}
	}
	if 3*removed < s.n {
		return false, nil
	}
	remaining := make([]int, 0, s.n-removed)
	for r, times := range s.inactive {
		if times < shrinkAfter {
			remaining = append(remaining, r)
		}
	}
	s.storeAlpha()
	f := make([]float64, len(remaining))
	index := make([]int, len(remaining))
	for to, r := range remaining {
		f[to], index[to] = s.f[r], r
		if s.index != nil {
			index[to] = s.index[r]
		}
	}
	s.f = f
	return true, s.use(index)
}

func (s *smo) storeAlpha() {
	if s.index == nil {
		return
	}
	n := s.full.X.Rows
	for i, a := range s.alpha {
		s.full.Alpha[i/s.n*n+s.index[i%s.n]] = a
	}
}

// unshrink restores all rows and computes F of the rows that were removed.
func (s *smo) unshrink() error {
	s.storeAlpha()
	kept, index := s.f, s.index
	in := make([]int, s.full.X.Rows)
	for r, i := range index {
		in[i] = r + 1
	}
	if err := s.use(nil); err != nil {
		return err
	}
	var out []int
	for i, r := range in {
		if r == 0 {
			out = append(out, i)
		}
	}
	f, err := KernelSum(s.b, s.full.Kernel, s.x.Take(out), s.x, s.beta())
	if err != nil {
		return err
	}
	s.f = make([]float64, s.n)
	for i, r := range in {
		if r > 0 {
			s.f[i] = kept[r-1]
		}
	}
	for r, i := range out {
		s.f[i] = f[r]
	}
	return nil
}

func (s *smo) result() (*Result, error) {
	s.close()
	if s.full.Inside { // compute F as predictions do: sums over steps accumulate rounding errors
		f, err := KernelSum(s.b, s.full.Kernel, s.x, s.x, s.beta())
		if err != nil {
			return nil, err
		}
		s.f = f
	}
	intercept, found := math.NaN(), 0.0
	if s.full.nu != plain {
		var err error
		if intercept, found, err = s.settle(); err != nil {
			return nil, err
		}
	}
	maxV, minV := s.violation()
	res := &Result{EquivalentParam: found, Beta: s.beta(), Steps: s.steps, Rows: s.rows, Passes: s.passes, Gap: s.gap, Tol: s.set.Tol}
	// b is the mean of v over the free variables. At the solution, these v differ by at most the tolerance.
	sum, free := 0.0, 0
	for i, v := range s.v {
		if s.mayRise(i) && s.mayFall(i) {
			sum += v
			free++
		}
		res.Objective -= s.p[i] * s.alpha[i]
	}
	switch {
	case free > 0:
		res.Intercept = sum / float64(free)
	case math.IsInf(maxV, 0):
		res.Intercept = minV
	case math.IsInf(minV, 0):
		res.Intercept = maxV
	default:
		res.Intercept = (maxV + minV) / 2
	}
	if !math.IsNaN(intercept) {
		res.Intercept = intercept
	}
	if s.full.Inside && !math.IsInf(maxV, 0) {
		// For OneClass v = −F. With b = maxV, f = F + b is ≥ 0 at every row whose α may increase. Add a bound on
		// the rounding error of F.
		terms, size := 0, 0.0
		for r, beta := range res.Beta {
			if beta != 0 {
				terms++
				size += math.Abs(beta * s.x.Diag(s.full.Kernel, r))
			}
		}
		res.Intercept = maxV + 4*0x1p-52*float64(terms+s.x.Cols+8)*size
	}
	for r, beta := range res.Beta {
		res.Square += beta * s.f[r]
	}
	res.Objective -= res.Square / 2
	res.Duality = s.duality(res)
	return res, nil
}

// duality returns the duality gap: the primal objective at (t·f, t·b) minus the dual objective. For two classes, t is
// either 1 or the smallest number ≥ 1 for which the hinge loss is 0: the number with the smaller objective. Otherwise t
// is 1. Let α_i be dual variable i, c_i its bound, s_i its sign, p_i its linear coefficient, F_i = f(x_i), and g_i = t
// s_i(F_i + b) + p_i. The gap is
//
//	½(t − 1)²‖f‖² + Σ_i max(α_i g_i, (α_i − c_i) g_i)
func (s *smo) duality(res *Result) float64 {
	slope := func(i int, t float64) float64 { return t*s.sign[i]*(s.f[s.row(i)]+res.Intercept) + s.p[i] }
	derivative := func(t float64) float64 {
		gap := (t - 1) * (t - 1) / 2 * res.Square
		for i, alpha := range s.alpha {
			gap += max(alpha*slope(i, t), (alpha-s.c[i])*slope(i, t))
		}
		return gap
	}
	loss := 0.0
	for i := range s.alpha {
		loss = max(loss, -slope(i, 1))
	}
	gap := derivative(1)
	if loss < 1 {
		gap = min(gap, derivative(1/(1-loss)))
	}
	return gap
}
