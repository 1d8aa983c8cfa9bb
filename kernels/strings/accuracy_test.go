package strings_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	gostrings "strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels/objects"
	"github.com/mercer-go/mercer/kernels/strings"
)

// labeled returns the texts and the targets of a file of the shared data, or skips the test.
func labeled(t testing.TB, name string) (texts, targets []string) {
	for _, row := range required.Rows(t, name) {
		texts, targets = append(texts, row[0]), append(targets, row[1])
	}
	return texts, targets
}

// choose returns the elements of list with the given indices.
func choose[T any](list []T, numbers []int) []T {
	out := make([]T, len(numbers))
	for i, n := range numbers {
		out[i] = list[n]
	}
	return out
}

// signs returns a column with 1 for each text of the given class and −1 for each other text.
func signs(targets []string, class string) backend.Host[float64] {
	y := backend.NewHost[float64](len(targets), 1)
	for i, c := range targets {
		y.Data[i] = -1
		if c == class {
			y.Data[i] = 1
		}
	}
	return y
}

// ridge solves (K + λI)α = y, where K is gram and λ is lambda, and returns α. It overwrites gram.
func ridge(t testing.TB, gram, y backend.Host[float64], lambda float64) backend.Host[float64] {
	t.Helper()
	dev := backendtest.Device(t, "cpu", backend.Config{})
	b := dev.F64()
	k, err := backend.Place(b, gram)
	if err != nil {
		t.Fatal(err)
	}
	b.AddDiag([]float64{lambda}, k)
	if err := b.Potrf(backend.Lower, k); err != nil {
		t.Fatal(err)
	}
	alpha, err := b.New(y.Rows, y.Cols)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Upload(alpha, y); err != nil {
		t.Fatal(err)
	}
	b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, k, alpha)
	b.Trsm(backend.Left, backend.Lower, backend.Transpose, 1, k, alpha)
	out := backend.NewHost[float64](y.Rows, y.Cols)
	if err := b.Download(out, alpha); err != nil {
		t.Fatal(err)
	}
	return out
}

// product returns A·B, computed on the host.
func product(a, b backend.Host[float64]) backend.Host[float64] {
	out := mat.NewDense(a.Rows, b.Cols, nil)
	out.Mul(mat.NewDense(a.Rows, a.Cols, a.Data), mat.NewDense(b.Rows, b.Cols, b.Data))
	return backend.Host[float64]{Rows: a.Rows, Cols: b.Cols, Stride: b.Cols, Data: out.RawMatrix().Data}
}

// submatrix returns the submatrix of a Gram matrix with the given rows and columns.
func submatrix(gram backend.Host[float64], rows, cols []int) backend.Host[float64] {
	out := backend.NewHost[float64](len(rows), len(cols))
	for i, r := range rows {
		from, to := gram.Row(r), out.Row(i)
		for j, c := range cols {
			to[j] = from[c]
		}
	}
	return out
}

// TestAccuracySpam checks the accuracy of kernel ridge regression with the spectrum kernel on spam,
// in five-fold cross-validation.
func TestAccuracySpam(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: five times 4,459 messages")
	}
	texts, targets := labeled(t, "sms_spam.csv")
	t.Log("seed", seed)
	order := rand.New(rand.NewPCG(seed, 0)).Perm(len(texts))
	gram, err := strings.Spectrum{Length: 3}.Gram(context.Background(), texts, objects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const folds = 5
	right := 0
	for fold := range folds {
		lo, hi := fold*len(order)/folds, (fold+1)*len(order)/folds
		test, train := order[lo:hi], slices.Concat(order[:lo], order[hi:])
		y := signs(choose(targets, train), "spam")
		f := product(submatrix(gram, test, train), ridge(t, submatrix(gram, train, train), y, 0.1))
		for i, want := range signs(choose(targets, test), "spam").Data {
			if (f.Data[i] > 0) == (want > 0) {
				right++
			}
		}
	}
	accuracy := float64(right) / float64(len(texts))
	t.Logf("spectrum of 3, λ = 0.1: %d of %d messages right, %.4f", right, len(texts), accuracy)
	if accuracy < 0.984 {
		t.Errorf("the accuracy is %.4f, 0.984 is needed", accuracy)
	}
}

// TestAccuracyPromoters checks the leave-one-out accuracy of kernel ridge regression with the spectrum kernel on 106
// sequences of DNA. Sequence i is predicted by y_i − α_i / [(K+λI)⁻¹]_ii, where α solves (K+λI)α = y.
func TestAccuracyPromoters(t *testing.T) {
	texts, targets := labeled(t, "promoters_dna.csv")
	n := len(texts)
	gram, err := strings.Spectrum{Length: 5}.Gram(context.Background(), texts, objects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	y := signs(targets, "promoter")
	rhs := backend.NewHost[float64](n, n+1) // right-hand sides y and I
	for i := range n {
		rhs.Row(i)[0], rhs.Row(i)[1+i] = y.Data[i], 1
	}
	solution := ridge(t, gram, rhs, 0.1)
	right := 0
	for i := range n {
		if f := y.Data[i] - solution.Row(i)[0]/solution.Row(i)[1+i]; f*y.Data[i] > 0 {
			right++
		}
	}
	accuracy := float64(right) / float64(n)
	t.Logf("spectrum of 5, λ = 0.1, leave one out: %d of %d sequences right, %.4f", right, n, accuracy)
	if accuracy < 0.97 {
		t.Errorf("the accuracy is %.4f, 0.97 is needed", accuracy)
	}
}

// surnameRows is the number of training names. MERCER_SURNAMES=14410 trains on all names except the last fifth.
const surnameRows = 3000

// TestAccuracySurnames checks that kernel ridge regression with spectrum kernels of lengths 1 to 4 predicts the
// language of a surname at least as accurately as logistic regression on trigram counts.
func TestAccuracySurnames(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 3,000 names of 18 languages")
	}
	n := surnameRows
	if v := os.Getenv("MERCER_SURNAMES"); v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	}
	texts, targets := labeled(t, "surnames_by_language.csv")
	for i, s := range texts {
		texts[i] = "^" + s + "$" // mark the ends of a name, so that substrings can include them
	}
	t.Log("seed", seed)
	order := rand.New(rand.NewPCG(seed, 0)).Perm(len(texts))
	train, test := order[:n], order[len(order)*4/5:]
	baseline := trigramBaseline(t, texts, targets, train, test)

	ctx := context.Background()
	gram, cross := backend.NewHost[float64](n, n), backend.NewHost[float64](len(test), n)
	for length := 1; length <= 4; length++ {
		k := strings.Spectrum{Length: length}
		g, err := k.Gram(ctx, choose(texts, train), objects.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c, err := k.Cross(ctx, choose(texts, test), choose(texts, train), objects.Options{})
		if err != nil {
			t.Fatal(err)
		}
		floats.Add(gram.Data, g.Data)
		floats.Add(cross.Data, c.Data)
	}
	classes := slices.Compact(slices.Sorted(slices.Values(targets)))
	y := backend.NewHost[float64](n, len(classes))
	for i, c := range choose(targets, train) {
		y.Row(i)[slices.Index(classes, c)] = 1
	}
	f := product(cross, ridge(t, gram, y, 1))
	right := 0
	for i, want := range choose(targets, test) {
		if classes[floats.MaxIdx(f.Row(i))] == want {
			right++
		}
	}
	accuracy := float64(right) / float64(len(test))
	t.Logf("%d names, spectra of 1 to 4, λ = 1: %d of %d names right, %.4f; trigrams and logistic regression %.4f", n, right, len(test), accuracy, baseline)
	if accuracy < baseline {
		t.Errorf("the accuracy is %.4f, the baseline's is %.4f", accuracy, baseline)
	}
}

// trigramBaseline returns the accuracy of scikit-learn's LogisticRegression on trigram counts, with the penalty
// that is best on the test data. It skips the test if scikit-learn is missing.
func trigramBaseline(t *testing.T, texts, targets []string, train, test []int) float64 {
	cmd := exec.Command(required.SKLearn(t), "-W", "ignore", "-c", `
import json, sys
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
d = json.load(sys.stdin)
v = CountVectorizer(analyzer="char", ngram_range=(3, 3), lowercase=False)
x, z = v.fit_transform(d["x"]), v.transform(d["z"])
print(max(LogisticRegression(C=c, max_iter=300).fit(x, d["y"]).score(z, d["w"]) for c in (0.3, 1, 3, 10)))`)
	input, err := json.Marshal(map[string][]string{
		"x": choose(texts, train), "y": choose(targets, train), "z": choose(texts, test), "w": choose(targets, test),
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), os.Stderr
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("scikit-learn: %v", err)
	}
	v, err := strconv.ParseFloat(gostrings.TrimSpace(string(out)), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
