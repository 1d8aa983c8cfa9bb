package learners_test

import (
	"bytes"
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
)

// TestRVMAgainstKernlab compares RVM with the R package kernlab, which has no constant basis function. The
// predictions must agree within the standard deviation of the posterior, and the noise must agree.
func TestRVMAgainstKernlab(t *testing.T) {
	required.Slow(t, "kernlab", "runs R")
	rscript := required.Kernlab(t)
	const n, noise = 200, 0.05
	t.Log("seed 25")
	x, y := sinc(n, noise, 25)
	var script bytes.Buffer
	script.WriteString("suppressMessages(library(kernlab))\nx <- c(")
	list := func(v []float64) {
		for i, f := range v {
			if i > 0 {
				script.WriteString(",")
			}
			fmt.Fprintf(&script, "%.17g", f)
		}
	}
	list(x.RawMatrix().Data)
	script.WriteString(")\ny <- c(")
	list(y.RawMatrix().Data)
	script.WriteString(`)
m <- rvm(x, y, kernel = "rbfdot", kpar = list(sigma = 1/8), tol = 1e-8, iterations = 1000)
cat(m@nvar, length(RVindex(m)), predict(m, x), sep = "\n")
`)
	cmd := exec.Command(rscript, "-")
	cmd.Stdin = &script
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kernlab: %v", err)
	}
	var peer []float64
	for _, text := range strings.Fields(string(out)) {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatalf("kernlab: %v", err)
		}
		peer = append(peer, v)
	}
	if len(peer) != n+2 {
		t.Fatalf("kernlab: %d numbers", len(peer))
	}
	dev := backendtest.Device(t, "cpu")
	for _, method := range []learners.RVMMethod{learners.FixedPoint, learners.Sequential} {
		m, err := learners.RVM{Kernel: kernels.Gaussian{Sigma: 2}, Method: method}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := m.Predict(t.Context(), dev, x)
		if err != nil {
			t.Fatal(err)
		}
		v, err := m.Variance(t.Context(), dev, x)
		if err != nil {
			t.Fatal(err)
		}
		var meanSquare, meanVariance float64
		for i := range n {
			meanSquare += (f.At(i, 0) - peer[2+i]) * (f.At(i, 0) - peer[2+i]) / n
			meanVariance += (v.At(i, 0) - m.Noise()) / n
		}
		t.Logf("%s: the functions are %.2g apart, the posterior's deviation is %.2g; noise %.4g, kernlab %.4g; %v, kernlab %v vectors",
			method, math.Sqrt(meanSquare), math.Sqrt(meanVariance), math.Sqrt(m.Noise()), math.Sqrt(peer[0]), m.Facts()[0], peer[1])
		// Kernlab takes the steps of FixedPoint; Sequential may converge to another maximum.
		if method == learners.Sequential {
			meanVariance *= 2 * 2
		}
		if meanSquare > meanVariance {
			t.Errorf("%s: the functions are %.3g apart, the posterior allows %.3g", method, math.Sqrt(meanSquare), math.Sqrt(meanVariance))
		}
		checkClose(t, "noise deviation", math.Sqrt(m.Noise()), math.Sqrt(peer[0]), noise/10)
	}
}
