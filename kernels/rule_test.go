package kernels_test

import (
	"math"
	"testing"

	"github.com/mercer-go/mercer/kernels"
)

// TestRulesAreThoseOfTheCatalogue checks that the kernel of every example accepts the bounds of its
// parameters, and refuses the next numbers outside these bounds.
func TestRulesAreThoseOfTheCatalogue(t *testing.T) {
	for _, d := range kernels.Catalogue() {
		k, err := kernels.Parse(d.Example)
		if err != nil {
			t.Fatal(err)
		}
		params := kernels.Params(k)
		for i, p := range params {
			for _, q := range d.Parameters {
				if q.Name == p.Name && q.Rule != p.Rule.String() {
					t.Errorf("%s: the catalogue's rule of %s is %q, the kernel's %q", d.Name, p.Name, q.Rule, p.Rule)
				}
			}
			for _, c := range []struct {
				v    float64
				pass bool
			}{
				{p.Min, true}, {p.Max, true}, {math.Nextafter(p.Min, math.Inf(-1)), false}, {math.Nextafter(p.Max, math.Inf(1)), false}, {math.NaN(), false},
			} {
				values := make([]float64, len(params))
				for j, q := range params {
					values[j] = q.Value
				}
				values[i] = c.v
				if _, err := kernels.WithParams(k, values); (err == nil) != c.pass {
					t.Errorf("%s with %s = %v, from %v to %v: %v", d.Name, p.Name, c.v, p.Min, p.Max, err)
				}
				if nearest := p.Nearest(c.v); c.pass && nearest != c.v || !c.pass && !math.IsNaN(c.v) && p.Rule.Check("", nearest) != nil {
					t.Errorf("%s: %v is the value of %s nearest to %v", d.Name, nearest, p.Name, c.v)
				}
			}
		}
	}
}
