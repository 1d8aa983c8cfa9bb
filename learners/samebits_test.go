package learners_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/page"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/learners"
)

var update = flag.Bool("update", false, "write testdata/samebits.txt and the table of hashes in docs/trust.md anew")

// trust is the page of the guide that contains the table of hashes.
const trust = "../docs/trust.md"

// bitsFile has a line with the name of the learner, the task and a hash of the predictions for each fit.
const bitsFile = "testdata/samebits.txt"

// TestSameBits fits each learner of the catalogue with its defaults on reproducible devices, and compares the hash
// of the predictions with the hash in testdata/samebits.txt, which was computed on a different processor.
func TestSameBits(t *testing.T) {
	want := map[string]string{}
	if text, err := os.ReadFile(bitsFile); err == nil {
		for line := range strings.Lines(string(text)) {
			if key, hash, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
				want[key] = hash
			}
		}
	} else if !*update {
		t.Fatal(err)
	}
	var written strings.Builder
	current := map[string]map[string]string{} // for each device and architecture, a map from learner and task to hash
	for i, dev := range reproducibleDevices(t) {
		info := dev.Info()
		column := info.Device + ", " + runtime.GOARCH
		if current[column] == nil {
			current[column] = map[string]string{}
		}
		for j, c := range bitsCases() {
			if required.FewCases() && !*update && (i+j)%3 != 0 {
				continue
			}
			key := c.key()
			t.Run(fmt.Sprintf("%s/%d threads/%s", strings.ReplaceAll(info.Device, "/", " "), info.Threads, strings.ReplaceAll(key, " ", "/")), func(t *testing.T) {
				got := bitsOf(t, dev, c)
				if previous, ok := current[column][key]; ok && previous != got {
					t.Errorf("the hash is %s, with another number of threads %s", got, previous)
				}
				current[column][key] = got
				if i == 0 && *update {
					want[key] = got
					fmt.Fprintf(&written, "%s: %s\n", key, got)
				}
				const remedy = "go test ./learners -run TestSameBits -args -update"
				switch {
				case want[key] == "":
					t.Errorf("%s has no line for %q: `%s` adds it", bitsFile, key, remedy)
				case got != want[key]:
					t.Errorf("the bits of the predictions have the hash %s, and %s has %s: if the change is intended, `%s` writes it", got, bitsFile, want[key], remedy)
				}
			})
		}
	}
	columns, err := pageBits()
	if err != nil {
		t.Fatal(err)
	}
	for column, hashes := range current {
		for key, hash := range hashes {
			if documented := columns[column]; !*update && documented != nil && documented[key] != hash[:8] {
				t.Errorf("%s has the hash %q of %s on %s, want %s: `go test ./learners -run TestSameBits -args -update` writes it", trust, documented[key], key, column, hash[:8])
			}
		}
	}
	if *update {
		for _, hashes := range columns {
			clear(hashes)
			for key, hash := range want { // every device of every architecture must have these hashes
				hashes[key] = hash[:8]
			}
		}
		if err := writeBits(columns); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(bitsFile, []byte(written.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// bitsTable is the name of the table of hashes in docs/trust.md.
const bitsTable = "bits"

// pageBits returns the hashes in docs/trust.md: for each column of the table, a map from learner and task to hash.
func pageBits() (map[string]map[string]string, error) {
	text, err := page.Section(trust, bitsTable)
	if err != nil {
		return nil, err
	}
	cells := func(line string) (list []string) {
		for _, cell := range strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			list = append(list, strings.Trim(cell, " `"))
		}
		return list
	}
	columns := map[string]map[string]string{}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, line := range lines[min(2, len(lines)):] {
		for j, cell := range cells(line)[1:] {
			column, key := cells(lines[0])[j+1], cells(line)[0]
			if columns[column] == nil {
				columns[column] = map[string]string{}
			}
			columns[column][key] = cell
		}
	}
	return columns, nil
}

// writeBits writes hashes, in the form of the result of pageBits, to docs/trust.md.
func writeBits(columns map[string]map[string]string) error {
	titles := slices.Sorted(maps.Keys(columns))
	var b strings.Builder
	fmt.Fprintf(&b, "| learner, task and features | %s |\n|---|%s\n", strings.Join(titles, " | "), strings.Repeat("---|", len(titles)))
	for _, c := range bitsCases() {
		fmt.Fprintf(&b, "| %s |", c.key())
		for _, title := range titles {
			if hash := columns[title][c.key()]; hash != "" {
				fmt.Fprintf(&b, " `%s` |", hash)
			} else {
				b.WriteString(" |")
			}
		}
		b.WriteString("\n")
	}
	return page.Replace(trust, bitsTable, b.String())
}

// reproducibleDevices opens each reproducible device that this machine has, with several numbers of threads.
func reproducibleDevices(t *testing.T) (list []backend.Device) {
	for _, s := range backend.Report() {
		if !s.Reproducible || s.Err != nil {
			continue
		}
		for _, threads := range []int{2, 1, 3, 8} {
			dev, err := backend.Open(s.Device, backend.Config{Threads: threads, Reproducible: true})
			if errors.Is(err, backend.ErrUnavailable) {
				required.SkipOrFail(t, "unfused", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { dev.Close() })
			list = append(list, dev)
			if testing.Short() || strings.HasSuffix(s.Device, "generic") {
				break
			}
		}
	}
	return list
}

// bitsCase is a fit. testdata/samebits.txt has a hash of its predictions.
type bitsCase struct {
	learner  learners.Description
	task     learners.Task
	features int
	flags    map[string]string // parameters that differ from the defaults
}

func (c bitsCase) key() string {
	key := fmt.Sprintf("%s %s %d", c.learner.Name, c.task, c.features)
	for _, name := range slices.Sorted(maps.Keys(c.flags)) {
		key += " --" + name + " " + c.flags[name]
	}
	return key
}

// bitsCases returns a case for each learner, each of its tasks and each number of features that bitsOf accepts.
func bitsCases() (list []bitsCase) {
	for _, d := range learners.Catalogue() {
		for _, task := range d.Tasks {
			for _, features := range []int{5, 20, 200} {
				list = append(list, bitsCase{d, task, features, nil})
			}
		}
		if d.Name == "gaussian-process" {
			list = append(list, bitsCase{d, learners.Regression, 12, map[string]string{"ard": "true"}})
		}
	}
	return list
}

// bitsOf fits the learner to samples of features that are multiples of 1/4, and returns the hash of its
// predictions for other points.
func bitsOf(t *testing.T, dev backend.Device, c bitsCase) string {
	rng := rand.New(rand.NewPCG(30, 2))
	n, m, features := 150, 40, c.features
	if features > 5 {
		n = 60
	}
	x, y, points := mat.NewDense(n, features, nil), mat.NewDense(n, 1, nil), mat.NewDense(m, features, nil)
	row := func(to *mat.Dense, i int, draw func() int, unit float64) (sum int) {
		for j := range features {
			v := draw()
			sum += v * (j%5 - 2)
			to.Set(i, j, float64(v)/unit)
			if features == 20 && j >= 15 {
				to.Set(i, j, to.At(i, j-15)+to.At(i, j-8))
			}
		}
		return sum
	}
	for i := range n {
		sum := row(x, i, func() int { return rng.IntN(17) - 8 }, 4)
		y.Set(i, 0, float64(sum+sum*sum/16+rng.IntN(5))/8)
		if c.task == learners.Classification {
			y.Set(i, 0, float64(min(max((sum+rng.IntN(5)+20)/20, 0), 1)))
		}
	}
	for i := range m {
		row(points, i, func() int { return rng.IntN(33) - 16 }, 8)
	}
	settings, err := c.learner.Parse(c.flags)
	if err != nil {
		t.Fatal(err)
	}
	fit, err := settings.Fitter(c.task)
	if err != nil {
		t.Fatal(err)
	}
	model, err := fit(context.Background(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	predict := model.Predict
	if c, ok := model.(learners.Classifier); ok {
		predict = c.Decision
	}
	f, err := predict(context.Background(), dev, points)
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.New()
	for _, v := range f.RawMatrix().Data {
		if v != v {
			t.Fatal("a prediction is NaN")
		}
		if err := binary.Write(hash, binary.LittleEndian, math.Float64bits(v)); err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf("%x", hash.Sum(nil)[:12])
}
