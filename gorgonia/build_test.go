package gorgonia_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/gorgonia"
	"github.com/mercer-go/mercer/kernels"
)

// TestNoCUDA checks that no dependency of the default build and its tests is gorgonia.org/cu or uses cgo.
func TestNoCUDA(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-test", "-f", "{{.ImportPath}} {{len .CgoFiles}} {{.Standard}}", "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	count := 0
	for line := range strings.Lines(string(out)) {
		// go list names packages that are compiled for a test "path [path.test]".
		fields := strings.Fields(line)
		path, cgo, standard := fields[0], fields[len(fields)-2], fields[len(fields)-1]
		if path == "gorgonia.org/cu" || strings.HasPrefix(path, "gorgonia.org/cu/") {
			t.Errorf("the default build loads %s", path)
		}
		// The tests' simulated driver needs the package purego, which uses cgo only for its runtime.
		if cgo != "0" && standard == "false" && !strings.HasPrefix(path, "github.com/ebitengine/purego/") {
			t.Errorf("%s uses cgo", path)
		}
		if path == "gorgonia.org/gorgonia" || path == "github.com/mercer-go/mercer/gorgonia/cuctx" {
			count++
		}
	}
	if count < 2 {
		t.Errorf("the list lacks gorgonia.org/gorgonia or the folder cuctx:\n%s", out)
	}
}

func TestHostOf(t *testing.T) {
	data := make([]float64, 12)
	for i := range data {
		data[i] = float64(i)
	}
	whole := tensor.New(tensor.WithShape(3, 4), tensor.WithBacking(data))
	slice := func(s ...tensor.Slice) *tensor.Dense {
		v, err := whole.Slice(s...)
		if err != nil {
			t.Fatal(err)
		}
		return v.(*tensor.Dense)
	}
	transposed := whole.Clone().(*tensor.Dense)
	if err := transposed.T(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name               string
		t                  *tensor.Dense
		rows, cols, stride int
		first              int // index of element (0, 0) in data
		fails              string
	}{
		{name: "whole", t: whole, rows: 3, cols: 4, stride: 4},
		{name: "rows", t: slice(tensor.S(1, 3)), rows: 2, cols: 4, stride: 4, first: 4},
		{name: "columns", t: slice(nil, tensor.S(1, 3)), rows: 3, cols: 2, stride: 4, first: 1},
		{name: "inner part", t: slice(tensor.S(1, 3), tensor.S(2, 4)), rows: 2, cols: 2, stride: 4, first: 6},
		{name: "one row", t: slice(tensor.S(2)), rows: 4, cols: 1, stride: 1, first: 8},
		{name: "one column", t: slice(nil, tensor.S(2)), rows: 3, cols: 1, stride: 4, first: 2},
		{name: "vector", t: tensor.New(tensor.WithShape(12), tensor.WithBacking(data)), rows: 12, cols: 1, stride: 1},
		{name: "column", t: tensor.New(tensor.WithShape(12, 1), tensor.WithBacking(data)), rows: 12, cols: 1, stride: 1},
		{name: "row", t: tensor.New(tensor.WithShape(1, 12), tensor.WithBacking(data)), rows: 1, cols: 12, stride: 12},
		{name: "nil", fails: "the tensor is nil"},
		{name: "transposed", t: transposed, fails: "is not a row-major matrix: use its Materialize or Clone"},
		{name: "integers", t: tensor.New(tensor.WithBacking([]int{1, 2})), fails: "the elements are int, not float64"},
		{name: "float32", t: tensor.New(tensor.WithBacking([]float32{1, 2})), fails: "the elements are float32, not float64"},
		{name: "scalar", t: tensor.New(tensor.FromScalar(1.0)), fails: "a scalar tensor cannot be converted"},
		{name: "three dimensions", t: tensor.New(tensor.WithShape(2, 2, 3), tensor.WithBacking(data)), fails: "is not a row-major matrix"},
	} {
		h, err := gorgonia.HostOf[float64](c.t)
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: %v, want %s", c.name, err, c.fails)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if h.Rows != c.rows || h.Cols != c.cols || h.Rows > 1 && h.Stride != c.stride || &h.Data[0] != &data[c.first] {
			t.Errorf("%s: %d×%d with stride %d from %v; want %d×%d, stride %d, from %d, in the tensor's memory",
				c.name, h.Rows, h.Cols, h.Stride, h.Data[0], c.rows, c.cols, c.stride, c.first)
		}
		for i := range h.Rows {
			for j := range h.Cols {
				index := []int{i, j}[:c.t.Dims()]
				if want, err := c.t.At(index...); err != nil || h.Row(i)[j] != want {
					t.Errorf("%s: element %v is %v, of the tensor %v, %v", c.name, index, h.Row(i)[j], want, err)
				}
			}
		}
	}
}

func TestTensorOf(t *testing.T) {
	data := make([]float64, 12)
	for i := range data {
		data[i] = float64(i)
	}
	h := backend.Host[float64]{Rows: 3, Cols: 4, Stride: 4, Data: data}
	for _, view := range []backend.Host[float64]{h, h.View(0, 0, 2, 4), h.View(1, 1, 1, 2), h.View(0, 0, 3, 3), h.View(0, 1, 2, 2), h.View(1, 0, 2, 1)} {
		d, err := gorgonia.TensorOf(view)
		if err != nil {
			t.Errorf("%+v: %v", view, err)
			continue
		}
		restored, err := gorgonia.HostOf[float64](d)
		if err != nil {
			t.Errorf("%+v: %v", view, err)
			continue
		}
		if restored.Rows != view.Rows || restored.Cols != view.Cols || &restored.Data[0] != &view.Data[0] || restored.Rows > 1 && restored.Stride != view.Stride {
			t.Errorf("%+v became %+v", view, restored)
		}
	}
	for _, c := range []struct {
		h    backend.Host[float64]
		want string
	}{
		{backend.Host[float64]{}, "the matrix is empty"},
		{backend.Host[float64]{Rows: 3, Cols: 5, Stride: 5, Data: data}, "does not fit in 12 elements"},
		{h.View(1, 1, 2, 2), "has too few elements to be a slice of a tensor: it needs 8, and has "},
	} {
		if _, err := gorgonia.TensorOf(c.h); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.h, err, c.want)
		}
	}
}

// TestBuildErrors checks that invalid inputs cause errors when the graph is built.
func TestBuildErrors(t *testing.T) {
	dev := backendtest.Device(t, "cpu", backend.Config{})
	g := G.NewGraph()
	matrix := func(name string, rows, cols int) *G.Node {
		return G.NewMatrix(g, G.Float64, G.WithShape(rows, cols), G.WithName(name))
	}
	vector := func(name string, n int) *G.Node {
		return G.NewVector(g, G.Float64, G.WithShape(n), G.WithName(name))
	}
	x, y, lambda := matrix("x", 4, 2), vector("y", 4), G.NewScalar(g, G.Float64, G.WithName("lambda"))
	p := gorgonia.Params{Device: dev, Kernel: kernels.Gaussian{Sigma: 1}}
	modified := func(change func(*gorgonia.Params)) gorgonia.Params {
		q := p
		change(&q)
		return q
	}
	gram := func(p gorgonia.Params, x, z *G.Node) error { _, err := gorgonia.Gram(p, x, z); return err }
	solve := func(p gorgonia.Params, k, y, lambda *G.Node) error {
		_, err := gorgonia.Solve(p, k, y, lambda)
		return err
	}
	ridge := func(p gorgonia.Params, x, y, lambda, z *G.Node) error {
		_, err := gorgonia.KernelRidge(p, x, y, lambda, z)
		return err
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{gram(gorgonia.Params{}, x, nil), "gorgonia: gram: no device was given"},
		{gram(gorgonia.Params{Device: dev}, x, nil), "gorgonia: gram: the kernel is nil"},
		{gram(p, nil, nil), "gorgonia: gram: x must be a matrix with one point per row"},
		{gram(p, y, nil), "gorgonia: gram: x must be a matrix with one point per row"},
		{gram(p, x, matrix("narrow", 4, 3)), "gorgonia: gram: z has shape (4, 3): it must be a matrix with the 2 features of x"},
		{gram(modified(func(p *gorgonia.Params) { p.Kernel = kernels.Gaussian{} }), x, nil), "gorgonia: gram: kernels: gaussian: sigma must be a finite number > 0, got 0"},
		{gram(modified(func(p *gorgonia.Params) { p.Theta = vector("three", 3) }), x, nil), "gorgonia: gram: theta has shape (3), and gaussian(sigma=1) has 1 parameters"},
		{gram(modified(func(p *gorgonia.Params) { p.Kernel = kernels.Gradient(p.Kernel)[0] }), x, nil), "contains a derivative"},
		{gram(p, x, G.NewMatrix(g, G.Float32, G.WithShape(3, 2), G.WithName("other type"))), "gorgonia: gram of gaussian(sigma=1)"},
		{solve(gorgonia.Params{}, x, y, lambda), "gorgonia: solve: no device was given"},
		{solve(p, x, y, lambda), "gorgonia: solve: k must be a square matrix"},
		{solve(p, matrix("k", 4, 4), vector("five", 5), lambda), "gorgonia: solve: y must be a vector of 4 elements, or a matrix with as many rows"},
		{ridge(p, x, y, y, nil), "gorgonia: kernel ridge: lambda must be a scalar"},
		{ridge(p, x, y, nil, nil), "gorgonia: kernel ridge: lambda must be a scalar"},
		{ridge(p, x, nil, lambda, nil), "gorgonia: kernel ridge: y must be a vector of 4 elements"},
		{ridge(p, x, y, lambda, y), "gorgonia: kernel ridge: z has shape (4)"},
	} {
		if text := fmt.Sprint(c.err); !strings.Contains(text, c.want) {
			t.Errorf("got %q, want %q", text, c.want)
		}
	}
}

// TestRunErrors checks that a failure during a run becomes the error of the run.
func TestRunErrors(t *testing.T) {
	dev := backendtest.Device(t, "cpu", backend.Config{})
	stopped, stop := context.WithCancelCause(context.Background())
	stop(errors.New("the user left"))
	for _, c := range []struct {
		name         string
		x            []float64
		lambda, ln   float64
		ctx          context.Context
		want         string
		target       error
		gramAndSolve bool
	}{
		{name: "fine", x: []float64{1, 2, 3}, lambda: 0.1},
		{name: "points that coincide", x: []float64{1, 2, 2}, want: "raise lambda"},
		{name: "points that coincide", x: []float64{1, 2, 2}, want: "raise lambda", gramAndSolve: true},
		{name: "negative lambda", x: []float64{1, 2, 3}, lambda: -1, want: "lambda must be a finite number ≥ 0, got -1"},
		{name: "NaN", x: []float64{1, math.NaN(), 3}, lambda: 1, want: "x: row 2, column 1 is NaN"},
		{name: "parameter out of range", x: []float64{1, 2, 3}, lambda: 1, ln: 1e4, want: "sigma must be a finite number > 0, got +Inf"},
		{name: "context", x: []float64{1, 2, 3}, lambda: 1, ctx: stopped, want: "the user left"},
	} {
		g := G.NewGraph()
		x := G.NodeFromAny(g, tensor.New(tensor.WithShape(3, 1), tensor.WithBacking(c.x)), G.WithName("x"))
		y := G.NodeFromAny(g, tensor.New(tensor.WithShape(3), tensor.WithBacking([]float64{1, 2, 3})), G.WithName("y"))
		lambda := G.NewScalar(g, G.Float64, G.WithName("lambda"), G.WithValue(c.lambda))
		p := gorgonia.Params{Device: dev, Kernel: kernels.Gaussian{Sigma: 1}, Theta: G.NewScalar(g, G.Float64, G.WithName("theta"), G.WithValue(c.ln)), Context: c.ctx}
		var err error
		if c.gramAndSolve {
			var k *G.Node
			if k, err = gorgonia.Gram(p, x, nil); err == nil {
				_, err = gorgonia.Solve(p, k, y, lambda)
			}
		} else {
			_, err = gorgonia.KernelRidge(p, x, y, lambda, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		vm := G.NewTapeMachine(g)
		err = vm.RunAll()
		vm.Close()
		if text := fmt.Sprint(err); c.want == "" && err != nil || !strings.Contains(text, c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestTheta(t *testing.T) {
	k := parse(t, "0.5*gaussian(sigma=[1,2]) + sigmoid(a=-1,c=3) + polynomial(degree=2)")
	theta := gorgonia.ThetaOf(k)
	want := []float64{math.Log(0.5), 0, math.Log(2), -1, 3, math.Inf(-1)}
	if len(theta) != len(want) {
		t.Fatalf("got %v, want %v", theta, want)
	}
	for i, v := range want {
		if theta[i] != v {
			t.Errorf("parameter %d is %v, want %v", i, theta[i], v)
		}
	}
	theta[5] = 7 // no effect: the degree-2 kernel's c is 0 and remains 0
	theta[3] = -2
	changed, err := gorgonia.KernelAt(k, theta)
	if err != nil || changed.String() != "0.5*gaussian(sigma=[1,2]) + sigmoid(a=-2,c=3) + polynomial(degree=2,c=0)" {
		t.Errorf("got %v, %v", changed, err)
	}
	if _, err := gorgonia.KernelAt(k, theta[:2]); err == nil || !strings.HasPrefix(err.Error(), "gorgonia: kernel: ") {
		t.Errorf("too few parameters: %v", err)
	}
}
