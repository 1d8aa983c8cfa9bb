package mercer_test

import (
	"math"
	"strings"
	"testing"

	"github.com/mercer-go/mercer"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/learners"
)

// TestFitTableWeighsRows: the column of the weights counts repetitions, and the columns that
// are dropped have no part in the model. Of weights 1, 2, 3 and 0 on the points 0, 1, 3 and
// 100 with the targets 1, 2, 6 and −50 the least squares line is, in closed form, that of
// Σw = 6, Σwx = 11, Σwx² = 29, Σwy = 23, Σwxy = 58.
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
	rows, err := m.PredictRows(t.Context(), []map[string]any{{"x": 0, "w": 7, "id": "e"}, {"x": 10}}, mercer.Wanted{})
	if err != nil {
		t.Fatal(err)
	}
	if rows[0].Unused != nil {
		t.Errorf("known columns are reported: %v", rows[0].Unused)
	}
	for i, x := range []float64{0, 10} {
		want := intercept + slope*x
		if got := rows[i].Values["y"]; !(math.Abs(got-want) <= 0x1p-52*100*math.Abs(want)) { // the condition of 2×2 equations is below 100
			t.Errorf("f(%v) = %v, want %v", x, got, want)
		}
	}
	if _, err := mercer.FitTable(t.Context(), learners.LeastSquares{}, table, rules, mercer.Options{Options: learners.Options{Weights: []float64{1, 1, 1, 1}}}); err == nil || !strings.Contains(err.Error(), "leave one out") {
		t.Errorf("both weights: %v", err)
	}
}
