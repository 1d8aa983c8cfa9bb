package solvers

import (
	"math/rand/v2"

	"github.com/mercer-go/mercer/backend"
)

// kMeansWidth is how many centers are proposed at once.
func kMeansWidth(m int) int { return min(m, max(8, min(64, m/4))) }

// kMeansPlusPlus are the seeds of k-means++ (Arthur and Vassilvitskii 2007): each
// center is drawn with the chance proportional to its squared distance from the
// centers before it. Proposals are drawn together and rejected as in pivoted.go,
// which leaves the law as it is, so that distances come from products.
func (r *streamRun) kMeansPlusPlus(pool backend.Host[float64], m int, random *rand.Rand) ([]int, error) {
	n, d := pool.Rows, pool.Cols
	x := backend.NewHost[float64](n, d) // centered, so that distances keep their digits
	mean := make([]float64, d)
	for i := range n {
		for j, v := range pool.Row(i) {
			mean[j] += v / float64(n)
		}
	}
	square := make([]float64, n)
	for i := range n {
		for j, v := range pool.Row(i) {
			x.Row(i)[j] = v - mean[j]
			square[i] += x.Row(i)[j] * x.Row(i)[j]
		}
	}
	width := kMeansWidth(m)
	mx, err := r.Mem.New(n, d)
	if err != nil {
		return nil, err
	}
	defer r.Mem.Free(mx)
	if err := r.B.Upload(mx, x); err != nil {
		return nil, err
	}
	mc, err := r.Mem.New(width, d)
	if err != nil {
		return nil, err
	}
	defer r.Mem.Free(mc)
	products, err := r.Mem.New(n, width)
	if err != nil {
		return nil, err
	}
	defer r.Mem.Free(products)

	left := make([]float64, n) // squared distance from the nearest center
	first := random.IntN(n)
	rows := []int{}
	extend := func(chosen []int) error {
		a := len(chosen)
		c, h := backend.NewHost[float64](a, d), backend.NewHost[float64](n, a)
		for j, i := range chosen {
			copy(c.Row(j), x.Row(i))
		}
		if err := r.B.Upload(mc.View(0, 0, a, d), c); err != nil {
			return err
		}
		r.B.Gemm(backend.NoTrans, backend.Transpose, 1, mx, mc.View(0, 0, a, d), 0, products.View(0, 0, n, a))
		if err := r.B.Download(h, products.View(0, 0, n, a)); err != nil {
			return err
		}
		for i := range n {
			for j, v := range h.Row(i) {
				to := max(square[i]+square[chosen[j]]-2*v, 0)
				if len(rows)+j == 0 || to < left[i] {
					left[i] = to
				}
			}
		}
		for _, i := range chosen {
			left[i] = 0
		}
		rows = append(rows, chosen...)
		return nil
	}
	if err := extend([]int{first}); err != nil {
		return nil, err
	}
	for len(rows) < m {
		total := 0.0
		for _, v := range left {
			total += v
		}
		if total == 0 {
			return rows, nil // all samples are equal to within rounding
		}
		proposed := draw(random, left, min(width, m-len(rows)))
		var accepted []int
		for _, i := range proposed {
			now := left[i]
			for _, c := range accepted {
				to := 0.0
				for j, v := range x.Row(i) {
					to += (v - x.Row(c)[j]) * (v - x.Row(c)[j])
				}
				now = min(now, to)
			}
			if u := random.Float64(); u*left[i] < now {
				accepted = append(accepted, i)
			}
		}
		if err := extend(accepted); err != nil {
			return nil, err
		}
	}
	return rows, nil
}
