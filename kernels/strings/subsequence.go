package strings

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/pairwise"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/objects"
)

// Subsequence is the string subsequence kernel (Lodhi, Saunders, Shawe-Taylor, Cristianini and
// Watkins 2002, Text classification using string kernels, JMLR 2). It is a sum over the common
// subsequences u of s and t with Length characters, with gaps or without. Each pair of occurrences
// of u in s and t, at indices i and j, has a weight that decreases with their spans l(i) and l(j):
//
//	k(s, t) = Σ_u Σ_{i: u=s[i]} Σ_{j: u=t[j]} Decay^(l(i) + l(j))
//
// where the span l(i) is the last index minus the first index, plus 1. k is divided by √(k(s,s)
// k(t,t)) unless Raw is set. For a string shorter than Length, k is 0.
//
// A value takes at most O(Length·|s|·|t|) operations, fewer if s and t have few equal characters.
type Subsequence struct {
	Length int     // ≥ 1
	Decay  float64 // 0 < Decay ≤ 1
	Raw    bool    // whether k is not normalized
}

func init() {
	objects.Register(kernels.Description{
		Name: "subsequence", Aliases: []string{"ssk"},
		Formula: "Σ over common subsequences of decay^(spans in both), normalized",
		Parameters: []kernels.Parameter{
			{Name: "length", Type: kernels.Integer, Rule: lengthRule.String()},
			{Name: "decay", Type: kernels.OneNumber, Default: "0.5", Rule: decayRule.String()},
			pairwise.Normalized,
		},
		Example: "subsequence(length=3,decay=0.5)",
		Source:  "Lodhi, Saunders, Shawe-Taylor, Cristianini and Watkins (2002), Text classification using string kernels, JMLR 2",
	}, func(v map[string]float64) (objects.Kernel, error) {
		raw, err := pairwise.Raw(v)
		return Subsequence{Length: int(v["length"]), Decay: v["decay"], Raw: raw}, err
	})
}

var (
	lengthRule = kernels.Rule{Min: 1, Max: math.MaxFloat64, Integer: true}
	decayRule  = kernels.Rule{Min: math.SmallestNonzeroFloat64, Max: 1}
)

// rawText returns the part of a kernel's text that disables normalization, or "" if raw is false.
func rawText(raw bool) string {
	if raw {
		return ",normalized=0"
	}
	return ""
}

func (k Subsequence) String() string {
	return fmt.Sprintf("subsequence(length=%d,decay=%s%s)", k.Length, strconv.FormatFloat(k.Decay, 'g', -1, 64), rawText(k.Raw))
}

func (k Subsequence) Input() objects.Input { return objects.Text }

// minWeight is the smallest permitted weight of a subsequence without gaps. It prevents underflow.
const minWeight = 1e-280

// Check requires Length ≥ 1, 0 < Decay ≤ 1 and Decay^(2 Length) ≥ 10⁻²⁸⁰.
func (k Subsequence) Check() error {
	if err := lengthRule.Check("strings: subsequence: length", float64(k.Length)); err != nil {
		return err
	}
	if err := decayRule.Check("strings: subsequence: decay", k.Decay); err != nil {
		return err
	}
	if elementary.Pow(k.Decay, 2*float64(k.Length)) < minWeight {
		return fmt.Errorf("strings: subsequence: decay %v to the power of 2·%d is too small for float64: raise decay, or lower length", k.Decay, k.Length)
	}
	return nil
}

func (k Subsequence) evaluator() pairwise.Evaluator {
	return pairwise.Evaluator{Raw: k.Raw, Infinite: func(i int) error {
		return fmt.Errorf("strings: subsequence: text %d has more subsequences than a float64 can count: lower decay, now %v", i+1, k.Decay)
	}}
}

func (k Subsequence) Gram(ctx context.Context, texts []string, o objects.Options) (host.Matrix[float64], error) {
	if err := k.Check(); err != nil {
		return host.Matrix[float64]{}, err
	}
	c := newCoder()
	coded := c.encode(texts)
	if err := k.feasible(c, coded, coded, true, o); err != nil {
		return host.Matrix[float64]{}, err
	}
	return k.evaluator().Gram(ctx, len(texts), o, k.worker(c, coded, coded))
}

func (k Subsequence) Cross(ctx context.Context, a, b []string, o objects.Options) (host.Matrix[float64], error) {
	if err := k.Check(); err != nil {
		return host.Matrix[float64]{}, err
	}
	c := newCoder()
	ca, cb := c.encode(a), c.encode(b)
	if err := k.feasible(c, ca, cb, false, o); err != nil {
		return host.Matrix[float64]{}, err
	}
	return k.evaluator().Cross(ctx, len(a), len(b), o, k.worker(c, ca, cb), [2]pairwise.Worker{k.worker(c, ca, ca), k.worker(c, cb, cb)})
}

func (k Subsequence) Diag(ctx context.Context, texts []string, o objects.Options) ([]float64, error) {
	if err := k.Check(); err != nil {
		return nil, err
	}
	c := newCoder()
	coded := c.encode(texts)
	if err := k.feasible(c, coded, nil, false, o); err != nil {
		return nil, err
	}
	return k.evaluator().Diag(ctx, len(texts), o, k.worker(c, coded, coded))
}

// feasible returns an error if a call needs too many operations or too much memory. A call evaluates each text in the
// list a with all texts in b or, if lower is set, with itself and the preceding texts in a.
func (k Subsequence) feasible(c *coder, a, b [][]int32, lower bool, o objects.Options) error {
	operations, longest := k.operations(c, a, b, lower), 0
	for _, list := range [][][]int32{a, b} {
		for _, s := range list {
			longest = max(longest, len(s))
			if n := float64(len(s)); !lower && len(s) >= k.Length {
				operations += float64(k.Length-1) * n * n
			}
		}
	}
	description := fmt.Sprintf("strings: %v: texts of up to %d characters", k, longest)
	advice := fmt.Sprintf("use spectrum(length=%d), whose work is proportional to the sum of their sizes", k.Length)
	if err := pairwise.Feasible(description, operations, advice); err != nil || longest < k.Length {
		return err
	}
	return pairwise.CheckMemory(o, description, 2*float64(k.Length)*float64(longest))
}

// operations returns the number of operations of a call, with the arguments of feasible. It includes the last row of
// each pair, which dynamic omits. At each level, a character of s takes one operation for each position of t after
// the first occurrence of the character in t.
func (k Subsequence) operations(c *coder, a, b [][]int32, lower bool) float64 {
	count, rescaled := make([]float64, c.size()), 0.0
	add := func(s []int32) {
		if len(s) < k.Length {
			return
		}
		for _, character := range s {
			count[character]++
		}
		rescaled += float64((len(s) - 1) / window(k.Decay))
	}
	if !lower {
		for _, s := range b {
			add(s)
		}
	}
	sum, seen := 0.0, make([]int, c.size())
	for i, t := range a {
		if lower {
			add(t)
		}
		if len(t) < k.Length {
			continue
		}
		sum += rescaled * float64(len(t))
		for j, character := range t {
			if seen[character] != i+1 {
				seen[character] = i + 1
				sum += count[character] * float64(len(t)-1-j)
			}
		}
	}
	return float64(k.Length-1) * sum
}

func (k Subsequence) worker(c *coder, a, b [][]int32) func(stop pairwise.Stop) func(i, lo, hi int, out []float64) {
	longest := 0
	for _, s := range a {
		longest = max(longest, len(s))
	}
	if k.Length > longest { // all values are 0; avoid memory for Length levels
		return func(pairwise.Stop) func(i, lo, hi int, out []float64) {
			return func(_, _, _ int, out []float64) { clear(out) }
		}
	}
	powers := make([]float64, longest+1)
	for d := range powers {
		// Powers below 1e-280 become 0: they are negligible, and subnormal numbers are slow.
		if p := elementary.Pow(k.Decay, float64(d)); p > 1e-280 {
			powers[d] = p
		}
	}
	return func(stop pairwise.Stop) func(i, lo, hi int, out []float64) {
		d := newDynamic(k, powers, c.size(), longest)
		return func(i, lo, hi int, out []float64) {
			d.load(a[i])
			for j := lo; j < hi && !stop(0); j++ {
				out[j-lo] = d.value(b[j], stop)
			}
		}
	}
}

// coder numbers characters in order of first occurrence.
type coder struct{ codes map[rune]int32 }

func newCoder() *coder { return &coder{codes: map[rune]int32{}} }

func (c *coder) size() int { return len(c.codes) }

func (c *coder) encode(texts []string) [][]int32 {
	coded := make([][]int32, len(texts))
	for i, s := range texts {
		for _, r := range s {
			code, ok := c.codes[r]
			if !ok {
				code = int32(len(c.codes))
				c.codes[r] = code
			}
			coded[i] = append(coded[i], code)
		}
	}
	return coded
}
