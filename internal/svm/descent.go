package svm

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
)

// descent solves a Problem of the linear kernel on sparse samples by dual coordinate descent with shrinking (Hsieh,
// Chang, Lin, Keerthi and Sundararajan 2008). It stores w = Σ_i s_i α_i x_i; a step of variable i reads and writes the
// elements of w in the columns that x_i stores. Unlike the problem of the paper, a Problem has the constraint Σ_i s_i
// α_i = κ, where κ is the sum for the initial α. Its multiplier is the intercept b. By the method of multipliers
// (Hestenes 1969; Powell 1969), the steps minimize
//
//	½‖w‖² + Σ_i p_i α_i + b₀(Σ_i s_i α_i − κ) + (ρ/2)(Σ_i s_i α_i − κ)²
//
// over one variable at a time. After each pass over the variables b₀ increases by ρ(Σ_i s_i α_i − κ). ρ is a sixteenth
// of the mean of ‖x‖². At the end α is projected onto the constraint.
type descent struct {
	*smo
	rows   backend.CSR[float64]
	w      []float64
	b      float64 // b₀ + ρ·excess
	excess float64 // Σ s_i α_i − κ
	sum    float64 // κ of the constraint
	rho    float64
	square []float64 // ‖x_r‖² + ρ for each row r
	active []int     // the variables that are not shrunk
	rng    *rand.Rand
	work   int // number of elements of w that were read or written

	// maxGradient and minGradient are the largest and the smallest projected gradient of the last pass.
	// Shrinking removes a variable at a bound if its gradient is outside this range.
	maxGradient, minGradient float64
}

// expectedPasses is the expected number of passes of coordinate descent over all variables. Fits of texts take 10
// to 500 passes, most of them over a quarter of the variables.
const expectedPasses = 100

// descentWork returns the number of elements of w that coordinate descent may read and write before SMO takes
// over, or 0 if SMO is faster from the start. The limit is four times the operations that compute K, because SMO
// also takes steps and computes rows of K repeatedly.
func descentWork(k kernels.Kernel, points numeric.Points) int {
	x := points.Sparse
	if _, linear := k.(kernels.Linear); !linear || x == nil {
		return 0
	}
	stored := make([]int32, x.Cols)
	for i := range x.Rows {
		columns, _ := x.Row(i)
		for _, c := range columns {
			stored[c]++
		}
	}
	gram := x.Rows * x.Rows
	for _, c := range stored {
		gram += int(c) * int(c)
	}
	if gram < expectedPasses*2*x.NNZ() {
		return 0
	}
	return 4 * gram
}

// descend solves the problem of s, which must not be shrunk, until the violation of the optimality conditions is
// at most Tol and the duality gap is at most Tol/1000 of the objective. The argument work limits the reads and
// writes of elements of w. If descend does not converge, it returns nil, and SMO can continue from s.
func (s *smo) descend(work int) (*Result, error) {
	alpha, f := slices.Clone(s.alpha), slices.Clone(s.f)
	d := newDescent(s)
	for target := s.set.Tol; ; {
		previousExcess := math.Abs(d.excess)
		pass, err := d.pass()
		if err != nil {
			return nil, err
		}
		s.passes++
		gap := max(pass, d.rho*math.Abs(d.excess))
		if gap-gap != 0 { // return to the initial point: SMO reports the overflow
			copy(s.alpha, alpha)
			copy(s.f, f)
			s.permitAll()
			return nil, nil
		}
		if err := s.report(gap); err != nil {
			return nil, err
		}
		last := d.work >= work || s.steps >= s.set.MaxIter
		if gap > target && !last {
			// If a pass converges without reducing the excess, the active variables cannot satisfy the constraint.
			// But b has changed, and inactive variables may be free now. Restore them.
			if pass <= target && math.Abs(d.excess) >= 0.99*previousExcess {
				d.restore()
			}
			continue
		}
		d.settle()
		s.permitAll()
		maxV, minV := s.violation()
		s.gap = maxV - minV
		res, err := s.result()
		if err != nil || s.gap <= s.set.Tol && res.Duality <= s.set.Tol/1000*math.Abs(res.Objective) {
			return res, err
		}
		if last {
			return nil, nil
		}
		if s.gap <= 4*target {
			target /= 4
		}
		d.restore()
	}
}

func newDescent(s *smo) *descent {
	d := &descent{smo: s, rows: *s.x.Sparse, w: make([]float64, s.x.Cols), square: make([]float64, s.n), rng: rand.New(rand.NewPCG(s.set.Seed, 0))}
	for r := range d.square {
		_, values := d.rows.Row(r)
		d.square[r] = numeric.Dot(values, values)
		d.rho += d.square[r] / (16 * float64(s.n))
	}
	// With ρ ≥ 1/Σ c_i, a pass can change b by about 1: b changes by ρ times the excess, which is at most about Σ c_i.
	total := 0.0
	for _, c := range d.c {
		total += c
	}
	d.rho = max(d.rho, 1/max(total, math.SmallestNonzeroFloat64))
	for r, beta := range s.beta() {
		d.square[r] += d.rho
		d.sum += beta
		d.add(r, beta)
	}
	d.restore()
	return d
}

func (d *descent) restore() {
	d.active = countedInts(len(d.alpha))
	d.maxGradient, d.minGradient = math.Inf(1), math.Inf(-1)
}

func (d *descent) dot(r int) float64 {
	columns, values := d.rows.Row(r)
	values = values[:len(columns)]
	w := d.w
	var a, b, c, e float64
	k := 0
	for ; k+3 < len(columns); k += 4 { // an addition waits for the preceding addition to the same sum: add to four sums
		a += values[k] * w[columns[k]]
		b += values[k+1] * w[columns[k+1]]
		c += values[k+2] * w[columns[k+2]]
		e += values[k+3] * w[columns[k+3]]
	}
	for ; k < len(columns); k++ {
		a += values[k] * w[columns[k]]
	}
	return a + b + (c + e)
}

func (d *descent) add(r int, t float64) {
	columns, values := d.rows.Row(r)
	values = values[:len(columns)]
	w := d.w
	for k, c := range columns {
		w[c] += t * values[k]
	}
}

// pass takes a step in each active variable, in random order. It returns the difference between the largest and the
// smallest projected gradient.
func (d *descent) pass() (gap float64, err error) {
	maxGradient, minGradient := math.Inf(-1), math.Inf(1)
	for pos := 0; pos < len(d.active); pos++ {
		if pos%1024 == 0 && d.ctx.Err() != nil {
			return 0, d.ctx.Err()
		}
		random := pos + d.rng.IntN(len(d.active)-pos)
		d.active[pos], d.active[random] = d.active[random], d.active[pos]
		i := d.active[pos]
		r, alpha := d.row(i), d.alpha[i]
		g := d.sign[i]*(d.dot(r)+d.b) + d.p[i]
		d.work += d.rows.Indptr[r+1] - d.rows.Indptr[r] + 1 // count at least 1, because a row may be empty
		if alpha == 0 && g > d.maxGradient || alpha == d.c[i] && g < d.minGradient {
			end := len(d.active) - 1
			d.active[pos], d.active = d.active[end], d.active[:end]
			pos--
			continue
		}
		next := min(max(alpha-g/d.square[r], 0), d.c[i])
		if next == alpha {
			g = 0 // at a bound the projected gradient is 0
		}
		maxGradient, minGradient = max(maxGradient, g), min(minGradient, g)
		if next == alpha {
			continue
		}
		d.alpha[i] = next
		d.move(r, d.sign[i]*(next-alpha))
		d.b += d.rho * d.sign[i] * (next - alpha)
		d.steps++
	}
	d.b += d.rho * d.excess
	d.maxGradient, d.minGradient = maxGradient, minGradient
	if maxGradient <= 0 {
		d.maxGradient = math.Inf(1)
	}
	if minGradient >= 0 {
		d.minGradient = math.Inf(-1)
	}
	return maxGradient - minGradient, nil
}

// move increases s_i α_i by t, where variable i belongs to row r, and updates w and the excess Σ s_i α_i − κ.
func (d *descent) move(r int, t float64) {
	d.add(r, t)
	d.excess += t
	d.work += d.rows.Indptr[r+1] - d.rows.Indptr[r]
}

// settle projects α onto the constraint. It moves the free variables, or all variables if the free variables do not
// suffice, by the same fraction of their distances to their bounds. Then it recomputes w and F.
func (d *descent) settle() {
	d.b -= d.rho * d.excess
	for _, all := range []bool{false, true} {
		d.excess = -d.sum
		for _, beta := range d.beta() {
			d.excess += beta
		}
		var list []int
		var distances []float64 // distance of each α_i in list from the bound
		total := 0.0
		for i, alpha := range d.alpha {
			if all || d.mayRise(i) && d.mayFall(i) {
				if (d.excess > 0) != (d.sign[i] > 0) {
					alpha = alpha - d.c[i]
				}
				list, distances = append(list, i), append(distances, alpha)
				total += math.Abs(alpha)
			}
		}
		if total == 0 {
			continue
		}
		fraction := min(math.Abs(d.excess)/total, 1)
		for k, i := range list {
			d.alpha[i] = min(max(d.alpha[i]-fraction*distances[k], 0), d.c[i])
		}
		if fraction < 1 {
			break
		}
	}
	clear(d.w)
	d.excess = -d.sum
	for r, beta := range d.beta() {
		d.excess += beta
		if beta != 0 {
			d.add(r, beta)
		}
	}
	for r := range d.f {
		d.f[r] = d.dot(r)
	}
	d.work += 2 * d.rows.NNZ()
}
