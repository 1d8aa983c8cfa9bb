package learners_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

// TestLabelsOfSVCAreMostProbable checks that the label is the class with the largest probability, and that for two
// classes the probability does not decrease with the decision value, also for noise (scikit-learn #31222, #13211).
func TestLabelsOfSVCAreMostProbable(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const seed, tests = 17, 300
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	contrary := 0
	for _, classes := range []int{2, 3, 5} {
		for _, signal := range []float64{0, 0.5, 5} {
			for _, rare := range []float64{1, 0.1} {
				const n, d = 120, 20
				draw := func(rows int) (x, y *mat.Dense) {
					x, y = mat.NewDense(rows, d, nil), mat.NewDense(rows, 1, nil)
					for i := range rows {
						class := i % classes
						if class > 0 && r.Float64() > rare {
							class = 0
						}
						y.Set(i, 0, float64(class))
						for j := range d {
							x.Set(i, j, r.NormFloat64())
						}
						x.Set(i, class, x.At(i, class)+signal)
					}
					for c := range classes { // ensures at least two samples of each class
						y.Set(2*c, 0, float64(c))
						y.Set(2*c+1, 0, float64(c))
					}
					return x, y
				}
				x, y := draw(n)
				newX, _ := draw(tests)
				weights := make([]float64, n)
				for i := range weights {
					weights[i] = 0.2 + 3*r.Float64()
				}
				for _, w := range [][]float64{nil, weights} {
					for _, l := range []learners.SVC{{Kernel: kernels.Linear{}}, {Kernel: kernels.Gaussian{Sigma: 4}, C: 10}, {Kernel: kernels.Linear{}, C: 1e-6}} {
						name := fmt.Sprintf("%d classes, signal %v, rare %v, weights %v, %v, C %v", classes, signal, rare, w != nil, l.Kernel, l.C)
						l.Probabilities = true
						m, err := l.Fit(t.Context(), dev, x, y, learners.Options{Weights: w})
						if err != nil {
							t.Fatalf("%s: %v", name, err)
						}
						for pair, a := range m.State().Arrays["sigmoid"].Row(0) {
							if !(a <= 0) {
								t.Errorf("%s: A of pair %d is %v", name, pair, a)
							}
						}
						f, err := m.Decision(t.Context(), dev, newX)
						if err != nil {
							t.Fatal(err)
						}
						p, err := m.Proba(t.Context(), dev, newX)
						if err != nil {
							t.Fatal(err)
						}
						labels, err := m.Predict(t.Context(), dev, newX)
						if err != nil {
							t.Fatal(err)
						}
						byVotes := m.Classes().Decide(f)
						order := make([]int, tests)
						for i := range order {
							order[i] = i
							row := p.RawRowView(i)
							label := int(labels.At(i, 0))
							if row[label] < slices.Max(row) {
								t.Fatalf("%s: row %d has the label %d of the probabilities %v", name, i, label, row)
							}
							if byVotes.At(i, 0) != labels.At(i, 0) {
								contrary++
								if row[int(byVotes.At(i, 0))] == row[label] {
									t.Fatalf("%s: row %d: of equal probabilities %v the label is not that of the decision", name, i, row)
								}
							}
						}
						if classes > 2 {
							continue
						}
						slices.SortFunc(order, func(i, k int) int { return int(math.Copysign(1, f.At(i, 0)-f.At(k, 0))) })
						for k := 1; k < tests; k++ {
							// The exponential function has rounding errors, which may make the probabilities
							// decrease slightly.
							if low, high := p.At(order[k-1], 1), p.At(order[k], 1); high < low*(1-8*0x1p-52) {
								t.Fatalf("%s: the probability falls from %v to %v while the decision rises", name, low, high)
							}
						}
					}
				}
			}
		}
	}
	if contrary == 0 {
		t.Error("no label differs from that of the decision values: nothing was tested")
	}
	t.Logf("%d labels differ from those of the decision values", contrary)
}
