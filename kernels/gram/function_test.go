package gram_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/gram"
	"github.com/mercer-go/mercer/kernels/objects"
)

// TestFunction checks the Gram matrix of a user function (the length of the intersection of two
// intervals) and that the kernel Precomputed reproduces its values on every device.
func TestFunction(t *testing.T) {
	ctx := context.Background()
	intervals := [][2]float64{{0, 3}, {1, 2}, {2, 5}, {7, 8}}
	common := func(a, b [2]float64) float64 { return max(0, min(a[1], b[1])-max(a[0], b[0])) }
	k, err := gram.OfFunction(ctx, 4, func(i, j int) float64 { return common(intervals[i], intervals[j]) }, objects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	interval := [2]float64{2.5, 7.5}
	cross, err := gram.CrossFunction(ctx, 1, 4, func(_, j int) float64 { return common(interval, intervals[j]) }, objects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	train, err := gram.TrainingPoints(k)
	if err != nil {
		t.Fatal(err)
	}
	points, err := gram.OtherPoints(cross, []float64{common(interval, interval)})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ref", "cpu"} {
		dev := backendtest.Device(t, name, backend.Config{})
		full, err := backend.GramMatrix(ctx, dev, kernels.Precomputed{}, train)
		if err != nil {
			t.Fatal(err)
		}
		others, err := backend.CrossGramMatrix(ctx, dev, kernels.Precomputed{}, points, train)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range k.Data {
			if full.Data[i] != v {
				t.Errorf("%s: K is %v, want %v", name, full.Data, k.Data)
			}
		}
		for i, v := range cross.Data {
			if others.Data[i] != v {
				t.Errorf("%s: the others are %v, want %v", name, others.Data, cross.Data)
			}
		}
	}
	if e, err := gram.Decompose(ctx, k); err != nil || e.Negative() != 0 {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestFunctionErrors(t *testing.T) {
	ctx := context.Background()
	for want, f := range map[string]func(i, j int) float64{
		"the Gram matrix is not symmetric: row 2, column 1 has 1, row 1, column 2 has 0": func(i, j int) float64 { return float64(i) },
		"the value in row 1, column 1 of the Gram matrix is NaN":                         func(i, j int) float64 { return math.NaN() },
		"the function is nil": nil,
	} {
		if _, err := gram.OfFunction(ctx, 3, f, objects.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := gram.OtherPoints(host([]float64{1}), []float64{1, 2}); err == nil {
		t.Error("two values of one point with itself are accepted")
	}
}
