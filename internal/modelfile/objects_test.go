package modelfile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

// textBundle returns a model of texts, the points of its training texts, and the points of two other texts.
func textBundle(t *testing.T) (b Bundle, training, newPoints *mat.Dense) {
	t.Helper()
	table, err := dataset.ReadCSV("-", strings.NewReader("word,n\nab,1\nabc,2\nb,3\n"))
	if err != nil {
		t.Fatal(err)
	}
	e, err := dataset.Learn(table, dataset.Rules{Targets: []string{"n"}, Text: "word"})
	if err != nil {
		t.Fatal(err)
	}
	y, err := e.Targets(table)
	if err != nil {
		t.Fatal(err)
	}
	gram, err := kernels.TrainingPoints(3, []float64{2, 1, 0.5, 1, 3, 0.25, 0.5, 0.25, 1})
	if err != nil {
		t.Fatal(err)
	}
	points, err := kernels.OtherPoints(3, []float64{1, 0, 0.5, 2, 1, 0}, []float64{2, 4})
	if err != nil {
		t.Fatal(err)
	}
	training = mat.NewDense(3, 5, gram)
	m, err := learners.KernelRidge{Kernel: kernels.Precomputed{}, Lambda: 0.1, NoIntercept: true}.Fit(t.Context(), backendtest.Device(t, "ref"), training, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	objects := &Objects{Kernel: "spectrum(length=2)", Training: []string{"ab", "abc", "b"}}
	return Bundle{Model: m, Encoder: e, Objects: objects}, training, mat.NewDense(2, 5, points)
}

// TestObjects checks that a model of texts is read back with its training texts, without their kernel values.
func TestObjects(t *testing.T) {
	b, training, newPoints := textBundle(t)
	if len(pointNames(b)) == 0 {
		t.Error("no array of the model is points")
	}
	path := filepath.Join(t.TempDir(), "m.safetensors")
	if err := Save(path, b); err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.Objects, loaded.Objects); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(b.Encoder, loaded.Encoder); diff != "" {
		t.Error(diff)
	}
	want, err := b.Model.Predict(t.Context(), backendtest.Device(t, "ref"), newPoints)
	if err != nil {
		t.Fatal(err)
	}
	got, err := loaded.Model.Predict(t.Context(), backendtest.Device(t, "ref"), newPoints)
	if err != nil || !mat.Equal(got, want) {
		t.Errorf("the predictions differ; %v", err)
	}
	// Predictions for the training objects do not need the omitted values either.
	want, err = b.Model.Predict(t.Context(), backendtest.Device(t, "ref"), training)
	if err != nil {
		t.Fatal(err)
	}
	got, err = loaded.Model.Predict(t.Context(), backendtest.Device(t, "ref"), training)
	if err != nil || !mat.Equal(got, want) {
		t.Errorf("the predictions for training objects differ; %v", err)
	}
	trimmed, _ := b.Objects.trim(b.Model.State().Arrays)
	for _, name := range pointNames(b) {
		if h := trimmed[name]; h.Cols != 2 || h.Rows != 3 {
			t.Errorf("%s is kept as %d×%d", name, h.Rows, h.Cols)
		}
	}
	secondPath := filepath.Join(t.TempDir(), "again.safetensors")
	if err := Save(secondPath, loaded); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := os.ReadFile(secondPath); err != nil || !slices.Equal(first, second) {
		t.Error("saved again, the bytes differ")
	}
}

func pointNames(b Bundle) []string {
	_, names := b.Objects.trim(b.Model.State().Arrays)
	return names
}

// TestObjectsCheck checks that objects, encoder and model must belong to the same fit.
func TestObjectsCheck(t *testing.T) {
	b, _, _ := textBundle(t)
	path := filepath.Join(t.TempDir(), "m.safetensors")
	for want, change := range map[string]func(b *Bundle){
		"no kernel for texts is given":                           func(b *Bundle) { b.Objects = nil },
		"the input column holds neither":                         func(b *Bundle) { b.Encoder = nil },
		"the kernel has 2 training objects, but the model takes": func(b *Bundle) { b.Objects = &Objects{Kernel: "k", Training: []string{"a", "b"}} },
	} {
		invalid := b
		change(&invalid)
		if err := Save(path, invalid); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	trimmed, names := b.Objects.trim(b.Model.State().Arrays)
	if len(names) == 0 {
		t.Fatal("nothing is trimmed")
	}
	if _, err := b.Objects.pad(trimmed, []string{"none"}); err == nil {
		t.Error("points that are not there are read")
	}
	large := map[string]backend.Host[float64]{"x": {Rows: maxPoints, Cols: 2, Stride: 2}} // the array is refused before it is read
	if _, err := b.Objects.pad(large, []string{"x"}); err == nil {
		t.Error("more points than possible are accepted")
	}
	for _, text := range []string{"{", `{"kernel":"k","training":["a"],"points":["none"]}`, `{"other":1}`} {
		if _, _, err := decodeObjects(text, trimmed); err == nil {
			t.Errorf("%s is read", text)
		}
	}
}
