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

// resumable is a solve that writes checkpoints and can resume from them.
type resumable struct {
	name  string
	iters int // number of iterations after which the solve is stopped and has written a checkpoint
	// run returns the reported residual, or an error.
	run func(ctx context.Context, c solvers.Checkpoint, maxIter int) (float64, error)
}

const forgedTol = 1e-9

// resumables returns small problems for every method that writes checkpoints.
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
	gaussian := kernels.Gaussian{Sigma: 1.5}
	base := solvers.Problem{Kernel: gaussian, X: x, Y: one, Lambda: 1e-2}
	var list []resumable
	add := func(name string, iters int, p solvers.Problem, par solvers.Params) {
		par.Tol = forgedTol
		list = append(list, resumable{name, iters, func(ctx context.Context, c solvers.Checkpoint, maxIter int) (float64, error) {
			par := par
			par.Checkpoint, par.MaxIter = c, maxIter
			res, err := solvers.Solve(ctx, dev, p, par)
			if err != nil {
				return 0, err
			}
			return res.Residual, nil
		}})
	}
	p := base
	p.Intercept = true
	add("cg,intercept", 4, p, solvers.Params{Method: solvers.CG, Preconditioner: "none", Operator: solvers.Stored64})
	p.Y = y
	add("cg,outputs,rank", 2, p, solvers.Params{Method: solvers.CG, Rank: 4, Operator: solvers.Unstored64})
	p.Weights = weights
	add("cg,intercept,weights", 4, p, solvers.Params{Method: solvers.CG, Preconditioner: "none", Operator: solvers.Stored64})
	p = base
	p.Lambda = 0.5
	add("cg,float32", 6, p, solvers.Params{Method: solvers.CG, Preconditioner: "none", Operator: solvers.Stored32})
	add("mixed", 1, p, solvers.Params{Method: solvers.Mixed, Operator: solvers.Stored64})
	p.Kernel, p.Intercept = kernels.Linear{}, true
	add("cg,linear", 2, p, solvers.Params{Method: solvers.CG, Preconditioner: "none", Operator: solvers.Stored64})

	// With an inaccurate preconditioner from few samples, Falkon needs several steps.
	par := solvers.StreamParams{Method: solvers.Falkon, Tol: forgedTol}.WithSamples(8)
	list = append(list, resumable{"nystrom", 4, func(ctx context.Context, c solvers.Checkpoint, maxIter int) (float64, error) {
		par := par
		par.Checkpoint, par.MaxIter = c, maxIter
		res, err := solvers.SolveNystrom(ctx, dev, solvers.NystromProblem{
			Kernel: gaussian, Data: solvers.InMemory(x, y, nil, nil), Choice: solvers.CenterChoice{Count: 8}, Lambda: 1e-2, Intercept: true,
		}, par)
		if err != nil {
			return 0, err
		}
		return res.Residual, nil
	}})
	return list
}

// checkpointParts are the header, as JSON, and the arrays of a checkpoint.
type checkpointParts struct {
	key            string
	header, arrays []byte
}

const checkpointMagic = "mercer checkpoint 1\n"

// interrupted returns the checkpoint that r has written when it reaches its limit of iterations.
func (r resumable) interrupted(t testing.TB, dir string) checkpointParts {
	t.Helper()
	_, err := r.run(t.Context(), solvers.Checkpoint{Dir: dir, Every: time.Nanosecond}, r.iters)
	var inaccurate *solvers.ConvergenceError
	list, _ := filepath.Glob(filepath.Join(dir, "*.checkpoint"))
	if !errors.As(err, &inaccurate) || len(list) != 1 {
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

// write writes the parts to the file that r reads, with a valid checksum.
func (c checkpointParts) write(t testing.TB, dir string) {
	t.Helper()
	data := binary.LittleEndian.AppendUint64([]byte(checkpointMagic), uint64(len(c.header)))
	data = append(append(data, c.header...), c.arrays...)
	sum := sha256.Sum256(data)
	if err := os.WriteFile(filepath.Join(dir, c.key[:24]+".checkpoint"), append(data, sum[:]...), 0o666); err != nil {
		t.Fatal(err)
	}
}

// errorOrSolution requires that the solve returns an error of one line or a solution that has converged.
func (r resumable) errorOrSolution(t testing.TB, dir, name string) {
	t.Helper()
	residual, err := r.run(t.Context(), solvers.Checkpoint{Dir: dir}, 200)
	switch {
	case err != nil && (len(err.Error()) > 500 || strings.ContainsAny(err.Error(), "\n\x00")):
		t.Errorf("%s: %s: the error is not a short line: %q", r.name, name, err)
	case err == nil && !(residual <= forgedTol):
		t.Errorf("%s: %s: no error, but a residual of %v", r.name, name, residual)
	}
}

// hostile lists invalid values for a field of the header.
var hostile = []any{nil, -1, 0, 1, 7, 1 << 62, -1 << 62, 1.5, 1e308, "", "NaN", "+Inf", "-Inf", "0x1p-1060", "a\nb", []any{}, []any{-1, -1}, []any{1e308}, map[string]any{}, true}

// forgeries calls f for each checkpoint with a hostile value in one field of the header or in one array.
func forgeries(t testing.TB, c checkpointParts, f func(name string, forged checkpointParts)) {
	t.Helper()
	var head map[string]any
	if err := json.Unmarshal(c.header, &head); err != nil {
		t.Fatal(err)
	}
	emit := func(name string) {
		header, err := json.Marshal(head)
		if err != nil {
			t.Fatal(err)
		}
		f(name, checkpointParts{c.key, header, c.arrays})
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
			for index := first; index < first+length; index += 8 {
				binary.LittleEndian.PutUint64(arrays[index:], math.Float64bits(v))
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

// TestForgedCheckpoints checks that a solve returns an error or a correct solution if any field or array of its
// checkpoint is replaced and the checksum is valid.
func TestForgedCheckpoints(t *testing.T) {
	dev := backendtest.Device(t, "ref")
	for _, r := range resumables(dev) {
		t.Run(r.name, func(t *testing.T) {
			dir := t.TempDir()
			c := r.interrupted(t, dir)
			c.write(t, dir)
			if residual, err := r.run(t.Context(), solvers.Checkpoint{Dir: dir}, 200); err != nil || !(residual <= forgedTol) {
				t.Fatalf("as it was written: %v, %v", residual, err)
			}
			count := 0
			forgeries(t, c, func(name string, forged checkpointParts) {
				if count++; testing.Short() && count%7 != 0 {
					return
				}
				forged.write(t, dir)
				r.errorOrSolution(t, dir, name)
			})
			t.Logf("%d forgeries", count)
		})
	}
}

// FuzzCheckpoint fuzzes the checkpoints of every method, with a valid checksum and the problem's hash.
func FuzzCheckpoint(f *testing.F) {
	dev := backendtest.Device(f, "ref")
	list := resumables(dev)
	keys := make([]string, len(list))
	for i, r := range list {
		c := r.interrupted(f, f.TempDir())
		keys[i] = c.key
		f.Add(uint8(i), bytes.Replace(c.header, []byte(c.key), []byte("KEY"), 1), c.arrays)
	}
	f.Fuzz(func(t *testing.T, choice uint8, header, arrays []byte) {
		offset := int(choice) % len(list)
		dir := t.TempDir()
		checkpointParts{keys[offset], bytes.Replace(header, []byte("KEY"), []byte(keys[offset]), 1), arrays}.write(t, dir)
		list[offset].errorOrSolution(t, dir, "fuzz")
	})
}

// TestCheckpointsLargerThanTheProblemAreNotRead checks that a sparse file of 1 TiB gives an error.
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
		if err == nil || !strings.Contains(err.Error(), "the file has 1099511627776 bytes") {
			t.Errorf("%s: %v", r.name, err)
		}
	}
}
