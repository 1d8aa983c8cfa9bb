package mercer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer"
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/objects"
	"github.com/mercer-go/mercer/learners"
)

// houses is a table with a column of numbers, a column of texts with an empty cell, and two targets.
const houses = `area,town,price,kind
50,york,100,flat
60,,130,flat
80,bath,190,house
90,bath,200,house
120,york,210,house
70,york,120,flat
`

type house struct {
	Area float64 `json:"area"`
	Town *string `json:"town"`
}

func readTable(t testing.TB, text string) *dataset.Table {
	t.Helper()
	table, err := dataset.ReadCSV("-", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// reloaded returns a model that was saved and loaded.
func reloaded[M learners.Model](t *testing.T, fitted *mercer.Model[M]) *mercer.Model[learners.Model] {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.st")
	if err := fitted.Save(path); err != nil {
		t.Fatal(err)
	}
	m, err := mercer.Load(path, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestRowsOfATable checks that the same rows as maps, structs, JSON and a table give the same predictions as their
// features, also after Save and Load.
func TestRowsOfATable(t *testing.T) {
	table := readTable(t, houses)
	fitted, err := mercer.FitTable(t.Context(), learners.GaussianProcess{Kernel: kernels.Gaussian{Sigma: 2}, Lambda: 0.1, Fixed: true}, table,
		dataset.Rules{Targets: []string{"price"}, Standardize: true}, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := reloaded(t, fitted)
	york := "york"
	cells := "area,town,kind\n75,york,flat\n85,,house\n"
	forms := map[string]any{
		"maps": []map[string]any{{"area": 75, "town": "york", "kind": "flat", "other": true}, {"area": 85.0, "town": nil, "kind": "house"}},
		"JSON": json.RawMessage(`[{"area": 75, "town": "york", "kind": "flat"}, {"area": "85", "kind": "house"}]`),
		"structs": []struct {
			house
			Kind string `json:"kind"`
		}{{house{75, &york}, "flat"}, {house{85, nil}, "house"}},
		"a table": readTable(t, cells),
	}
	x, err := fitted.Encode(t.Context(), readTable(t, cells))
	if err != nil {
		t.Fatal(err)
	}
	want, err := fitted.Predict(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	for name, rows := range forms {
		got, err := m.PredictRows(t.Context(), rows, mercer.PredictOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i := range 2 {
			if v := got[i].Values["price"]; v != want.At(i, 0) || got[i].Class != "" {
				t.Errorf("%s: row %d: %+v, want %v", name, i+1, got[i], want.At(i, 0))
			}
		}
	}
	predictions, err := m.PredictRows(t.Context(), json.RawMessage(` {"area": 75, "town": "york", "kind": "flat"}`), mercer.PredictOptions{})
	if err != nil || len(predictions) != 1 || predictions[0].Values["price"] != want.At(0, 0) {
		t.Errorf("one object: %v, %v", predictions, err)
	}
	// The standard deviation at a training row is smaller than at a point far from all rows.
	trainingStd, err := m.Std(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	farStd, err := m.Std(t.Context(), mat.NewDense(1, 5, []float64{50, 0, 0, 0, 0}))
	if err != nil || !(trainingStd.At(0, 0) > 0 && trainingStd.At(0, 0) < farStd.At(0, 0)) {
		t.Errorf("standard deviation %v near, %v far, %v", trainingStd, farStd, err)
	}
}

// TestClassesOfATable checks that predictions have the names of classes, probabilities sum to 1, and sets need a
// calibration, which is saved with the model.
func TestClassesOfATable(t *testing.T) {
	table := readTable(t, houses)
	m, err := mercer.FitTable(t.Context(), learners.Logistic{Lambda: 1}, table, dataset.Rules{Targets: []string{"kind"}, Labels: true, Standardize: true}, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.PredictRows(t.Context(), table, mercer.PredictOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"flat", "flat", "house", "house", "house", "flat"} {
		p := got[i].Probabilities
		if got[i].Class != want || math.Abs(p["flat"]+p["house"]-1) > 4*0x1p-52 || p[want] <= 0.5 {
			t.Errorf("row %d: %+v, want %s", i+1, got[i], want)
		}
	}
	x, err := m.Encode(t.Context(), table)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.PredictionSets(t.Context(), x, 0.5); err == nil || err.Error() != "mercer: this model of logistic has no sets of classes: call Calibrate with samples that it was not fitted to" {
		t.Errorf("sets without a calibration: %v", err)
	}
	labels := mat.NewDense(6, 1, []float64{0, 0, 1, 1, 1, 0})
	if err := m.Calibrate(t.Context(), x, labels); err != nil {
		t.Fatal(err)
	}
	loaded := reloaded(t, m)
	sets, err := loaded.PredictionSets(t.Context(), x, 0.8)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		if sets.At(i, int(labels.At(i, 0))) != 1 {
			t.Errorf("row %d: the set %v does not have the class", i+1, sets.RawRowView(i))
		}
	}
	if _, _, err := loaded.Intervals(t.Context(), x, 0.8); err == nil {
		t.Error("a classifier has intervals")
	}
	if n := loaded.Classes().Len(); n != 2 {
		t.Errorf("%d classes", n)
	}
}

// TestTextsOfATable checks that a model fitted to texts accepts rows with texts, and keeps its intervals when loaded.
func TestTextsOfATable(t *testing.T) {
	texts := []string{"ab", "abc", "b", "bca", "ca"}
	k, err := objects.Parse("spectrum(length=1)")
	if err != nil {
		t.Fatal(err)
	}
	gram, err := objects.TrainingPoints(t.Context(), k, texts, objects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := mercer.Fit(t.Context(), learners.KernelRidge{Kernel: kernels.Precomputed{}, Lambda: 1, NoIntercept: true}, mat.NewDense(gram.Rows, gram.Cols, gram.Data), mat.NewVecDense(5, []float64{1, 2, 3, 4, 5}), mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	table := readTable(t, "w,y\nab,1\nabc,2\nb,3\nbca,4\nca,5\n")
	e, err := dataset.Learn(table, dataset.Rules{Targets: []string{"y"}, Text: "w"})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.st")
	if err := modelfile.Save(path, modelfile.Bundle{Model: m.Fitted, Encoder: e, Objects: &modelfile.Objects{Kernel: k.String(), Training: texts}}); err != nil {
		t.Fatal(err)
	}
	loaded, err := mercer.Load(path, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	x, err := loaded.Encode(t.Context(), map[string]any{"w": "cab"})
	if err != nil {
		t.Fatal(err)
	}
	lower, upper, err := m.Intervals(t.Context(), x, 0.6)
	if err != nil {
		t.Fatal(err)
	}
	lower2, upper2, err := loaded.Intervals(t.Context(), x, 0.6)
	if err != nil || !mat.Equal(lower, lower2) || !mat.Equal(upper, upper2) {
		t.Errorf("intervals [%v, %v] after loading, [%v, %v] before; %v", lower2, upper2, lower, upper, err)
	}
}

// TestNotesOfRows checks that each prediction lists the cells of its row that were unknown, missing, quoted or
// unused, for JSON, maps, structs and tables.
func TestNotesOfRows(t *testing.T) {
	m, err := mercer.FitTable(t.Context(), learners.Ridge{Lambda: 1, Intervals: true}, readTable(t, houses), dataset.Rules{Targets: []string{"price"}}, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	paris := "paris"
	type warnings = dataset.RowWarnings
	for name, c := range map[string]struct {
		rows any
		want []warnings
	}{
		"all known":      {json.RawMessage(`{"area": 55, "town": "york", "kind": "flat"}`), []warnings{{}}},
		"target present": {json.RawMessage(`{"area": 55, "town": "york", "kind": "flat", "price": 1}`), []warnings{{}}},
		"two categories": {json.RawMessage(`{"area": 55, "town": "paris", "kind": "boat"}`), []warnings{{Unknown: map[string]string{"town": "paris", "kind": "boat"}}}},
		"other case":     {json.RawMessage(`{"area": 55, "town": "York", "kind": "flat"}`), []warnings{{Unknown: map[string]string{"town": "York"}}}},
		"a number":       {json.RawMessage(`{"area": 55, "town": 7, "kind": true}`), []warnings{{Unknown: map[string]string{"town": "7", "kind": "true"}}}},
		"null":           {json.RawMessage(`{"area": null, "town": null, "kind": "flat"}`), []warnings{{Missing: []string{"area", "town"}}}},
		"empty text":     {json.RawMessage(`{"area": "", "town": " ", "kind": "flat"}`), []warnings{{Missing: []string{"area", "town"}}}},
		"a marker":       {json.RawMessage(`{"area": "NA", "town": "york", "kind": "flat"}`), []warnings{{Missing: []string{"area"}}}},
		"quoted":         {json.RawMessage(`{"area": "55", "town": "york", "kind": "flat"}`), []warnings{{Quoted: []string{"area"}}}},
		"quoted 5.5e1":   {map[string]any{"area": " 5.5e1", "town": "york", "kind": "flat"}, []warnings{{Quoted: []string{"area"}}}},
		"unused":         {json.RawMessage(`{"area": 55, "town": "york", "kind": "flat", "Area": 1, "id": "x", "none": null}`), []warnings{{Unused: []string{"Area", "id"}}}},
		"rows apart": {json.RawMessage(`[{"area": 55, "town": "york", "kind": "flat"}, {"town": "paris", "kind": "flat", "id": 1}, {"area": "1", "town": "bath"}]`),
			[]warnings{{}, {Unknown: map[string]string{"town": "paris"}, Missing: []string{"area"}, Unused: []string{"id"}}, {Missing: []string{"kind"}, Quoted: []string{"area"}}}},
		"structs": {struct {
			house
			Kind string `json:"kind"`
		}{house{75, &paris}, "flat"}, []warnings{{Unknown: map[string]string{"town": "paris"}}}},
		"a table": {readTable(t, "area,town,kind,id\n5,paris,flat,\n,bath,flat,9\n"), []warnings{{Unknown: map[string]string{"town": "paris"}}, {Missing: []string{"area"}, Unused: []string{"id"}}}},
	} {
		got, err := m.PredictRows(t.Context(), c.rows, mercer.PredictOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i, p := range got {
			if !reflect.DeepEqual(p.RowWarnings, c.want[i]) {
				t.Errorf("%s: row %d: %+v, want %+v", name, i+1, p.RowWarnings, c.want[i])
			}
		}
	}
}

// TestWantedOfRows checks that the additional results of PredictRows equal those of the methods that take features.
func TestWantedOfRows(t *testing.T) {
	table := readTable(t, houses)
	values := func(t *testing.T, name string, got map[string]float64, want *mat.Dense, i int) {
		if len(got) != 1 || got["price"] != want.At(i, 0) {
			t.Errorf("%s of row %d: %v, want %v", name, i+1, got, want.At(i, 0))
		}
	}
	rules := dataset.Rules{Targets: []string{"price"}, Standardize: true}
	gp, err := mercer.FitTable(t.Context(), learners.GaussianProcess{Kernel: kernels.Gaussian{Sigma: 2}, Lambda: 0.1, Fixed: true}, table, rules, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	x, err := gp.Encode(t.Context(), table)
	if err != nil {
		t.Fatal(err)
	}
	if err := gp.Calibrate(t.Context(), x, mat.NewDense(6, 1, []float64{90, 140, 190, 205, 200, 120})); err != nil {
		t.Fatal(err)
	}
	kr, err := mercer.FitTable(t.Context(), learners.KernelRidge{Kernel: kernels.Linear{}, Lambda: 1, NoIntercept: true}, table, rules, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	std, err := gp.Std(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	got, err := gp.PredictRows(t.Context(), table, mercer.PredictOptions{Std: true, Level: 0.6})
	if err != nil {
		t.Fatal(err)
	}
	lower, upper, err := gp.Intervals(t.Context(), x, 0.6)
	if err != nil {
		t.Fatal(err)
	}
	jackknife, err := kr.PredictRows(t.Context(), table, mercer.PredictOptions{Level: 0.6})
	if err != nil {
		t.Fatal(err)
	}
	low, high, err := kr.Intervals(t.Context(), x, 0.6)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		values(t, "std", got[i].Std, std, i)
		values(t, "lower", got[i].Lower, lower, i)
		values(t, "upper", got[i].Upper, upper, i)
		values(t, "jackknife+ lower", jackknife[i].Lower, low, i)
		values(t, "jackknife+ upper", jackknife[i].Upper, high, i)
		if jackknife[i].Std != nil {
			t.Errorf("row %d has a standard deviation that nobody asked for", i+1)
		}
	}

	exact, bounds, err := kr.PredictBound(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	features, err := kr.PredictRows(t.Context(), x, mercer.PredictOptions{Bound: true, Level: 0.6})
	if err != nil {
		t.Fatal(err)
	}
	for i := range features {
		values(t, "value with a bound", features[i].Values, exact, i)
		values(t, "bound", features[i].Bound, bounds, i)
		values(t, "lower from features", features[i].Lower, low, i)
	}

	rules = dataset.Rules{Targets: []string{"kind"}, Labels: true, Standardize: true}
	classes, err := mercer.FitTable(t.Context(), learners.Logistic{Lambda: 1}, table, rules, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if x, err = classes.Encode(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	if err := classes.Calibrate(t.Context(), x, mat.NewDense(6, 1, []float64{0, 1, 1, 1, 1, 0})); err != nil {
		t.Fatal(err)
	}
	sets, err := classes.PredictionSets(t.Context(), x, 0.8)
	if err != nil {
		t.Fatal(err)
	}
	if got, err = classes.PredictRows(t.Context(), table, mercer.PredictOptions{Level: 0.8}); err != nil {
		t.Fatal(err)
	}
	for i, p := range got {
		var want []string
		for j, name := range []string{"flat", "house"} {
			if sets.At(i, j) == 1 {
				want = append(want, name)
			}
		}
		if !reflect.DeepEqual(p.Set, want) {
			t.Errorf("set of row %d: %v, want %v", i+1, p.Set, want)
		}
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{rowsError(kr.PredictRows(t.Context(), table, mercer.PredictOptions{Std: true})), "has no standard deviation"},
		{rowsError(classes.PredictRows(t.Context(), table, mercer.PredictOptions{Std: true})), "has no standard deviation"},
		{rowsError(classes.PredictRows(t.Context(), table, mercer.PredictOptions{Bound: true})), "has no proven bound"},
		{rowsError(kr.PredictRows(t.Context(), table, mercer.PredictOptions{Level: 1})), "level must be"},
		{rowsError(kr.PredictRows(t.Context(), table, mercer.PredictOptions{Level: -1})), "level must be"},
		{rowsError(kr.PredictRows(t.Context(), table, mercer.PredictOptions{Level: math.NaN()})), "level must be"},
		{rowsError(classes.PredictRows(t.Context(), table, mercer.PredictOptions{Level: 2})), "level must be"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) || strings.Contains(c.err.Error(), "\n") {
			t.Errorf("got the error %v, want %q in it", c.err, c.want)
		}
	}
}

func rowsError(_ []mercer.Prediction, err error) error { return err }

// TestRowsRefused checks that the error for a value that is not a row names its type.
func TestRowsRefused(t *testing.T) {
	m, err := mercer.FitTable(t.Context(), learners.Ridge{Lambda: 1}, readTable(t, houses), dataset.Rules{Targets: []string{"price"}}, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		rows any
		want string
	}{
		{map[string]any{"town": "york", "kind": "flat"}, `has no feature column "area"`},
		{map[string]any{"area": "big", "town": "york", "kind": "flat"}, `row 1: column "area": "big" is not a number`},
		{map[string]any{"area": []int{1}}, `row 1: column "area": must be a number, a text, true, false or null`},
		{map[string]any{"area": math.NaN()}, "cannot be read as JSON"},
		{[]map[string]any{}, "has no rows"},
		{[]map[string]any{{}}, "row 1 of 1 row has no columns"},
		{json.RawMessage(`{"area": 1} {"area": 2}`), "with nothing after it"},
		{json.RawMessage(`{"area": `), "unexpected EOF"},
		{7, "must be an object or an array of objects"},
		{nil, "has no rows"},
		{map[string]any{"area": 1e300, "town": "york", "kind": "flat", "": 1}, "is empty"},
		{json.RawMessage(`{"area": 1e999, "town": "york", "kind": "flat"}`), `column "area"`},
	} {
		if _, err := m.PredictRows(t.Context(), c.rows, mercer.PredictOptions{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.rows, err, c.want)
		}
	}
	unnamed, err := mercer.Fit(t.Context(), learners.Ridge{Lambda: 1}, mat.NewDense(2, 1, []float64{1, 2}), mat.NewVecDense(2, []float64{1, 2}), mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unnamed.Encode(t.Context(), map[string]any{"x": 1}); err == nil || !strings.Contains(err.Error(), "fitted to matrices") {
		t.Errorf("rows for a model of matrices: %v", err)
	}
	if _, err := unnamed.Std(t.Context(), mat.NewDense(1, 1, nil)); err == nil {
		t.Error("ridge has a standard deviation")
	}
	if _, err := unnamed.Proba(t.Context(), mat.NewDense(1, 1, nil)); err == nil {
		t.Error("ridge has probabilities")
	}
	for name, r := range map[string]dataset.Rules{"no target": {}, "texts": {Targets: []string{"price"}, Text: "town"}} {
		if _, err := mercer.FitTable(t.Context(), learners.Ridge{}, readTable(t, houses), r, mercer.Options{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// This example goes from a CSV file to an HTTP service. Rows arrive as JSON. An answer has predictions with
// intervals and lists the unknown cells of the row. The answer to a bad row is the text of the error.
func ExampleModel_PredictRows_service() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "mercer")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	data, model := filepath.Join(folder, "houses.csv"), filepath.Join(folder, "model.safetensors")
	if err := os.WriteFile(data, []byte(houses), 0o666); err != nil {
		log.Fatal(err)
	}

	// The model is fitted and saved once, as the command does: mercer fit --target price ….
	table, err := dataset.Read(data, nil)
	if err != nil {
		log.Fatal(err)
	}
	rules := dataset.Rules{Targets: []string{"price"}, Standardize: true}
	fitted, err := mercer.FitTable(ctx, learners.KernelRidge{Kernel: kernels.Linear{}, Lambda: 1}, table, rules, mercer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if err := fitted.Save(model); err != nil {
		log.Fatal(err)
	}

	// The service loads the model and answers from any number of goroutines. It prepares the
	// intervals in advance, because the timeout of a request may be too short for this work.
	m, err := mercer.Load(model, mercer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	if err := m.Prepare(ctx); err != nil {
		log.Fatal(err)
	}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		rows, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		predictions, err := m.PredictRows(ctx, json.RawMessage(rows), mercer.PredictOptions{Level: 0.8})
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for _, p := range predictions { // rounded for the users of the service
			for _, values := range []map[string]float64{p.Values, p.Lower, p.Upper} {
				values["price"] = math.Round(values["price"])
			}
		}
		_ = json.NewEncoder(w).Encode(predictions)
	}))
	defer service.Close()

	for _, body := range []string{
		`[{"area": 55, "town": "york", "kind": "flat"}]`,
		`[{"area": "55", "town": "paris", "kind": null, "id": 7}]`,
		`{"area": "?", "town": "york", "kind": "flat"}`,
	} {
		answer, err := http.Post(service.URL, "application/json", strings.NewReader(body))
		if err != nil {
			log.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(answer.StatusCode, strings.TrimSpace(string(text)))
	}
	// Output:
	// 200 [{"values":{"price":116},"lower":{"price":97},"upper":{"price":144}}]
	// 200 [{"values":{"price":126},"lower":{"price":109},"upper":{"price":151},"unknown":{"town":"paris"},"missing":["kind"],"quoted":["area"],"unused":["id"]}]
	// 400 dataset: row 1: column "area": "?" is not a number; correct it, or name it as a marker of missing values
}

// TestFitTableWeighsRows compares the least-squares line of four points with its closed form. A weight must count as
// repetitions of its row, and dropped columns must have no effect.
func TestFitTableWeighsRows(t *testing.T) {
	table, err := dataset.NewTable("", dataset.Texts("id", strings.Split("a b c d", " ")), dataset.Numbers("x", []float64{0, 1, 3, 100}),
		dataset.Numbers("w", []float64{1, 2, 3, 0}), dataset.Numbers("y", []float64{1, 2, 6, -50}))
	if err != nil {
		t.Fatal(err)
	}
	rules := dataset.Rules{Targets: []string{"y"}, Drop: []string{"id"}, Weight: "w", Standardize: true}
	m, err := mercer.FitTable(t.Context(), learners.LeastSquares{}, table, rules, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	slope := (6*58. - 11*23) / (6*29 - 11*11)
	intercept := (23 - slope*11) / 6
	rows, err := m.PredictRows(t.Context(), []map[string]any{{"x": 0, "w": 7, "id": "e"}, {"x": 10}}, mercer.PredictOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if rows[0].Unused != nil {
		t.Errorf("known columns are reported: %v", rows[0].Unused)
	}
	for i, x := range []float64{0, 10} {
		want := intercept + slope*x
		if got := rows[i].Values["y"]; !(math.Abs(got-want) <= 0x1p-52*100*math.Abs(want)) { // the condition number of the 2×2 equations is below 100
			t.Errorf("f(%v) = %v, want %v", x, got, want)
		}
	}
	if _, err := mercer.FitTable(t.Context(), learners.LeastSquares{}, table, rules, mercer.Options{Options: learners.Options{Weights: []float64{1, 1, 1, 1}}}); err == nil || !strings.Contains(err.Error(), "give only one of the two") {
		t.Errorf("both weights: %v", err)
	}
}

// TestFitTableOfAMillionFeaturesTakesMegabytes fits a classifier to 300 rows with 2,400 nonzeros, whose dense
// matrix would take 2.4 GB.
func TestFitTableOfAMillionFeaturesTakesMegabytes(t *testing.T) {
	var file strings.Builder
	for i := range 300 {
		fmt.Fprintf(&file, "%d", i%2)
		for k := range 8 {
			fmt.Fprintf(&file, " %d:%d", 1+k*125000+(i*7919+k)%1000+1000*(i%2), 1+k%3)
		}
		if i == 0 {
			file.WriteString(" 1000000:1")
		}
		file.WriteString("\n")
	}
	table, err := dataset.ReadLIBSVM("-", strings.NewReader(file.String()))
	if err != nil {
		t.Fatal(err)
	}
	dev, err := backend.Open("", backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	// The lists of the nonzeros of each column (of all samples, of a subset and of a batch) take 12 bytes for each
	// feature. The cache of rows of K takes half of the limit.
	const limit = 64 << 20
	o := mercer.Options{Device: dev}
	o.Memory = limit
	m, err := mercer.FitTable(t.Context(), learners.SVC{Kernel: kernels.Linear{}, C: 10}, table, dataset.Rules{Targets: []string{"label"}, Labels: true}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, peak := dev.InUse(); peak > limit {
		t.Errorf("the fit took %d bytes on the device, not %d", peak, limit)
	}
	points, sparse := learners.PartsOf(m.Fitted).Points.(backend.CSR[float64])
	if !sparse || points.Cols != 1000000 {
		t.Fatalf("the support vectors are a %T", learners.PartsOf(m.Fitted).Points)
	}
	y, err := m.PredictRows(t.Context(), table, mercer.PredictOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range y {
		if p.Class != fmt.Sprint(i%2) {
			t.Fatalf("row %d is of the class %q", i+1, p.Class)
		}
	}
}

// This example passes texts, as a service receives them, to a model of their n-grams.
func ExampleFitTable_texts() {
	ctx := context.Background()
	table, err := dataset.ReadCSV("-", strings.NewReader("message,topic\n"+
		"I was charged twice,billing\nrefund my payment,billing\nthe invoice is wrong,billing\n"+
		"the parcel is late,shipping\nwhere is my parcel,shipping\nthe package is lost,shipping\n"))
	if err != nil {
		log.Fatal(err)
	}
	rules := dataset.Rules{Targets: []string{"topic"}, Labels: true, TFIDF: []string{"message"}}
	m, err := mercer.FitTable(ctx, learners.SVC{Kernel: kernels.Linear{}}, table, rules, mercer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	request := json.RawMessage(`[{"message": "a refund, please"}, {"message": "my parcel has not arrived"}]`)
	predictions, err := m.PredictRows(ctx, request, mercer.PredictOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range predictions {
		fmt.Println(p.Class)
	}
	// Output:
	// billing
	// shipping
}
