package objects_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/objects"
)

// TestSum checks that the matrices of a Sum are the sums of its terms' matrices, and that its text
// parses to the same kernel.
func TestSum(t *testing.T) {
	ctx := context.Background()
	k, err := objects.Parse(" spectrum(length=1) +2.5e+0* subsequence(length=2, decay=5e-1)+0*spectrum(length=3,normalized=0)")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := k.String(), "spectrum(length=1) + 2.5*subsequence(length=2,decay=0.5) + 0*spectrum(length=3,normalized=0)"; got != want {
		t.Errorf("the text is %s, want %s", got, want)
	}
	reparsed, err := objects.Parse(k.String())
	if err != nil || reparsed.String() != k.String() || k.Input() != objects.Text {
		t.Errorf("read back: %v, %v", reparsed, err)
	}
	spectrum, err := objects.Parse("spectrum(length=1)")
	if err != nil {
		t.Fatal(err)
	}
	subsequence, err := objects.Parse("subsequence(length=2,decay=0.5)")
	if err != nil {
		t.Fatal(err)
	}
	last := 0.0
	o := objects.Options{Progress: func(f float64) {
		if f < last {
			t.Errorf("progress %v after %v", f, last)
		}
		last = f
	}}
	value := func(a, b float64) float64 { return a + 2.5*b }
	sum, err := k.Gram(ctx, words, o)
	if err != nil || last != 1 {
		t.Fatal(last, err)
	}
	p, _ := spectrum.Gram(ctx, words, objects.Options{})
	q, _ := subsequence.Gram(ctx, words, objects.Options{})
	for i, v := range sum.Data {
		if want := value(p.Data[i], q.Data[i]); math.Abs(v-want) > 4*0x1p-52*want {
			t.Errorf("value %d is %v, want %v", i, v, want)
		}
	}
	sum, err = k.Cross(ctx, others, words, objects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, _ = spectrum.Cross(ctx, others, words, objects.Options{})
	q, _ = subsequence.Cross(ctx, others, words, objects.Options{})
	for i, v := range sum.Data {
		if want := value(p.Data[i], q.Data[i]); math.Abs(v-want) > 4*0x1p-52*want {
			t.Errorf("between: value %d is %v, want %v", i, v, want)
		}
	}
	diag, err := k.Diag(ctx, others, objects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := spectrum.Diag(ctx, others, objects.Options{})
	b, _ := subsequence.Diag(ctx, others, objects.Options{})
	for i, v := range diag {
		if v != value(a[i], b[i]) {
			t.Errorf("diagonal %d is %v, want %v", i, v, value(a[i], b[i]))
		}
	}
}

// TestParseSum checks that one kernel with a weight is parsed as a Sum of one term, and that errors
// contain the column.
func TestParseSum(t *testing.T) {
	if k, err := objects.Parse("2*spectrum(length=2)"); err != nil || k.String() != "2*spectrum(length=2)" {
		t.Errorf("%v, %v", k, err)
	}
	if k, err := objects.Parse("subtree(decay=0.5) + subtree(decay=0.1)"); err != nil || k.Input() != objects.Tree {
		t.Errorf("%v, %v", k, err)
	}
	for text, want := range map[string]struct {
		column int
		detail string
	}{
		"spectrum(length=2) + spectrm(length=3)":     {22, `unknown kernel`},
		"spectrum(length=2) + 2*spectrum(length=)":   {40, "needed"},
		"spectrum(length=2) +":                       {21, "a kernel is needed"},
		"spectrum(length=2)*spectrum(length=2)":      {19, "the end"},
		"-1*spectrum(length=2)":                      {0, "must be a finite number ≥ 0, got -1"},
		"inf*spectrum(length=2)":                     {0, "must be a finite number ≥ 0, got +Inf"},
		"spectrum(length=2) + subtree()":             {0, "all terms must be over objects of the same kind"},
		"spectrum(length=2) + 3*spectrum(length=-1)": {0, "length"},
		"": {1, "a kernel is needed"},
	} {
		_, err := objects.Parse(text)
		if err == nil || !strings.Contains(err.Error(), want.detail) {
			t.Errorf("%s: %v, want %q", text, err, want.detail)
			continue
		}
		var parseErr *kernels.ParseError
		if errors.As(err, &parseErr) != (want.column > 0) || parseErr != nil && parseErr.Column != want.column {
			t.Errorf("%s: %v, want column %d", text, err, want.column)
		}
	}
	if err := (objects.Sum{}).Check(); err == nil {
		t.Error("an empty sum is accepted")
	}
	for text, want := range map[string]bool{"spectrum()": true, "0.5*spectrum": true, "gaussian()": false, "2*gaussian()": false, "": false} {
		if objects.IsObjectKernel(text) != want {
			t.Errorf("%s: known %t", text, !want)
		}
	}
}
