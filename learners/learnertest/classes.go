package learnertest

import (
	"math"
	"slices"

	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

// testClasses checks that the classes are in the order of the labels, whatever the order of the rows is, and that
// the decision values do not depend on the labels.
func testClasses(c *cell) {
	x, y := c.data()
	m, ok := c.fit(x, y, learners.Options{}).(learners.Classifier)
	if !ok {
		c.Fatal("the model is no learners.Classifier")
	}
	labels, names := []float64{-2, 0.5, 7}, []string{"-2", "0.5", "7"}
	if c.Binary {
		labels, names = []float64{-2, 7}, []string{"-2", "7"}
	}
	if k := m.Classes(); !slices.Equal(k.Labels, labels) || !slices.Equal(k.Names, names) {
		c.Errorf("the classes are %v, want %v called %v", k, labels, names)
	}
	// The same classes with other labels must give the same decision values.
	numbers, binary := mat.NewDense(30, 1, nil), mat.NewDense(30, 1, nil)
	for i := range 30 {
		number := slices.Index(labels, y.At(i, 0))
		numbers.Set(i, 0, float64(number))
		binary.Set(i, 0, 2*float64(min(number, 1))-1)
	}
	relabeled, err := c.Fit(c.Context(), c.dev, x, numbers, learners.Options{Classes: []string{"x", "y", "z", "none"}})
	if err != nil {
		c.Fatal(err)
	}
	c.checkEqual("by other labels", c.values(relabeled, x), c.values(m, x))
	if k := relabeled.(learners.Classifier).Classes(); !slices.Equal(k.Names, []string{"x", "y", "z"}[:len(labels)]) || k.Labels[len(labels)-1] != float64(len(labels)-1) {
		c.Errorf("the classes are %v", k)
	}
	twoClasses := c.fit(x, binary, learners.Options{})
	if _, cols := c.values(twoClasses, x).Dims(); cols != 1 {
		c.Errorf("two classes have %d columns of decision values", cols)
	}
	if k := twoClasses.(learners.Classifier).Classes(); !slices.Equal(k.Labels, []float64{-1, 1}) {
		c.Errorf("the classes are %v", k)
	}
}

// testProbabilities checks that the n×K probabilities are between 0 and 1 and sum to 1.
func testProbabilities(c *cell) {
	x, y := c.data()
	fitted := c.fit(x, y, learners.Options{})
	m, ok := learners.As[learners.Prober](fitted)
	if !ok { // m is an SVCModel that was fitted without probabilities
		if _, err := fitted.(learners.Prober).Proba(c.Context(), c.dev, x); err == nil {
			c.Error("a model without probabilities gives some")
		}
		return
	}
	p, err := m.Proba(c.Context(), c.dev, x)
	if err != nil {
		c.Fatal(err)
	}
	n, k := p.Dims()
	if n != 30 || k != m.Classes().Len() {
		c.Fatalf("%d×%d probabilities", n, k)
	}
	for i := range n {
		sum := 0.0
		for _, v := range p.RawRowView(i) {
			if !(v >= 0 && v <= 1) {
				c.Errorf("row %d: %v is not a probability", i, v)
			}
			sum += v
		}
		// The bound covers the rounding of each probability and of each partial sum.
		if math.Abs(sum-1) > float64(4*k)*epsilon {
			c.Errorf("row %d: the probabilities sum to 1%+.3g", i, sum-1)
		}
	}
	_, err = m.Proba(c.Context(), c.dev, x.Slice(0, 30, 0, 2))
	c.checkRefused(err, "x has 2 columns")
}
