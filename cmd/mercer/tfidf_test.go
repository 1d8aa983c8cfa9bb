package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestTextsHaveThePredictionsOfScikitLearn compares the predictions of models with tf-idf features with the results
// of testdata/tfidf/predictions.py, for training texts and for other texts.
func TestTextsHaveThePredictionsOfScikitLearn(t *testing.T) {
	text, err := os.ReadFile("testdata/tfidf/predictions.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Flags    []string
		Features int
		Hours    []float64
		Topics   []string
	}
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) == 0 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	l := gramLab{t, t.TempDir()}
	tables := []string{filepath.Join("../..", "docs/pictures/messages.csv"), filepath.Join("../..", "docs/pictures/newmessages.csv")}
	predicted := func() (list []string) {
		for _, table := range tables {
			lines := strings.Split(strings.TrimSpace(l.mercer("predict", "--quiet", "--model", l.path("m.st"), table)), "\n")
			list = append(list, lines[1:]...)
		}
		return list
	}
	for _, c := range cases {
		flags := strings.Join(c.Flags, " ")
		fit := func(drop, target string, extra ...string) {
			args := append([]string{"fit", "--json", "--text", "message", "--drop", drop, "--target", target, "--kernel", "linear()", "--model", l.path("m.st")}, c.Flags...)
			var report struct{ D int }
			if err := json.Unmarshal([]byte(l.mercer(append(append(args, extra...), tables[0])...)), &report); err != nil || report.D != c.Features {
				t.Fatalf("%s: %d features, not %d; %v", flags, report.D, c.Features, err)
			}
		}
		fit("topic", "hours", "--lambda", "0.5", "--no-intercept")
		// The features agree to 1e-12. The 45 rows have the norm 1, so that the norms of kernel matrices agree to
		// 45·2e-12. With a condition number of at most 45/λ + 1 and targets up to 55, predictions agree to tol.
		const tol = 45 * 2e-12 * (45/0.5 + 1) * 55
		got := predicted()
		if len(got) != len(c.Hours) {
			t.Fatalf("%s: %d predictions, not %d", flags, len(got), len(c.Hours))
		}
		for i, text := range got {
			if v, err := strconv.ParseFloat(text, 64); err != nil || !(math.Abs(v-c.Hours[i]) <= tol) {
				t.Errorf("%s: row %d has the prediction %s, not %v", flags, i+1, text, c.Hours[i])
			}
		}
		fit("hours", "topic", "--learner", "svc", "--C", "10", "--tol", "1e-8")
		if got := predicted(); !slices.Equal(got, c.Topics) {
			t.Errorf("%s: topics %q, not %q", flags, got, c.Topics)
		}
	}
}
