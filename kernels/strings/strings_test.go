package strings_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mercer-go/mercer/kernels/objects"
	"github.com/mercer-go/mercer/kernels/strings"
)

const seed = 8

// bruteSubsequence evaluates the kernel by enumeration of all index tuples in s and in t.
func bruteSubsequence(s, t string, length int, decay float64) float64 {
	weights := func(s string) map[string]float64 {
		w, r := map[string]float64{}, []rune(s)
		var choose func(from, first int, chosen []rune)
		choose = func(from, first int, chosen []rune) {
			if len(chosen) == length {
				w[string(chosen)] += math.Pow(decay, float64(from-first))
				return
			}
			for i := from; i < len(r); i++ {
				f := first
				if len(chosen) == 0 {
					f = i
				}
				choose(i+1, f, append(chosen[:len(chosen):len(chosen)], r[i]))
			}
		}
		choose(0, 0, nil)
		return w
	}
	a, b := weights(s), weights(t)
	sum := 0.0
	for u, v := range a {
		sum += v * b[u]
	}
	return sum
}

func bruteSpectrum(s, t string, length int) float64 {
	a, b := []rune(s), []rune(t)
	sum := 0.0
	for i := 0; i+length <= len(a); i++ {
		for j := 0; j+length <= len(b); j++ {
			if string(a[i:i+length]) == string(b[j:j+length]) {
				sum++
			}
		}
	}
	return sum
}

// randomTexts returns texts over a small set of characters, some of several bytes.
func randomTexts(t *testing.T, n, longest int) []string {
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	texts := make([]string, n)
	for i := range texts {
		for range r.IntN(longest + 1) {
			texts[i] += string([]rune("abcé€")[r.IntN(5)])
		}
	}
	return texts
}

func value(t *testing.T, k objects.Kernel, a, b string) float64 {
	t.Helper()
	h, err := k.Cross(context.Background(), []string{a}, []string{b}, objects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return h.Data[0]
}

func isNear(a, b float64, roundings int) bool {
	return math.Abs(a-b) <= float64(roundings)*0x1p-53*math.Max(math.Abs(a), math.Abs(b))
}

// TestWorkedCatCar checks the example of Lodhi et al. (2002), section 3, in which cat and car have the common
// subsequence "ca".
func TestWorkedCatCar(t *testing.T) {
	for _, decay := range []float64{0.1, 0.5, 0.9, 1} {
		raw := strings.Subsequence{Length: 2, Decay: decay, Raw: true}
		if v, want := value(t, raw, "cat", "car"), math.Pow(decay, 4); !isNear(v, want, 10) {
			t.Errorf("λ = %v: %v, want %v", decay, v, want)
		}
		if v, want := value(t, raw, "cat", "cat"), 2*math.Pow(decay, 4)+math.Pow(decay, 6); !isNear(v, want, 10) {
			t.Errorf("λ = %v: cat with itself %v, want %v", decay, v, want)
		}
		if v, want := value(t, strings.Subsequence{Length: 2, Decay: decay}, "cat", "car"), 1/(2+decay*decay); !isNear(v, want, 20) {
			t.Errorf("λ = %v: normalized %v, want %v", decay, v, want)
		}
	}
}

// TestSubsequenceBruteForce compares the kernel with bruteSubsequence. The bound is relative, because all terms are
// positive.
func TestSubsequenceBruteForce(t *testing.T) {
	texts := randomTexts(t, 24, 11)
	if testing.Short() {
		texts = texts[:12]
	}
	for _, length := range []int{1, 2, 3, 4, 5} {
		for _, decay := range []float64{1, 0.7, 0.5, 0.01} {
			k := strings.Subsequence{Length: length, Decay: decay, Raw: true}
			gram, err := k.Gram(context.Background(), texts, objects.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range texts {
				for j, u := range texts {
					want := bruteSubsequence(s, u, length, decay)
					if got := gram.Row(i)[j]; !isNear(got, want, 400) {
						t.Fatalf("%v of %q and %q is %v, want %v", k, s, u, got, want)
					}
				}
			}
		}
	}
}

// TestSubsequenceLong checks closed forms for a string of n equal characters, also for decays λ for which a factor
// 1/λ^n would overflow.
func TestSubsequenceLong(t *testing.T) {
	n := 2500
	if testing.Short() {
		n = 700
	}
	s := make([]byte, n)
	for i := range s {
		s[i] = 'a'
	}
	choices := float64(n) * float64(n-1) / 2
	if v := value(t, strings.Subsequence{Length: 2, Decay: 1, Raw: true}, string(s), string(s)); !isNear(v, choices*choices, 4*n) {
		t.Errorf("k is %v, want %v", v, choices*choices)
	}
	// There are n−d pairs of positions at distance d < n, each of weight λ^(d+1): k = (Σ_d (n−d) λ^(d+1))².
	for _, decay := range []float64{0.9, 0.3, 0.01} {
		sum := 0.0
		for d := 1; d < n; d++ {
			sum += float64(n-d) * math.Pow(decay, float64(d+1))
		}
		if v := value(t, strings.Subsequence{Length: 2, Decay: decay, Raw: true}, string(s), string(s)); !isNear(v, sum*sum, 4*n) {
			t.Errorf("decay %v: k is %v, want %v", decay, v, sum*sum)
		}
	}
}

func TestSpectrumBruteForce(t *testing.T) {
	texts := append(randomTexts(t, 60, 30), "\xff\xfeab", "a\x00b")
	for _, length := range []int{1, 2, 3, 7, 31} {
		k := strings.Spectrum{Length: length, Raw: true}
		gram, err := k.Gram(context.Background(), texts, objects.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range texts[:60] {
			for j, u := range texts[:60] {
				if got, want := gram.Row(i)[j], bruteSpectrum(s, u, length); got != want {
					t.Fatalf("%v of %q and %q is %v, want %v", k, s, u, got, want)
				}
			}
		}
	}
}

// TestProperties checks the contract of objects.Kernel for both kernels.
func TestProperties(t *testing.T) {
	ctx := context.Background()
	texts := append(randomTexts(t, 70, 40), "", "a")
	for _, k := range []objects.Kernel{
		strings.Subsequence{Length: 3, Decay: 0.5}, strings.Subsequence{Length: 2, Decay: 0.9, Raw: true},
		strings.Spectrum{Length: 2}, strings.Spectrum{Length: 3, Raw: true},
	} {
		parsed, err := objects.Parse(k.String())
		if err != nil || parsed != k {
			t.Errorf("Parse(%q) is %v, %v", k, parsed, err)
		}
		gram, err := k.Gram(ctx, texts, objects.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		var last float64
		parallel, err := k.Gram(ctx, texts, objects.Options{Threads: 5, Progress: func(f float64) {
			if f < last {
				t.Errorf("%v: progress fell from %v to %v", k, last, f)
			}
			last = f
		}})
		if err != nil || last != 1 {
			t.Errorf("%v: the progress ended at %v, error %v", k, last, err)
		}
		cross, err := k.Cross(ctx, texts, texts[:9], objects.Options{})
		if err != nil {
			t.Fatal(err)
		}
		diag, err := k.Diag(ctx, texts, objects.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range texts {
			for j := range texts {
				if gram.Row(i)[j] != parallel.Row(i)[j] || gram.Row(i)[j] != gram.Row(j)[i] {
					t.Fatalf("%v: (%d, %d) depends on the number of workers, or is not symmetric", k, i, j)
				}
				if j < 9 && !isNear(gram.Row(i)[j], cross.Row(i)[j], 400) {
					t.Fatalf("%v: (%d, %d) is %v in Gram, %v in Cross", k, i, j, gram.Row(i)[j], cross.Row(i)[j])
				}
			}
			if !isNear(gram.Row(i)[i], diag[i], 400) {
				t.Errorf("%v: diagonal %d is %v, Diag has %v", k, i, gram.Row(i)[i], diag[i])
			}
		}
	}
}

func TestCancel(t *testing.T) {
	s := make([]byte, 20000)
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err := strings.Subsequence{Length: 8, Decay: 0.5}.Gram(ctx, []string{string(s), string(s)}, objects.Options{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err = (strings.Spectrum{Length: 2}).Diag(ctx, nil, objects.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"subsequence(length=0)", "strings: subsequence: length must be an integer ≥ 1, got 0"},
		{"subsequence(length=2,decay=0)", "strings: subsequence: decay must be a finite number > 0, got 0"},
		{"subsequence(length=2,decay=1.5)", "strings: subsequence: decay must be at most 1, got 1.5"},
		{"subsequence(length=2147483647)", "strings: subsequence: decay 0.5 to the power of 2·2147483647 is too small for float64: raise decay, or lower length"},
		{"spectrum(length=2,normalized=2)", "objects: normalized must be 1 or 0, got 2"},
		{"spectrum(length=-1)", "strings: spectrum: length must be an integer ≥ 1, got -1"},
		{"spectrum", "kernels: character 1: spectrum needs length, as in spectrum(length=3)"},
		{"spectrun(length=2)", `kernels: character 1: unknown kernel "spectrun", did you mean "spectrum"?; the kernels are spectrum, subsequence`},
		{"spectrum(length=2) + 1", "kernels: character 22: a kernel is needed; the kernels are spectrum, subsequence"},
		{"", "kernels: character 1: a kernel is needed; the kernels are spectrum, subsequence"},
	} {
		if _, err := objects.Parse(c.text); err == nil || err.Error() != c.want {
			t.Errorf("%q: got %v, want %s", c.text, err, c.want)
		}
	}
	if !objects.IsObjectKernel("Spectrum ( length = 3 )") || objects.IsObjectKernel("gaussian(sigma=2)") || objects.IsObjectKernel("") {
		t.Error("Knows is wrong")
	}
	if len(objects.Catalogue()) != 2 {
		t.Errorf("catalogue: %v", objects.Catalogue())
	}
	for _, k := range []objects.Kernel{strings.Subsequence{}, strings.Spectrum{}} {
		if _, err := k.Gram(context.Background(), nil, objects.Options{}); err == nil {
			t.Errorf("%v: no error", k)
		}
	}
}

// TestSubsequencesLongerThanTheStrings checks that the kernel is 0 if Length is longer than all strings.
func TestSubsequencesLongerThanTheStrings(t *testing.T) {
	gram, err := strings.Subsequence{Length: math.MaxInt32, Decay: 1}.Gram(context.Background(), []string{"cat", "car"}, objects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range gram.Data {
		if v != 0 {
			t.Errorf("K is %v, want zeros", gram.Data)
		}
	}
}

func Example() {
	k, err := objects.Parse("subsequence(length=2,decay=0.5)")
	if err != nil {
		fmt.Println(err)
		return
	}
	gram, err := k.Gram(context.Background(), []string{"cat", "car", "bat"}, objects.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range gram.Rows {
		fmt.Printf("%.4f\n", gram.Row(i))
	}
	// Output:
	// [1.0000 0.4444 0.4444]
	// [0.4444 1.0000 0.0000]
	// [0.4444 0.0000 1.0000]
}
