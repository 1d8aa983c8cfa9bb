package modelfile

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/backend/ref"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/learnertest"
	"gonum.org/v1/gonum/mat"
)

var update = flag.Bool("update", false, "write testdata anew")

// training is a table with a number, a text and two targets.
const training = `size,kind,price,age
1,oak,2,10
2,<ash>,4.5,20
3,oak,5.5,30
4,pine,8,45
`

func bundle(t testing.TB, kernel kernels.Kernel, encoded bool) Bundle {
	t.Helper()
	table, err := dataset.ReadCSV("-", strings.NewReader(training))
	if err != nil {
		t.Fatal(err)
	}
	x, y, e := learnertest.Encode(t, table, dataset.Rules{Targets: []string{"price", "age"}, Standardize: true})
	var b Bundle
	if encoded {
		b.Encoder = e
	}
	if kernel == nil {
		b.Model, err = learners.Ridge{Lambda: 0.1}.Fit(t.Context(), backendtest.Device(t, "ref"), x, y, learners.Options{})
	} else {
		b.Model, err = learners.KernelRidge{Kernel: kernel, Lambda: 0.1}.Fit(t.Context(), backendtest.Device(t, "ref"), x, y, learners.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// bundles returns bundles with models of every kind.
func bundles(t testing.TB) map[string]Bundle {
	return map[string]Bundle{
		"ridge":            bundle(t, nil, true),
		"ridge, no table":  bundle(t, nil, false),
		"gaussian":         bundle(t, kernels.Gaussian{Sigma: 1.5}, true),
		"sigmas, no table": bundle(t, kernels.Gaussian{Sigmas: []float64{1, 2, 3, 1.0 / 3}}, false),
		"composed":         bundle(t, kernels.Sum{kernels.Linear{}, kernels.Scaled{Weight: 0.5, Kernel: kernels.Polynomial{Degree: 2, C: 1}}}, true),
	}
}

// savedBytes returns the bytes of b's file.
func savedBytes(t testing.TB, b Bundle) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.safetensors")
	if err := Save(path, b); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// predictions returns the predictions for 3 rows.
func predictions(t testing.TB, m learners.Model) *mat.Dense {
	t.Helper()
	d, _ := m.Dims()
	x := mat.NewDense(3, d, nil)
	for i := range 3 {
		for j := range d {
			x.Set(i, j, 1/float64(1+i+2*j))
		}
	}
	f, err := m.Predict(t.Context(), backendtest.Device(t, "ref"), x)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// sameBundle returns the first difference of learner, parameters, arrays and encoder, or "".
func sameBundle(a, b Bundle) string {
	return cmp.Diff(a.Model.State(), b.Model.State()) + cmp.Diff(a.Encoder, b.Encoder)
}

func TestRoundTrip(t *testing.T) {
	for name, b := range bundles(t) {
		t.Run(name, func(t *testing.T) {
			data := savedBytes(t, b)
			if !bytes.Equal(savedBytes(t, b), data) {
				t.Error("saved twice, the bytes differ")
			}
			got, err := read(bytes.NewReader(data), int64(len(data)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := sameBundle(b, got); diff != "" {
				t.Error(diff)
			}
			if !mat.Equal(predictions(t, got.Model), predictions(t, b.Model)) {
				t.Error("the predictions have other bits")
			}
			if !bytes.Equal(savedBytes(t, got), data) {
				t.Error("saved again after loading, the bytes differ")
			}
		})
	}
}

// TestLayout reads a file without this package, according to the specification of the public format.
func TestLayout(t *testing.T) {
	for name, b := range bundles(t) {
		t.Run(name, func(t *testing.T) {
			data := savedBytes(t, b)
			length := binary.LittleEndian.Uint64(data)
			text := data[8 : 8+length]
			if text[0] != '{' || length%8 != 0 {
				t.Errorf("the header begins with %q and has %d bytes", text[0], length)
			}
			if trimmed := bytes.TrimRight(text, " "); trimmed[len(trimmed)-1] != '}' || len(text)-len(trimmed) > 7 {
				t.Errorf("the header ends with %q", text[len(trimmed)-1:])
			}
			var header map[string]struct {
				Dtype   string  `json:"dtype"`
				Shape   []int   `json:"shape"`
				Offsets []int64 `json:"data_offsets"`
			}
			metadata := map[string]map[string]string{}
			var parts map[string]json.RawMessage
			if err := json.Unmarshal(text, &parts); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(`{"m":`+string(parts["__metadata__"])+`}`), &metadata); err != nil {
				t.Fatal(err)
			}
			delete(parts, "__metadata__")
			tensors, err := json.Marshal(parts)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(tensors, &header); err != nil {
				t.Fatal(err)
			}
			next := int64(0)
			for _, name := range slices.Sorted(maps.Keys(header)) {
				h := header[name]
				if h.Dtype != "F64" || len(h.Shape) != 2 || h.Offsets[0] != next || h.Offsets[1]-h.Offsets[0] != int64(8*h.Shape[0]*h.Shape[1]) {
					t.Errorf("array %q: %+v", name, h)
				}
				next = h.Offsets[1]
			}
			if int(next) != len(data)-8-int(length) {
				t.Errorf("%d bytes of data, the header describes %d", len(data)-8-int(length), next)
			}
			keys := slices.Sorted(maps.Keys(metadata["m"]))
			want := []string{"format", "learner", "model", "sha256", "version"}
			if b.Encoder != nil {
				want = append([]string{"encoder"}, want...)
			}
			if !slices.Equal(keys, want) {
				t.Errorf("the metadata are %v, want %v", keys, want)
			}
			for name, want := range b.Model.State().Arrays {
				offset := 8 + int64(length) + header[name].Offsets[0]
				for i := range want.Rows {
					for _, v := range want.Row(i) {
						if got := math.Float64frombits(binary.LittleEndian.Uint64(data[offset:])); got != v {
							t.Errorf("array %q, byte %d: got %v, want %v", name, offset, got, v)
						}
						offset += 8
					}
				}
			}
		})
	}
}

// TestOldFile checks that a file of version 1 remains readable and gives the same predictions.
func TestOldFile(t *testing.T) {
	path := filepath.Join("testdata", "version1.safetensors")
	if *update {
		if err := Save(path, bundle(t, kernels.Matern{Nu: 1.5, Sigma: 2}, true)); err != nil {
			t.Fatal(err)
		}
	}
	b, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	// α and b satisfy (K + λI)α + b = y, so that f(x_i) = y_i − λα_i.
	table, err := dataset.ReadCSV("-", strings.NewReader(training))
	if err != nil {
		t.Fatal(err)
	}
	x, err := b.Encoder.Features(table)
	if err != nil {
		t.Fatal(err)
	}
	y, err := b.Encoder.Targets(table)
	if err != nil {
		t.Fatal(err)
	}
	f, err := b.Model.Predict(t.Context(), backendtest.Device(t, "ref"), x)
	if err != nil {
		t.Fatal(err)
	}
	m := b.Model.(*learners.KernelRidgeModel)
	for i := range 4 {
		for j := range 2 {
			want := y.At(i, j) - m.Lambda()*m.Alpha().At(i, j)
			// The tolerance is for a sum of four terms of the size of α and an intercept below 50.
			if d := f.At(i, j) - want; !(d*d <= 1e-26*50*50) {
				t.Errorf("row %d, output %d: got %v, want %v", i, j, f.At(i, j), want)
			}
		}
	}
}

// TestCalibration checks that a calibration is read back, and that forged calibrations are refused.
func TestCalibration(t *testing.T) {
	b := bundle(t, kernels.Gaussian{Sigma: 1}, true)
	_, outputs := b.Model.Dims()
	scores := backend.NewHost[float64](outputs, 3)
	for i := range scores.Data {
		scores.Data[i] = float64(i)
	}
	b.Calibration = &learners.Calibration{Scores: scores}
	path := filepath.Join(t.TempDir(), "m.safetensors")
	if err := Save(path, b); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.Calibration == nil || !slices.Equal(got.Calibration.Scores.Data, scores.Data) {
		t.Errorf("read %v", got.Calibration)
	}
	for name, spoil := range map[string]func(){
		"order": func() { scores.Data[0] = 1e9 },
		"NaN":   func() { scores.Data[0] = math.NaN() },
		"rows":  func() { b.Calibration.Scores = backend.NewHost[float64](outputs+1, 3) },
	} {
		original := slices.Clone(scores.Data)
		spoil()
		if err := Save(path, b); err == nil {
			t.Errorf("%s: saved", name)
		}
		copy(scores.Data, original)
		b.Calibration.Scores = scores
	}
}
