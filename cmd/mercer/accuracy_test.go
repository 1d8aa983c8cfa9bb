package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mercer-go/mercer/internal/required"
)

// TestAccuracy runs the command on data sets for which the accuracy of other programs is known, and prints a row of
// bench/results/accuracy.md for each. The variable MERCER_ACCURACY lists the data sets, or is "all".
//
//	MERCER_ACCURACY=all go test -run TestAccuracy -v -timeout 2h ./cmd/mercer
func TestAccuracy(t *testing.T) {
	requested := strings.Split(os.Getenv("MERCER_ACCURACY"), ",")
	for _, test := range []struct {
		name        string
		source      string
		minAccuracy float64
		quick       bool // the run takes seconds and does not need MERCER_ACCURACY
		run         func(l *accuracyLab) (commands string, accuracy float64)
	}{
		{"promoters", "106 sequences, leave-one-out", 0.97, true, promoters},
		{"sms", "5,574 messages, five folds", 0.984, false, spam},
		{"surnames", "18,012 names of 18 languages, four fifths for training", 0.80, false, surnames},
		{"letter", "16,000 letters for training, 4,000 for the test", 0.97, false, letters},
		{"mnist-exact", "10,000 digits for training, 10,000 for the test", 0.972, false, mnistExact},
		{"mnist-nystrom", "60,000 digits for training, 10,000 for the test", 0.983, false, mnistNystrom},
	} {
		t.Run(test.name, func(t *testing.T) {
			if isRequested := slices.Contains(requested, test.name) || slices.Contains(requested, "all"); !isRequested && (!test.quick || testing.Short()) {
				t.Skipf("takes minutes: MERCER_ACCURACY=%s runs it", test.name)
			}
			start := time.Now()
			commands, accuracy := test.run(&accuracyLab{t, t.TempDir()})
			t.Logf("| %s | %s | `%s` | ≥ %.2f %% | %.2f %% | %.0f s |", test.name, test.source, commands, 100*test.minAccuracy, 100*accuracy, time.Since(start).Seconds())
			if accuracy < test.minAccuracy {
				t.Errorf("the accuracy is %.4f, %.4f is asked for", accuracy, test.minAccuracy)
			}
		})
	}
}

// accuracyLab runs commands in a temporary folder.
type accuracyLab struct {
	*testing.T
	folder string
}

func (l *accuracyLab) data(name string) string { return required.Data(l, name) }
func (l *accuracyLab) file(name string) string { return filepath.Join(l.folder, name) }

// mercer runs a command and returns its JSON output.
func (l *accuracyLab) mercer(args ...string) map[string]any {
	l.Helper()
	var out, errs bytes.Buffer
	start := time.Now()
	if code := run(append(args, "--quiet", "--json"), strings.NewReader(""), &out, &errs); code != 0 {
		l.Fatalf("mercer %s: %d: %s", strings.Join(args, " "), code, errs.String())
	}
	var object map[string]any
	if err := json.Unmarshal(out.Bytes(), &object); err != nil {
		l.Fatal(err)
	}
	l.Logf("mercer %s: %.1f s", strings.ReplaceAll(strings.Join(args, " "), l.folder+"/", ""), time.Since(start).Seconds())
	return object
}

// mean returns the mean of a measure over the folds, from the output of mercer cv.
func (l *accuracyLab) mean(report map[string]any, name string) float64 {
	l.Helper()
	for _, m := range report["measures"].([]any) {
		if m := m.(map[string]any); m["name"] == name {
			return m["mean"].(float64)
		}
	}
	l.Fatalf("there is no %s in %v", name, report)
	return 0
}

func promoters(l *accuracyLab) (string, float64) {
	args := []string{"cv", "--folds", "106", "--no-stratify", "--text", "text", "--kernel", "spectrum(length=5)", "--lambda", "0.1", "--target", "target"}
	return "mercer " + strings.Join(args, " "), l.mean(l.mercer(append(args, l.data("promoters_dna.csv"))...), "accuracy")
}

func spam(l *accuracyLab) (string, float64) {
	args := []string{"cv", "--folds", "5", "--text", "text", "--kernel", "spectrum(length=3)", "--lambda", "0.1", "--target", "target"}
	return "mercer " + strings.Join(args, " "), l.mean(l.mercer(append(args, l.data("sms_spam.csv"))...), "accuracy")
}

// surnames adds a mark at both ends of each name, so that a substring at an end differs from one inside a name.
func surnames(l *accuracyLab) (string, float64) {
	text, err := os.ReadFile(l.data("surnames_by_language.csv"))
	if err != nil {
		l.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for i, line := range lines[1:] {
		name, language, ok := strings.Cut(line, ",")
		if !ok || strings.ContainsAny(line, `"`) {
			l.Fatalf("line %d of the names is %q", i+2, line)
		}
		lines[i+1] = "^" + name + "$," + language
	}
	if err := os.WriteFile(l.file("names.csv"), []byte(strings.Join(lines, "\n")+"\n"), 0o666); err != nil {
		l.Fatal(err)
	}
	args := []string{"fit", "--text", "text", "--kernel", "spectrum(length=1) + spectrum(length=2) + spectrum(length=3) + spectrum(length=4)",
		"--lambda", "1", "--target", "target", "--test-fraction", "0.2"}
	report := l.mercer(append(args, "--model", l.file("m.safetensors"), l.file("names.csv"))...)
	return "mercer " + strings.Join(args, " "), report["test"].(map[string]any)["accuracy"].(float64)
}

func letters(l *accuracyLab) (string, float64) {
	text, err := os.ReadFile(l.data("letter.csv"))
	if err != nil {
		l.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	for name, rows := range map[string][]string{"train.csv": lines[1:16001], "test.csv": lines[16001:]} {
		if err := os.WriteFile(l.file(name), []byte(lines[0]+strings.Join(rows, "")), 0o666); err != nil {
			l.Fatal(err)
		}
	}
	args := []string{"fit", "--learner", "svc", "--kernel", "gaussian(sigma=2)", "--C", "10", "--target", "target"}
	l.mercer(append(args, "--model", l.file("m.safetensors"), l.file("train.csv"))...)
	return "mercer " + strings.Join(args, " "), l.evaluate("m.safetensors", l.file("test.csv"))
}

func (l *accuracyLab) evaluate(model, table string, args ...string) float64 {
	l.Helper()
	report := l.mercer(append([]string{"evaluate", "--model", l.file(model), table}, args...)...)
	return report["accuracy"].(float64)
}

var mnistFiles = []string{"mnist-train-images-idx3-ubyte.gz", "mnist-train-labels-idx1-ubyte.gz", "mnist-t10k-images-idx3-ubyte.gz", "mnist-t10k-labels-idx1-ubyte.gz"}

// first copies the first items of the compressed IDX file called name to a new file, whose name is the argument to.
func (l *accuracyLab) first(name, to string, items int) {
	l.Helper()
	f, err := os.Open(l.data(name))
	if err != nil {
		l.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		l.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		l.Fatal(err)
	}
	head, size := 4+4*int(data[3]), 1
	for i := 1; i < int(data[3]); i++ {
		size *= int(binary.BigEndian.Uint32(data[4+4*i:]))
	}
	binary.BigEndian.PutUint32(data[4:], uint32(items))
	if err := os.WriteFile(l.file(to), data[:head+items*size], 0o666); err != nil {
		l.Fatal(err)
	}
}

// mnistRules are flags that treat the digits as classes and do not rescale the pixel values, 0 to 255.
var mnistRules = []string{"--target", "label", "--task", "classification", "--no-standardize"}

// mnistExact chooses σ and λ by leave-one-out errors on 4,000 of the first 10,000 digits, fits
// kernel ridge to all 10,000, and tests on the test set of 10,000.
func mnistExact(l *accuracyLab) (string, float64) {
	l.first(mnistFiles[0], "train-images-idx3-ubyte", 10000)
	l.first(mnistFiles[1], "train-labels-idx1-ubyte", 10000)
	args := append([]string{"tune", "--rows", "4000", "--kernel", "gaussian(sigma=1200)", "--reach", "2", "--steps", "5"}, mnistRules...)
	report := l.mercer(append(args, "--model", l.file("m.safetensors"), l.file("train-images-idx3-ubyte"))...)
	l.Logf("found %v, λ = %v, leave-one-out RMSE %v", report["kernel"], report["lambda"], report["score"])
	accuracy := l.evaluate("m.safetensors", l.data(mnistFiles[2]))
	if streamed := l.evaluate("m.safetensors", l.data(mnistFiles[2]), "--stream"); streamed != accuracy {
		l.Errorf("read in blocks the accuracy is %v, of the whole table %v", streamed, accuracy)
	}
	return "mercer " + strings.Join(args, " "), accuracy
}

// mnistNystrom fits a Nyström model to all 60,000 digits with a small λ. The kernel is e⁴ times the Gaussian kernel
// with σ = ½ on images scaled to norm 1.
func mnistNystrom(l *accuracyLab) (string, float64) {
	centers := 11000
	if v := os.Getenv("MERCER_CENTERS"); v != "" {
		if _, err := fmt.Sscan(v, &centers); err != nil {
			l.Fatal(err)
		}
	}
	args := append([]string{"fit", "--learner", "nystrom-ridge", "--centers", fmt.Sprint(centers), "--kernel", "exp(4*cosinesimilarity())", "--lambda", "0.001"}, mnistRules...)
	report := l.mercer(append(args, "--model", l.file("m.safetensors"), l.data(mnistFiles[0]))...)
	l.Logf("%v, %v", report["solver"], report["seconds"])
	return "mercer " + strings.Join(args, " "), l.evaluate("m.safetensors", l.data(mnistFiles[2]))
}
