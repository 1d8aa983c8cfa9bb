package strings

import (
	"context"
	"fmt"
	"slices"

	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/internal/pairwise"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/objects"
)

// Spectrum is the p-spectrum kernel (Leslie, Eskin and Noble 2002, The spectrum kernel: a string kernel for SVM
// protein classification): the inner product of the numbers of occurrences in s and in t of all substrings of
// Length characters, divided by √(k(s,s) k(t,t)) unless Raw is set. For a string shorter than Length, k is 0.
//
// Numbering the substrings of a string s takes O(Length·|s|); a value then takes O(|s|+|t|).
type Spectrum struct {
	Length int  // ≥ 1
	Raw    bool // whether k is not normalized
}

func init() {
	objects.Register(kernels.Description{
		Name:    "spectrum",
		Formula: "Σ over substrings of the given length of (count in s)·(count in t), normalized",
		Parameters: []kernels.Parameter{
			{Name: "length", Type: kernels.Integer, Rule: lengthRule.String()},
			pairwise.Normalized,
		},
		Example: "spectrum(length=3)",
		Source:  "Leslie, Eskin and Noble (2002), The spectrum kernel: a string kernel for SVM protein classification",
	}, func(v map[string]float64) (objects.Kernel, error) {
		raw, err := pairwise.Raw(v)
		return Spectrum{Length: int(v["length"]), Raw: raw}, err
	})
}

func (k Spectrum) String() string {
	return fmt.Sprintf("spectrum(length=%d%s)", k.Length, rawText(k.Raw))
}

func (k Spectrum) Input() objects.Input { return objects.Text }

// Check requires Length ≥ 1.
func (k Spectrum) Check() error {
	return lengthRule.Check("strings: spectrum: length", float64(k.Length))
}

func (k Spectrum) Gram(ctx context.Context, texts []string, o objects.Options) (host.Matrix[float64], error) {
	if err := k.Check(); err != nil {
		return host.Matrix[float64]{}, err
	}
	counts := k.counts(map[string]int32{}, texts)
	gram, err := products(ctx, counts, counts, true, o)
	if err == nil && !k.Raw {
		diag := squares(counts)
		pairwise.Normalize(gram, diag, diag)
	}
	return gram, err
}

func (k Spectrum) Cross(ctx context.Context, a, b []string, o objects.Options) (host.Matrix[float64], error) {
	if err := k.Check(); err != nil {
		return host.Matrix[float64]{}, err
	}
	numbers := map[string]int32{}
	cb := k.counts(numbers, b)
	ca := k.counts(numbers, a)
	cross, err := products(ctx, ca, cb, false, o)
	if err == nil && !k.Raw {
		pairwise.Normalize(cross, squares(ca), squares(cb))
	}
	return cross, err
}

func (k Spectrum) Diag(ctx context.Context, texts []string, o objects.Options) ([]float64, error) {
	if err := k.Check(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("strings: spectrum: stopped: %w", context.Cause(ctx))
	}
	diag := squares(k.counts(map[string]int32{}, texts))
	if !k.Raw {
		diag = pairwise.Ones(diag)
	}
	return diag, nil
}

// count holds the number that identifies a substring, and how often the substring occurs.
type count struct {
	substring int32
	times     float64
}

// counts counts the substrings of each text and numbers new substrings.
func (k Spectrum) counts(numbers map[string]int32, texts []string) [][]count {
	lists := make([][]count, len(texts))
	for i, s := range texts {
		s = string([]rune(s)) // invalid UTF-8 becomes U+FFFD
		var ends []int        // byte offsets of the ends of characters
		var substrings []int32
		begin := 0 // index of the substring's first character
		for end, r := range s + "\x00" {
			_ = r
			if end == 0 {
				continue
			}
			ends = append(ends, end)
			if len(ends) < k.Length {
				continue
			}
			start := 0
			if begin > 0 {
				start = ends[begin-1]
			}
			begin++
			u := s[start:end]
			number, ok := numbers[u]
			if !ok {
				number = int32(len(numbers))
				numbers[u] = number
			}
			substrings = append(substrings, number)
		}
		slices.Sort(substrings)
		for j, n := range substrings {
			if j == 0 || n != substrings[j-1] {
				lists[i] = append(lists[i], count{substring: n})
			}
			lists[i][len(lists[i])-1].times++
		}
	}
	return lists
}

// squares returns the inner product of each list of counts with itself.
func squares(lists [][]count) []float64 {
	sums := make([]float64, len(lists))
	for i, counts := range lists {
		for _, c := range counts {
			sums[i] += c.times * c.times
		}
	}
	return sums
}

// products returns the inner products of all elements of a with all elements of b. They are sums of integers and
// therefore exact up to 2⁵³.
func products(ctx context.Context, a, b [][]count, lower bool, o objects.Options) (host.Matrix[float64], error) {
	type occurrence struct {
		text  int32
		times float64
	}
	var occurrences [][]occurrence
	for j, counts := range b {
		for _, c := range counts {
			for int(c.substring) >= len(occurrences) {
				occurrences = append(occurrences, nil)
			}
			occurrences[c.substring] = append(occurrences[c.substring], occurrence{int32(j), c.times})
		}
	}
	return pairwise.Matrix(ctx, len(a), len(b), lower, o, func(stop pairwise.Stop) func(i, lo, hi int, out []float64) {
		return func(i, lo, hi int, out []float64) {
			for _, c := range a[i] {
				if int(c.substring) >= len(occurrences) || stop(0) {
					continue
				}
				list := occurrences[c.substring]
				from, _ := slices.BinarySearchFunc(list, lo, func(h occurrence, lo int) int { return int(h.text) - lo })
				for _, h := range list[from:] {
					if int(h.text) >= hi {
						break
					}
					out[int(h.text)-lo] += c.times * h.times
				}
			}
		}
	})
}
