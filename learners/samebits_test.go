package learners_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/learners"
)

var update = flag.Bool("update", false, "write testdata/samebits.txt anew")

// bitsFile has a line for each learner and task: its name, the task, and a hash of the bits of
// its predictions.
const bitsFile = "testdata/samebits.txt"

// TestSameBits fits each learner of the catalogue with its defaults on reproducible devices, and
// compares the bits of its predictions with those that another processor has written to
// testdata/samebits.txt. With -short, one number of threads is used.
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
	for i, dev := range reproducibleDevices(t) {
		info := dev.Info()
		for _, d := range learners.Catalogue() {
			for _, task := range d.Tasks {
				key := d.Name + " " + string(task)
				t.Run(fmt.Sprintf("%s/%d threads/%s", strings.ReplaceAll(info.Device, "/", " "), info.Threads, strings.ReplaceAll(key, " ", "/")), func(t *testing.T) {
					if d.Name == "bayes-ridge" && runtime.GOARCH != "amd64" {
						t.Skip("gonum's eigenvectors have other bits on amd64, where parts of its BLAS are assembly")
					}
					got := bitsOf(t, dev, d, task)
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
	}
	if *update {
		if err := os.WriteFile(bitsFile, []byte(written.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// reproducibleDevices opens each reproducible device that this machine has, with several numbers
// of threads.
func reproducibleDevices(t *testing.T) (list []backend.Device) {
	for _, s := range backend.Report() {
		if !s.Reproducible || s.Err != nil {
			continue
		}
		for _, threads := range []int{2, 1, 3, 8} {
			dev, err := backend.Open(s.Device, backend.Config{Threads: threads, Reproducible: true})
			if errors.Is(err, backend.ErrUnavailable) {
				required.Lacking(t, "unfused", err)
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

// bitsOf fits the learner to 150 samples of five features, quarters of whole numbers, and returns
// the hash of its predictions for other points.
func bitsOf(t *testing.T, dev backend.Device, d learners.Description, task learners.Task) string {
	rng := rand.New(rand.NewPCG(30, 2))
	const n, m, features = 150, 40, 5
	x, y, points := mat.NewDense(n, features, nil), mat.NewDense(n, 1, nil), mat.NewDense(m, features, nil)
	for i := range n {
		sum := 0
		for j := range features {
			v := rng.IntN(17) - 8
			sum += v * (j - 2)
			x.Set(i, j, float64(v)/4)
		}
		y.Set(i, 0, float64(sum+sum*sum/16+rng.IntN(5))/8)
		if task == learners.Classification {
			y.Set(i, 0, float64(min(max((sum+rng.IntN(5)+20)/20, 0), 1)))
		}
	}
	for i := range m {
		for j := range features {
			points.Set(i, j, float64(rng.IntN(33)-16)/8)
		}
	}
	settings, err := d.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	fit, err := settings.Fitter(task)
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
