package solvers_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// resumable is a solve that writes checkpoints.
type resumable struct {
	name  string
	iters int // after which a checkpoint is left
	tol   float64
	run   func(ctx context.Context, c solvers.Checkpoint, maxIter int) (answer, error)
}

// answer is the residual that is reported for a solution, or for the best one in an
// error, and what a direct sum over the samples gives, with a bound of the rounding
// of either. All are NaN where there is no solution.
type answer struct{ reported, residual, rounding float64 }

var noAnswer = answer{math.NaN(), math.NaN(), math.NaN()}

// relative is the largest ‖left‖/‖right‖ of some columns, and c·ε times the largest
// ‖terms‖/‖right‖: a sum of c terms is wrong by no more than c·ε of the sum
// of their sizes (Higham 2002, equation 3.5).
type relative struct{ residual, rounding float64 }

func (r *relative) add(left, terms, right []float64, c int) {
	size := func(v []float64) float64 {
		sum := 0.0
		for _, x := range v {
			sum = math.Hypot(sum, x)
		}
		return sum
	}
	r.residual = max(r.residual, size(left)/size(right))
	r.rounding = max(r.rounding, float64(c)*0x1p-52*size(terms)/size(right))
}

const forgedSigma = 1.5

// gaussianGram is exp(−‖x_i − z_j‖²/(2σ²)) by its formula.
func gaussianGram(x, z backend.Host[float64]) backend.Host[float64] {
	k := backend.NewHost[float64](x.Rows, z.Rows)
	for i := range x.Rows {
		for j := range z.Rows {
			sum := 0.0
			for p, v := range x.Row(i) {
				sum += (v - z.Row(j)[p]) * (v - z.Row(j)[p])
			}
			k.Row(i)[j] = math.Exp(-sum / (2 * forgedSigma * forgedSigma))
		}
	}
	return k
}

// dualResidual is that of (K + λW⁻¹)α + b1 = y and 1ᵀα = 0, y being centered in the
// norm by which it is divided.
func dualResidual(p solvers.Problem, r *solvers.Result, reported float64) answer {
	n := p.X.Rows
	k, size := gaussianGram(p.X, p.X), gaussianGram(p.X, p.X)
	_, linear := p.Kernel.(kernels.Linear)
	mean := make([]float64, p.X.Cols)
	if linear { // X is centered too
		for i := range n {
			for q, v := range p.X.Row(i) {
				mean[q] += v / float64(n)
			}
		}
		for i := range n {
			for j := range n {
				k.Row(i)[j], size.Row(i)[j] = 0, 0
				for q, v := range p.X.Row(i) {
					k.Row(i)[j] += (v - mean[q]) * (p.X.Row(j)[q] - mean[q])
					size.Row(i)[j] += math.Abs((v - mean[q]) * (p.X.Row(j)[q] - mean[q]))
				}
			}
		}
	}
	weight := func(i int) float64 {
		if p.Weights == nil {
			return 1
		}
		return p.Weights[i]
	}
	var got relative
	for j := range p.Y.Cols {
		total, sum := 0.0, 0.0
		for i := range n {
			total += weight(i)
			sum += weight(i) * p.Y.Row(i)[j]
		}
		left, terms, right := make([]float64, n+1), make([]float64, n+1), make([]float64, n)
		for i := range n {
			y, a, b := p.Y.Row(i)[j], r.Alpha.Row(i)[j], r.Intercept[j]
			right[i] = y
			if p.Intercept {
				right[i] -= sum / total
				left[n] += a
				terms[n] += math.Abs(a)
			}
			if linear {
				b -= y - right[i]
				y = right[i]
				for q, m := range mean {
					b += m * r.Coef.Row(q)[j]
				}
			}
			left[i] = p.Lambda/weight(i)*a + b - y
			terms[i] = math.Abs(p.Lambda/weight(i)*a) + math.Abs(b) + math.Abs(y)
			for l, v := range k.Row(i) {
				left[i] += v * r.Alpha.Row(l)[j]
				terms[i] += size.Row(i)[l] * math.Abs(r.Alpha.Row(l)[j])
			}
		}
		got.add(left, terms, right, 2*n)
	}
	return answer{reported, got.residual, got.rounding}
}

// normalResidual is that of Φᵀ(y − Φβ − b1) = λSβ, relative to Φᵀy, with Φ and y
// centered where there is an intercept.
func normalResidual(phi, s, y, beta backend.Host[float64], r *solvers.Result, lambda float64, intercept bool) answer {
	n, m := phi.Rows, phi.Cols
	center := make([]float64, m)
	if intercept {
		for i := range n {
			for q, v := range phi.Row(i) {
				center[q] += v / float64(n)
			}
		}
	}
	var got relative
	for j := range y.Cols {
		mean := 0.0
		if intercept {
			for i := range n {
				mean += y.Row(i)[j] / float64(n)
			}
		}
		left, terms, right := make([]float64, m), make([]float64, m), make([]float64, m)
		for i := range n {
			v, size := y.Row(i)[j]-r.Intercept[j], math.Abs(y.Row(i)[j])+math.Abs(r.Intercept[j])
			for q, f := range phi.Row(i) {
				v -= f * beta.Row(q)[j]
				size += math.Abs(f * beta.Row(q)[j])
			}
			for q, f := range phi.Row(i) {
				left[q] += (f - center[q]) * v
				terms[q] += (math.Abs(f) + math.Abs(center[q])) * size
				right[q] += (f - center[q]) * (y.Row(i)[j] - mean)
			}
		}
		for q := range m {
			for l := range m {
				left[q] -= lambda * s.Row(q)[l] * beta.Row(l)[j]
				terms[q] += math.Abs(lambda * s.Row(q)[l] * beta.Row(l)[j])
			}
		}
		got.add(left, terms, right, 2*(n+m))
	}
	return answer{r.Residual, got.residual, got.rounding}
}

// resumables are small problems for every method that writes checkpoints.
func resumables(dev backend.Device) []resumable {
	const n = 16
	r := rand.New(rand.NewPCG(3, 9))
	x, y := backend.NewHost[float64](n, 3), backend.NewHost[float64](n, 2)
	for i := range x.Data {
		x.Data[i] = r.NormFloat64()
	}
	for i := range y.Data {
		y.Data[i] = 3 + r.NormFloat64()
	}
	one := backend.NewHost[float64](n, 1)
	weights := make([]float64, n)
	for i := range n {
		one.Data[i], weights[i] = y.Row(i)[0], 0.5+r.Float64()
	}
	gaussian := kernels.Gaussian{Sigma: forgedSigma}
	base := solvers.Problem{Kernel: gaussian, X: x, Y: one, Lambda: 1e-2}
	var list []resumable
	add := func(name string, iters int, p solvers.Problem, par solvers.Params) {
		par.Tol = 1e-9
		list = append(list, resumable{name, iters, par.Tol, func(ctx context.Context, c solvers.Checkpoint, maxIter int) (answer, error) {
			par := par
			par.Checkpoint, par.MaxIter = c, maxIter
			res, err := solvers.Solve(ctx, dev, p, par)
			var short *solvers.ConvergenceError
			if errors.As(err, &short) && short.Result != nil {
				return dualResidual(p, short.Result, short.Residual), err
			}
			if err != nil {
				return noAnswer, err
			}
			return dualResidual(p, res, res.Residual), nil
		}})
	}
	p := base
	p.Intercept = true
	add("cg,intercept", 4, p, solvers.Params{Method: solvers.CG, Preconditioner: "none", Operator: solvers.Stored64})
	p.Y = y
	add("cg,outputs,rank", 2, p, solvers.Params{Method: solvers.CG, Rank: 4, Operator: solvers.Unstored64})
	p.Weights = weights
	add("askotch,intercept,weights", 4, p, solvers.Params{Method: solvers.Askotch, Block: 5})
	p = base
	p.Lambda = 0.5
	add("cg,float32", 6, p, solvers.Params{Method: solvers.CG, Preconditioner: "none", Operator: solvers.Stored32})
	add("askotch,rank", 4, p, solvers.Params{Method: solvers.Askotch, Block: 5, Rank: 2})
	add("mixed", 1, p, solvers.Params{Method: solvers.Mixed, Operator: solvers.Stored64})
	p.Kernel, p.Intercept = kernels.Linear{}, true
	add("cg,linear", 2, p, solvers.Params{Method: solvers.CG, Preconditioner: "none", Operator: solvers.Stored64})

	// Few samples make a bad preconditioner, so that there are steps.
	par := solvers.StreamParams{Method: solvers.Falkon, Sample: 8, Tol: 1e-9}
	passes := func(name string, solve func(ctx context.Context, par solvers.StreamParams) (*solvers.Result, func(*solvers.Result) answer, error)) {
		list = append(list, resumable{name, 4, par.Tol, func(ctx context.Context, c solvers.Checkpoint, maxIter int) (answer, error) {
			par := par
			par.Checkpoint, par.MaxIter = c, maxIter
			res, check, err := solve(ctx, par)
			if res == nil {
				return noAnswer, err
			}
			return check(res), err
		}})
	}
	passes("nystrom", func(ctx context.Context, par solvers.StreamParams) (*solvers.Result, func(*solvers.Result) answer, error) {
		res, err := solvers.SolveNystrom(ctx, dev, solvers.NystromProblem{
			Kernel: gaussian, Data: solvers.InMemory(x, y, nil), Choice: solvers.CenterChoice{Count: 8}, Lambda: 1e-2, Intercept: true,
		}, par)
		if res == nil {
			return nil, nil, err
		}
		return &res.Result, func(r *solvers.Result) answer {
			return normalResidual(gaussianGram(x, res.Centers), gaussianGram(res.Centers, res.Centers), y, res.Beta, r, 1e-2, true)
		}, err
	})
	passes("fourier", func(ctx context.Context, par solvers.StreamParams) (*solvers.Result, func(*solvers.Result) answer, error) {
		q := solvers.FourierProblem{Kernel: gaussian, Data: solvers.InMemory(x, y, nil), Count: 8, Lambda: 1e-2}
		res, err := solvers.SolveFourier(ctx, dev, q, par)
		if res == nil {
			return nil, nil, err
		}
		omega, scale, failed := q.Basis(ctx, 3)
		if failed != nil {
			return nil, nil, failed
		}
		return &res.Result, func(r *solvers.Result) answer {
			d := omega.Rows
			phi, identity, beta := backend.NewHost[float64](n, 2*d), backend.NewHost[float64](2*d, 2*d), backend.NewHost[float64](2*d, 2)
			for i := range n {
				for f := range d {
					angle := 0.0
					for q, v := range x.Row(i) {
						angle += v * omega.Row(f)[q]
					}
					phi.Row(i)[f], phi.Row(i)[d+f] = scale*math.Cos(angle), scale*math.Sin(angle)
				}
			}
			for i := range 2 * d {
				identity.Row(i)[i] = 1
				for j := range 2 {
					beta.Row(i)[j] = res.Beta.Row(i)[j] / scale
				}
			}
			return normalResidual(phi, identity, y, beta, r, 1e-2, false)
		}, err
	})
	return list
}

// checkpointParts are a checkpoint without its checksum: what precedes the
// arrays, as JSON, and the arrays.
type checkpointParts struct {
	key            string
	header, arrays []byte
}

const checkpointMagic = "mercer checkpoint 1\n"

// interrupted returns the checkpoint that r leaves when its iterations are up.
func (r resumable) interrupted(t testing.TB, dir string) checkpointParts {
	t.Helper()
	_, err := r.run(t.Context(), solvers.Checkpoint{Dir: dir, Every: time.Nanosecond}, r.iters)
	var short *solvers.ConvergenceError
	list, _ := filepath.Glob(filepath.Join(dir, "*.checkpoint"))
	if !errors.As(err, &short) || len(list) != 1 {
		t.Fatalf("%s: %d checkpoints after %d iterations: %v", r.name, len(list), r.iters, err)
	}
	data, err := os.ReadFile(list[0])
	if err != nil {
		t.Fatal(err)
	}
	start := len(checkpointMagic) + 8
	end := start + int(binary.LittleEndian.Uint64(data[len(checkpointMagic):]))
	var head struct{ Key string }
	if err := json.Unmarshal(data[start:end], &head); err != nil {
		t.Fatal(err)
	}
	return checkpointParts{head.Key, data[start:end], data[end : len(data)-sha256.Size]}
}

// write puts the parts where r reads them, with a checksum that is right.
func (c checkpointParts) write(t testing.TB, dir string) {
	t.Helper()
	data := binary.LittleEndian.AppendUint64([]byte(checkpointMagic), uint64(len(c.header)))
	data = append(append(data, c.header...), c.arrays...)
	sum := sha256.Sum256(data)
	if err := os.WriteFile(filepath.Join(dir, c.key[:24]+".checkpoint"), append(data, sum[:]...), 0o666); err != nil {
		t.Fatal(err)
	}
}

// errorOrRight requires an error of one line, or a solution with the residual that
// is reported and asked for.
func (r resumable) errorOrRight(t testing.TB, dir, what string) {
	t.Helper()
	got, err := r.run(t.Context(), solvers.Checkpoint{Dir: dir}, 200)
	switch {
	case err != nil && (len(err.Error()) > 500 || strings.ContainsAny(err.Error(), "\n\x00")):
		t.Errorf("%s: %s: the error is not a short line: %q", r.name, what, err)
	case err == nil && !(got.residual <= r.tol+2*got.rounding):
		t.Errorf("%s: %s: no error, but a residual of %v", r.name, what, got.residual)
	case !math.IsNaN(got.reported) && !(math.Abs(got.reported-got.residual) <= 2*got.rounding):
		t.Errorf("%s: %s: the residual is %v, and %v is reported (%v)", r.name, what, got.residual, got.reported, err)
	}
}

// hostile are values for a field of the header.
var hostile = []any{nil, -1, 0, 1, 7, 1 << 62, -1 << 62, 1.5, 1e308, "", "NaN", "+Inf", "-Inf", "0x1p-1060", "a\nb", []any{}, []any{-1, -1}, []any{1e308}, map[string]any{}, true}

// forgeries calls f with every field of the header replaced by every hostile
// value, and every array by hostile numbers.
func forgeries(t testing.TB, c checkpointParts, f func(what string, forged checkpointParts)) {
	t.Helper()
	var head map[string]any
	if err := json.Unmarshal(c.header, &head); err != nil {
		t.Fatal(err)
	}
	emit := func(what string) {
		header, err := json.Marshal(head)
		if err != nil {
			t.Fatal(err)
		}
		f(what, checkpointParts{c.key, header, c.arrays})
	}
	var walk func(path string, v any, set func(any))
	walk = func(path string, v any, set func(any)) {
		for _, h := range hostile {
			set(h)
			emit(fmt.Sprintf("%s = %#v", path, h))
		}
		set(v)
		switch v := v.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				walk(path+"."+name, v[name], func(x any) { v[name] = x })
			}
		case []any:
			for i := range min(len(v), 2) {
				walk(fmt.Sprintf("%s[%d]", path, i), v[i], func(x any) { v[i] = x })
			}
			if path == ".Shapes" {
				for i := 2; i < len(v); i++ {
					walk(fmt.Sprintf("%s[%d]", path, i), v[i], func(x any) { v[i] = x })
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(head)) {
		if name != "Key" {
			walk("."+name, head[name], func(x any) { head[name] = x })
		}
	}
	first := 0
	for i, s := range head["Shapes"].([]any) {
		length := 8 * int(s.([]any)[0].(float64)) * int(s.([]any)[1].(float64))
		for _, v := range []float64{math.NaN(), math.Inf(1), 0, -1, 1e300, 1e-300, 1e30} {
			arrays := bytes.Clone(c.arrays)
			for at := first; at < first+length; at += 8 {
				binary.LittleEndian.PutUint64(arrays[at:], math.Float64bits(v))
			}
			f(fmt.Sprintf("array %d full of %v", i, v), checkpointParts{c.key, c.header, arrays})
		}
		first += length
	}
	for _, length := range []int{0, 8, len(c.arrays) - 8} {
		f(fmt.Sprintf("%d bytes of arrays", length), checkpointParts{c.key, c.header, c.arrays[:length]})
	}
	f("more arrays", checkpointParts{c.key, c.header, append(bytes.Clone(c.arrays), make([]byte, 8)...)})
}

// A checkpoint with any field or array forged gives an error, or a solution with
// the residual that is reported.
func TestForgedCheckpoints(t *testing.T) {
	dev := backendtest.Device(t, "ref")
	for _, r := range resumables(dev) {
		t.Run(r.name, func(t *testing.T) {
			dir := t.TempDir()
			c := r.interrupted(t, dir)
			c.write(t, dir)
			if got, err := r.run(t.Context(), solvers.Checkpoint{Dir: dir}, 200); err != nil || !(got.residual <= r.tol+2*got.rounding) {
				t.Fatalf("as it was written: %+v, %v", got, err)
			}
			count := 0
			forgeries(t, c, func(what string, forged checkpointParts) {
				if count++; testing.Short() && count%7 != 0 {
					return
				}
				forged.write(t, dir)
				defer func() {
					if fault := recover(); fault != nil {
						t.Errorf("%s: %s: panic: %v", r.name, what, fault)
					}
				}()
				r.errorOrRight(t, dir, what)
			})
			t.Logf("%d forgeries", count)
		})
	}
}

// A solution in a checkpoint is not believed to be as good as a checkpoint of an
// earlier version says.
func TestResidualOfCheckpointIsComputed(t *testing.T) {
	dev := backendtest.Device(t, "ref")
	for _, r := range resumables(dev) {
		dir := t.TempDir()
		c := r.interrupted(t, dir)
		var head map[string]any
		if err := json.Unmarshal(c.header, &head); err != nil {
			t.Fatal(err)
		}
		head["Residual"], head["Best"] = "0x0p+00", "0x0p+00"
		head["Left"], head["BestB"], head["Bias"] = []float64{0, 0}, head["B"], []float64{0, 0}
		// The arrays are alpha, best, z, rhs, x, …: best becomes ones.
		shapes := head["Shapes"].([]any)
		size := func(i int) int {
			return int(shapes[i].([]any)[0].(float64)) * int(shapes[i].([]any)[1].(float64))
		}
		alpha, best := size(0), size(1)
		if shapes[1] = shapes[0]; alpha == 0 { // of samples in passes
			shapes[1] = shapes[4]
		}
		arrays := bytes.Clone(c.arrays[:8*alpha])
		for range size(1) {
			arrays = binary.LittleEndian.AppendUint64(arrays, math.Float64bits(1))
		}
		c.arrays = append(arrays, c.arrays[8*(alpha+best):]...)
		header, err := json.Marshal(head)
		if err != nil {
			t.Fatal(err)
		}
		c.header = header
		c.write(t, dir)
		r.errorOrRight(t, dir, "residual 0")
	}
}

// FuzzCheckpoint changes the checkpoints of every method; KEY in the header stands
// for the hash of the problem. The checksum is always right.
func FuzzCheckpoint(f *testing.F) {
	dev := backendtest.Device(f, "ref")
	list := resumables(dev)
	keys := make([]string, len(list))
	for i, r := range list {
		c := r.interrupted(f, f.TempDir())
		keys[i] = c.key
		f.Add(uint8(i), bytes.Replace(c.header, []byte(c.key), []byte("KEY"), 1), c.arrays)
	}
	f.Fuzz(func(t *testing.T, which uint8, header, arrays []byte) {
		at := int(which) % len(list)
		dir := t.TempDir()
		checkpointParts{keys[at], bytes.Replace(header, []byte("KEY"), []byte(keys[at]), 1), arrays}.write(t, dir)
		list[at].errorOrRight(t, dir, "fuzz")
	})
}

// TestCheckpointsLargerThanTheProblemAreNotRead: a file of 1 TiB, which is one hole, is
// refused by its size.
func TestCheckpointsLargerThanTheProblemAreNotRead(t *testing.T) {
	dev := backendtest.Device(t, "ref")
	for _, r := range resumables(dev) {
		dir := t.TempDir()
		c := r.interrupted(t, dir)
		path := filepath.Join(dir, c.key[:24]+".checkpoint")
		if err := os.Truncate(path, 1<<40); err != nil {
			t.Fatal(err)
		}
		_, err := r.run(t.Context(), solvers.Checkpoint{Dir: dir}, 200)
		if err == nil || !strings.Contains(err.Error(), "it has 1099511627776 bytes") {
			t.Errorf("%s: %v", r.name, err)
		}
	}
}
