package strings

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/internal/pairwise"
	"github.com/mercer-go/mercer/kernels/objects"
)

// countOperations returns the sum of the operations that dynamic counts for all pairs of texts.
func countOperations(k Subsequence, c *coder, a, b [][]int32, lower bool) float64 {
	longest, sum := 0, 0
	for _, s := range a {
		longest = max(longest, len(s))
	}
	powers := make([]float64, longest+1) // zeros suffice, because only the counts matter
	for i, t := range a {
		d := newDynamic(k, powers, c.size(), longest)
		d.load(t)
		partners := b
		if lower {
			partners = a[:i+1]
		}
		for _, s := range partners {
			d.value(s, func(float64) bool { return false })
		}
		sum += d.operations
	}
	return float64(sum)
}

// TestEstimatedOperationsAreCounted checks that the estimate exceeds the counted number of operations at most by the
// last row of each value, which the evaluation omits: (Length − 1)·n operations for n characters.
func TestEstimatedOperationsAreCounted(t *testing.T) {
	const seed = 3
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, k := range []Subsequence{{Length: 1, Decay: 0.5}, {Length: 2, Decay: 1}, {Length: 3, Decay: 0.5}, {Length: 4, Decay: 1e-20}} {
		for _, letters := range []int{1, 4, 200} {
			c := newCoder()
			list := make([]string, 12)
			total := 0
			for i := range list {
				text := make([]rune, r.IntN(150))
				for j := range text {
					text[j] = rune(0x400 + r.IntN(letters))
				}
				list[i] = string(text)
				total += len(text)
			}
			coded := c.encode(list)
			a, b := coded[:5], coded[5:]
			for _, test := range []struct {
				a, b  [][]int32
				lower bool
			}{{a, b, false}, {coded, coded, true}} {
				got, want := k.operations(c, test.a, test.b, test.lower), countOperations(k, c, test.a, test.b, test.lower)
				last := float64((k.Length - 1) * len(list) * total)
				if got < want || got > want+last {
					t.Errorf("%v, %d letters, lower %t: estimate %v, counted %v, last rows %v", k, letters, test.lower, got, want, last)
				}
			}
		}
	}
}

// TestOneValueCanBeStopped checks that the evaluation of one pair calls the function stop after every pairwise.Poll
// operations, with the fraction of the pair that was finished since the last call.
func TestOneValueCanBeStopped(t *testing.T) {
	const n, calls = 10000, 5
	k, c := Subsequence{Length: 4, Decay: 0.5}, newCoder()
	s := c.encode([]string{strings.Repeat("a", n)})[0]
	d := newDynamic(k, make([]float64, n+1), c.size(), n)
	d.load(s)
	stopCalls, fraction := 0, 0.0
	d.value(s, func(values float64) bool {
		stopCalls++
		fraction += values
		return stopCalls == calls
	})
	const row = (3 + 1) * n // a row has 3n operations on R and n positions
	if limit := calls * (pairwise.Poll + row); stopCalls != calls || d.operations > limit {
		t.Errorf("%d operations with %d calls, more than %d", d.operations, stopCalls, limit)
	}
	// Each row takes n operations for each of 3 levels.
	if expected := float64(d.operations) / (3 * n * n); fraction < 0.99*expected || fraction > 1.01*expected {
		t.Errorf("%v of the value is reported as done, but %v is", fraction, expected)
	}
	reports, last := 0, 0.0
	_, err := k.Gram(t.Context(), []string{strings.Repeat("a", n)}, objects.Options{Threads: 1, Progress: func(f float64) {
		if f <= last {
			t.Errorf("progress %v after %v", f, last)
		}
		reports, last = reports+1, f
	}})
	if err != nil || reports < 3*n*n/pairwise.Poll/2 || last != 1 {
		t.Errorf("%d reports of one value, the last %v, error %v", reports, last, err)
	}
}

// TestWorkThatCannotEndIsRefused checks that a kernel value for strings of 2²⁴ characters is refused: it would take
// 8·2⁴⁸ operations.
func TestWorkThatCannotEndIsRefused(t *testing.T) {
	text := strings.Repeat("a", 1<<24)
	k := Subsequence{Length: 9, Decay: 0.5}
	_, gram := k.Gram(t.Context(), []string{text}, objects.Options{})
	_, cross := k.Cross(t.Context(), []string{text}, []string{"b"}, objects.Options{})
	_, diag := k.Diag(t.Context(), []string{text}, objects.Options{})
	for name, err := range map[string]error{"gram": gram, "cross": cross, "diag": diag} {
		if err == nil || !strings.Contains(err.Error(), "2.3e+15 operations") || !strings.Contains(err.Error(), "67 %") || !strings.Contains(err.Error(), "spectrum(length=9)") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
