package pipeline

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
)

// fitCommand builds the command mercer. The returned function runs mercer fit on a file; it returns the model and
// the reported residual.
func fitCommand(t *testing.T) func(file string, args ...string) (modelfile.Bundle, float64) {
	t.Helper()
	dir := t.TempDir()
	command, model := filepath.Join(dir, "mercer"), filepath.Join(dir, "m.safetensors")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", command, "./cmd/mercer")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return func(file string, args ...string) (modelfile.Bundle, float64) {
		t.Helper()
		c := exec.CommandContext(t.Context(), command, slices.Concat([]string{"fit", "--json", "--quiet", "--target", "y", "--model", model}, args, []string{file})...)
		var faults strings.Builder
		c.Stderr = &faults
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, faults.String())
		}
		var report struct{ Residual float64 }
		if err := json.Unmarshal(out, &report); err != nil {
			t.Fatal(err)
		}
		b, err := modelfile.Load(model)
		if err != nil {
			t.Fatal(err)
		}
		return b, report.Residual
	}
}

// conditionOf returns the condition number of the equations for the coefficients of a model, with centered
// functions.
func conditionOf(t *testing.T, b modelfile.Bundle, file string) float64 {
	t.Helper()
	table, err := dataset.Read(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	x, err := b.Encoder.Features(table)
	if err != nil {
		t.Fatal(err)
	}
	s := b.Model.State()
	k, err := kernels.Parse(s.Params["kernel"].(string))
	if err != nil {
		t.Fatal(err)
	}
	centers := s.Arrays["centers"]
	n, _ := x.Dims()
	phi, penalty := mat.NewDense(n, centers.Rows, nil), mat.NewDense(centers.Rows, centers.Rows, nil)
	for j := range centers.Rows {
		mean := 0.0
		for i := range n {
			phi.Set(i, j, kernels.Eval(k, x.RawRowView(i), centers.Row(j)))
			mean += phi.At(i, j) / float64(n)
		}
		for i := range n {
			phi.Set(i, j, phi.At(i, j)-mean)
		}
		for i := range centers.Rows {
			penalty.Set(i, j, kernels.Eval(k, centers.Row(i), centers.Row(j)))
		}
	}
	var h mat.Dense
	h.Mul(phi.T(), phi)
	penalty.Scale(s.Params["lambda"].(float64), penalty)
	h.Add(&h, penalty)
	return mat.Cond(&h, 2)
}

// TestCentersAreThoseOfMercerFit checks that the pipeline and the command, with the same seed, choose the same
// kernel and the same centers, in the same order, and that their models give the same predictions, for several
// divisions and orders of the rows, repeated rows and missing cells.
//
// The bound, for d features, m functions, and the condition number κ of the equations' matrix H = ΦᵀΦ + λS:
//   - Means and deviations of the two encoders agree to 8 units of 2⁻⁵³, so that a standardized value v has an
//     error of Δ = 8·2⁻⁵³(|mean|/deviation + |v|).
//   - A distance of two points, and the σ of the kernel, have errors of at most 2√d·Δ.
//   - Kernel values, the elements of Φ, have an error of δ = 4√d·Δ/σ + 2⁻⁵³(d + 4), and H of at most 2δ√m‖H‖.
//   - Coefficients β with relative residuals r₁ and r₂ differ by at most κ(r₁ + r₂ + 2δ√m)·‖β‖.
//   - Predictions differ by at most √m times this, because kernel values are at most 1.
//
// The difference must also be at most 1e-10·κ times the largest coefficient or prediction, as docs/beam.md states.
func TestCentersAreThoseOfMercerFit(t *testing.T) {
	required.Slow(t, "cases", "builds the command mercer")
	fitted := fitCommand(t)
	const seed, n = 20261130, 900
	t.Logf("seed %d", seed)
	header, rows := lines(seed, n, false)
	for i := range rows {
		if i%5 == 0 {
			rows[i] = rows[i/2] // repeated rows
		}
		if i%9 == 1 { // copy the previous row and remove its text; the encoder replaces a missing text by the most frequent text
			cells := strings.Split(rows[i-1], ",")
			cells[2] = ""
			rows[i] = strings.Join(cells, ",")
		}
	}
	oneFile := write(t, header, rows)
	file := strings.ReplaceAll(oneFile, "*", "part-000")
	shuffled := slices.Clone(rows)
	rand.New(rand.NewPCG(seed, 2)).Shuffle(n, func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	sixFiles := write(t, header, shuffled, 1, 17, 300, 3, 400)
	for _, c := range []struct {
		name   string
		p      Params
		args   []string
		number int // expected number of centers
	}{
		{"centers given", Params{Functions: 40, Kernels: []string{"gaussian(sigma=0.5)"}, Lambdas: []float64{0.5}, Seed: 7},
			[]string{"--centers", "40", "--kernel", "gaussian(sigma=0.5)", "--lambda", "0.5", "--seed", "7"}, 40},
		{"no centers given", Params{Kernels: []string{"gaussian(sigma=0.1)"}, Seed: 1}, []string{"--kernel", "gaussian(sigma=0.1)"}, 300},
		{"no kernel given", Params{Functions: 10, Lambdas: []float64{20}, Seed: 3}, []string{"--centers", "10", "--lambda", "20", "--seed", "3"}, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"--learner", "nystrom-ridge", "--intercept", "--solver", "normal", "--tol", "1e-11"}, c.args...)
			want, residual := fitted(file, args...)
			streamed, _ := fitted(file, append(args, "--stream")...)
			centers := arrays(want.Model)["centers"]
			if centers.Rows > c.number || centers.Rows < c.number*8/10 {
				t.Fatalf("%d centers, want %d, less those that are encoded alike", centers.Rows, c.number)
			}
			condition := conditionOf(t, want, file)
			m, d := float64(centers.Rows), float64(centers.Cols)
			norm := 0.0
			for _, v := range arrays(want.Model)["beta"].Data {
				norm = math.Hypot(norm, v)
			}
			offset, largest := 0.0, 0.0
			for _, in := range want.Encoder.Inputs {
				if in.Number != nil {
					offset = max(offset, math.Abs(in.Number.Mean)/in.Number.Scale)
				}
			}
			for _, v := range centers.Data {
				largest = max(largest, math.Abs(v))
			}
			centerError := 8 * 0x1p-53 * (offset + largest) // Δ in the comment of the test
			kernel, err := kernels.Parse(want.Model.State().Params["kernel"].(string))
			if err != nil {
				t.Fatal(err)
			}
			delta := 4*math.Sqrt(d)*centerError/kernel.(kernels.Gaussian).Sigma + 0x1p-53*(d+4)
			check := func(name string, b modelfile.Bundle, r float64) {
				t.Helper()
				if got := arrays(b.Model)["centers"]; got.Rows != centers.Rows {
					t.Fatalf("%s: %d centers, want %d", name, got.Rows, centers.Rows)
				}
				checkNear(t, name, map[string]backend.Host[float64]{"centers": arrays(b.Model)["centers"]}, map[string]backend.Host[float64]{"centers": centers}, centerError/largest)
				got := predictions(t, b.Model, oneFile, b.Encoder)["predictions"]
				expected := predictions(t, want.Model, oneFile, want.Encoder)["predictions"]
				maxDiff, maxAbs := 0.0, 0.0
				for i, v := range expected.Data {
					maxDiff, maxAbs = max(maxDiff, math.Abs(got.Data[i]-v)), max(maxAbs, math.Abs(v))
				}
				bound := min(1e-10*condition*maxAbs, math.Sqrt(m)*condition*(residual+r+2*delta*math.Sqrt(m))*norm)
				t.Logf("%s: predictions differ by %.2g, allowed %.2g; condition %.2g, residuals %.1g and %.1g", name, maxDiff, bound, condition, residual, r)
				if !(maxDiff <= bound) || residual+r > 1e-10 {
					t.Errorf("%s: predictions differ by %.3g, allowed %.3g (residuals %.3g and %.3g)", name, maxDiff, bound, residual, r)
				}
			}
			check("stream", streamed, residual)
			for _, in := range []struct {
				name    string
				glob    string
				bytes   int64
				workers int
			}{{"one file", oneFile, 0, 0}, {"pieces of 5 kB", oneFile, 5000, 0}, {"6 files, shuffled", sixFiles, 5000, 0}, {"6 files, one processor", sixFiles, 20000, 1}} {
				if in.workers > 0 {
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(in.workers))
				}
				p := c.p
				p.Learner, p.Inputs, p.Targets, p.PieceBytes, p.Intercept, p.Passes, p.Tol = "nystrom-ridge", []string{in.glob}, []string{"y"}, in.bytes, true, 1, 1e-11
				b, result := fit(t, p)
				check(in.name, b, result.Report.Residual)
			}
		})
	}
}
