package gorgonia_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/backend/ref"
	_ "github.com/mercer-go/mercer/cpu"
	_ "github.com/mercer-go/mercer/cuda"
	"github.com/mercer-go/mercer/cuda/cudatest"
	"github.com/mercer-go/mercer/gorgonia"
	"github.com/mercer-go/mercer/kernels"
)

const seed = 11 // seed of all random numbers; each failure logs it

func parse(t *testing.T, text string) kernels.Kernel {
	t.Helper()
	k, err := kernels.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// random returns a tensor of the given shape with random elements.
func random(r *rand.Rand, shape ...int) *tensor.Dense {
	data := make([]float64, tensor.Shape(shape).TotalSize())
	for i := range data {
		data[i] = r.NormFloat64()
	}
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(data))
}

// A model makes a node from its named inputs.
type model struct {
	name   string
	inputs map[string]*tensor.Dense // inputs by name; scalars have the shape ()
	build  func(in map[string]*G.Node) (*G.Node, error)
	// symmetric names an input that must remain symmetric when it is changed.
	symmetric string
	// condition bounds the condition number of the model's systems.
	condition float64
}

// run computes the loss Σ W∘f + ½ Σ f² of the model's node f and its gradients, in a tape machine or a lisp machine.
func (m model) run(t *testing.T, w *tensor.Dense, dtype tensor.Dtype, lisp bool) (loss float64, gradients map[string][]float64) {
	t.Helper()
	g := G.NewGraph()
	in := map[string]*G.Node{}
	var wrt G.Nodes
	for name, v := range m.inputs {
		in[name] = input(g, name, v, dtype)
		wrt = append(wrt, in[name])
	}
	f, err := m.build(in)
	if err != nil {
		t.Fatal(err)
	}
	weighted := G.Must(G.HadamardProd(f, input(g, "weights", w, dtype)))
	half := G.NewConstant(0.5)
	if dtype == G.Float32 {
		half = G.NewConstant(float32(0.5))
	}
	total := G.Must(G.Add(G.Must(G.Sum(weighted)), G.Must(G.Mul(half, G.Must(G.Sum(G.Must(G.Square(f))))))))
	var vm G.VM
	if lisp {
		vm = G.NewLispMachine(g)
	} else {
		if _, err := G.Grad(total, wrt...); err != nil {
			t.Fatal(err)
		}
		vm = G.NewTapeMachine(g, G.BindDualValues(wrt...))
	}
	defer vm.Close()
	if err := vm.RunAll(); err != nil {
		t.Fatal(err)
	}
	gradients = map[string][]float64{}
	for name, n := range in {
		d, err := n.Grad()
		if err != nil {
			t.Fatal(err)
		}
		gradients[name] = numbers(t, d.Data())
		if shape := n.Shape(); !d.Shape().Eq(shape) && shape.TotalSize() != d.Shape().TotalSize() {
			t.Errorf("the gradient with respect to %s has shape %v, want %v", name, d.Shape(), shape)
		}
	}
	return numbers(t, total.Value().Data())[0], gradients
}

func input(g *G.ExprGraph, name string, v *tensor.Dense, dtype tensor.Dtype) *G.Node {
	data := v.Data()
	if v.Dims() == 0 {
		f := data.(float64)
		if dtype == G.Float32 {
			return G.NewScalar(g, dtype, G.WithName(name), G.WithValue(float32(f)))
		}
		return G.NewScalar(g, dtype, G.WithName(name), G.WithValue(f))
	}
	if dtype == G.Float32 {
		rounded := make([]float32, 0)
		for _, f := range data.([]float64) {
			rounded = append(rounded, float32(f))
		}
		v = tensor.New(tensor.WithShape(v.Shape()...), tensor.WithBacking(rounded))
	} else {
		v = v.Clone().(*tensor.Dense)
	}
	return G.NodeFromAny(g, v, G.WithName(name))
}

func numbers(t *testing.T, data any) []float64 {
	t.Helper()
	switch d := data.(type) {
	case float64:
		return []float64{d}
	case []float64:
		return d
	case float32:
		return []float64{float64(d)}
	case []float32:
		var converted []float64
		for _, v := range d {
			converted = append(converted, float64(v))
		}
		return converted
	}
	t.Fatalf("data of type %T", data)
	return nil
}

// graph builds the model in a new graph.
func (m model) graph(t *testing.T) (*G.ExprGraph, *G.Node) {
	t.Helper()
	g := G.NewGraph()
	in := map[string]*G.Node{}
	for name, v := range m.inputs {
		in[name] = input(g, name, v, G.Float64)
	}
	f, err := m.build(in)
	if err != nil {
		t.Fatal(err)
	}
	return g, f
}

// value computes the loss without gradients.
func (m model) value(t *testing.T, w *tensor.Dense) float64 {
	t.Helper()
	g, f := m.graph(t)
	vm := G.NewTapeMachine(g)
	defer vm.Close()
	if err := vm.RunAll(); err != nil {
		t.Fatal(err)
	}
	loss := 0.0
	for i, v := range numbers(t, f.Value().Data()) {
		loss += v*w.Data().([]float64)[i] + v*v/2
	}
	return loss
}

// moved returns a copy of the model with s·direction added to the named input.
func (m model) moved(name string, direction []float64, s float64) model {
	inputs := map[string]*tensor.Dense{}
	for key, v := range m.inputs {
		inputs[key] = v
	}
	v := m.inputs[name]
	if v.Dims() == 0 {
		inputs[name] = tensor.New(tensor.FromScalar(v.Data().(float64) + s*direction[0]))
	} else {
		data := append([]float64(nil), v.Data().([]float64)...)
		for i := range data {
			data[i] += s * direction[i]
		}
		inputs[name] = tensor.New(tensor.WithShape(v.Shape()...), tensor.WithBacking(data))
	}
	m.inputs = inputs
	return m
}

// models returns the models of the tests. Their nodes use dev.
func models(t *testing.T, dev backend.Device, r *rand.Rand) []model {
	number := func(v float64) *tensor.Dense { return tensor.New(tensor.FromScalar(v)) }
	theta := func(k kernels.Kernel) *tensor.Dense {
		v := gorgonia.ThetaOf(k)
		return tensor.New(tensor.WithShape(len(v)), tensor.WithBacking(v))
	}
	rational := parse(t, "rationalquadratic(a=1.5,sigma=1.2) + 0.5*linear()")
	ard := parse(t, "gaussian(sigma=[1,2,0.7])")
	sigmoid := parse(t, "sigmoid(a=0.4,c=0.2)") // a kernel whose parameters are not given by logarithms
	gaussian := kernels.Gaussian{Sigma: 1.3}
	x, z, y, ys := random(r, 9, 3), random(r, 5, 3), random(r, 9), random(r, 9, 2)
	symmetric := random(r, 9, 9)
	for i := range 9 {
		for j := range i {
			v, _ := symmetric.At(i, j)
			symmetric.SetAt(v, j, i)
		}
		symmetric.SetAt(4+math.Abs(symmetric.Data().([]float64)[i]), i, i)
	}
	gram := func(k kernels.Kernel, theta bool) func(map[string]*G.Node) (*G.Node, error) {
		return func(in map[string]*G.Node) (*G.Node, error) {
			return gorgonia.Gram(gorgonia.Params{Device: dev, Kernel: k, Theta: in["theta"]}, in["x"], in["z"])
		}
	}
	ridge := func(k kernels.Kernel) func(map[string]*G.Node) (*G.Node, error) {
		return func(in map[string]*G.Node) (*G.Node, error) {
			return gorgonia.KernelRidge(gorgonia.Params{Device: dev, Kernel: k, Theta: in["theta"]}, in["x"], in["y"], in["lambda"], in["z"])
		}
	}
	solve := func(in map[string]*G.Node) (*G.Node, error) {
		return gorgonia.Solve(gorgonia.Params{Device: dev}, in["k"], in["y"], in["lambda"])
	}
	type inputs = map[string]*tensor.Dense
	return []model{
		{name: "gram", inputs: inputs{"x": x, "z": z, "theta": theta(rational)}, build: gram(rational, true)},
		{name: "symmetric gram", inputs: inputs{"x": x, "theta": theta(ard)}, build: gram(ard, true)},
		{name: "gram of constants", inputs: inputs{"x": x, "z": z}, build: gram(ard, false)},
		{name: "gram of one parameter", inputs: inputs{"x": x, "theta": number(0.2)}, build: gram(gaussian, true)},
		{name: "gram, no logarithms", inputs: inputs{"x": x, "theta": theta(sigmoid)}, build: gram(sigmoid, true)},
		{name: "solve", inputs: inputs{"k": symmetric, "y": y, "lambda": number(3)}, build: solve, symmetric: "k", condition: 20},
		{name: "solve of columns", inputs: inputs{"k": symmetric, "y": ys, "lambda": number(3)}, build: solve, symmetric: "k", condition: 20},
		{name: "solve of one column", inputs: inputs{"k": symmetric, "y": random(r, 9, 1), "lambda": number(3)}, build: solve, symmetric: "k", condition: 20},
		{name: "ridge", inputs: inputs{"x": x, "y": y, "lambda": number(0.3), "z": z, "theta": theta(ard)}, build: ridge(ard), condition: 40},
		{name: "ridge of itself", inputs: inputs{"x": x, "y": ys, "lambda": number(0.3), "theta": number(0.1)}, build: ridge(gaussian), condition: 40},
		{name: "ridge of constants", inputs: inputs{"x": x, "y": ys, "lambda": number(0.3), "z": z}, build: ridge(rational), condition: 200},
		// These nodes compute the same function as KernelRidge.
		{name: "gram and solve", inputs: inputs{"x": x, "y": y, "lambda": number(0.3), "z": z, "theta": theta(ard)}, condition: 40,
			build: func(in map[string]*G.Node) (*G.Node, error) {
				p := gorgonia.Params{Device: dev, Kernel: ard, Theta: in["theta"]}
				k, err := gorgonia.Gram(p, in["x"], nil)
				if err != nil {
					return nil, err
				}
				alpha, err := gorgonia.Solve(p, k, in["y"], in["lambda"])
				if err != nil {
					return nil, err
				}
				kz, err := gorgonia.Gram(p, in["z"], in["x"])
				if err != nil {
					return nil, err
				}
				return G.Mul(kz, alpha)
			}},
		// Here the kernel's inputs are nodes with trained parameters.
		{name: "features", inputs: inputs{"x": x, "y": y, "loglambda": number(-1), "z": z, "layer": random(r, 3, 2)}, condition: 40,
			build: func(in map[string]*G.Node) (*G.Node, error) {
				feature := func(n *G.Node) *G.Node { return G.Must(G.Tanh(G.Must(G.Mul(n, in["layer"])))) }
				return gorgonia.KernelRidge(gorgonia.Params{Device: dev, Kernel: gaussian}, feature(in["x"]), in["y"], G.Must(G.Exp(in["loglambda"])), feature(in["z"]))
			}},
	}
}

// weights returns random weights for the loss of a model's node.
func weights(t *testing.T, m model, r *rand.Rand) *tensor.Dense {
	t.Helper()
	_, f := m.graph(t)
	return random(r, f.Shape()...)
}

// simulated is nil if the device cuda/0 is available, simulated or real. Otherwise it is the error that prevents it.
var simulated error

func TestMain(m *testing.M) {
	os.Exit(func() int {
		if os.Getenv("MERCER_CUDA_LIBDIR") == "" {
			folder, err := os.MkdirTemp("", "mercer-gorgonia-")
			if err != nil {
				panic(err)
			}
			defer os.RemoveAll(folder)
			if simulated = cudatest.Build(folder, cudatest.WithSolver); simulated == nil {
				os.Setenv("MERCER_CUDA_LIBDIR", folder)
				// The best device must not be the slow simulated device.
				os.Setenv(backend.EnvDevice, "cpu")
			}
		}
		return m.Run()
	}())
}

// TestGradients compares gradients with differences of losses, in a tape machine and a lisp machine, on three devices.
func TestGradients(t *testing.T) {
	for _, name := range []string{"ref", "cpu", "cuda/0"} {
		if name == "cuda/0" {
			if errors.Is(simulated, cudatest.ErrNoCompiler) {
				t.Log(simulated)
				continue
			} else if simulated != nil {
				t.Fatal(simulated)
			}
		}
		dev := backendtest.Device(t, name, backend.Config{})
		r := rand.New(rand.NewPCG(seed, 1))
		for _, m := range models(t, dev, r) {
			for _, lisp := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/lisp=%t", name, m.name, lisp), func(t *testing.T) { checkGradients(t, m, r, lisp) })
			}
		}
	}
}

func checkGradients(t *testing.T, m model, r *rand.Rand, lisp bool) {
	w := weights(t, m, r)
	loss, gradients := m.run(t, w, G.Float64, lisp)
	if v := m.value(t, w); math.Abs(v-loss) > 1e-13*float64(w.Shape().TotalSize())*(1+math.Abs(v)) { // the two losses are summed in different orders
		t.Fatalf("seed %d: the loss is %v, and %v of the node's values", seed, loss, v)
	}
	for name, v := range m.inputs {
		direction := []float64{1}
		if v.Dims() > 0 {
			direction = random(r, v.Shape()...).Data().([]float64)
		}
		if name == m.symmetric {
			n := v.Shape()[0]
			for i := range n {
				for j := range i {
					direction[j*n+i] = direction[i*n+j]
				}
			}
		}
		got := 0.0
		for i, d := range direction {
			got += d * gradients[name][i]
		}
		const h = 0x1p-11
		shiftedLoss := func(s float64) float64 { return m.moved(name, direction, s*h).value(t, w) }
		m4, m2, m1, p1, p2, p4 := shiftedLoss(-4), shiftedLoss(-2), shiftedLoss(-1), shiftedLoss(1), shiftedLoss(2), shiftedLoss(4)
		fine := (8*(p1-m1) - (p2 - m2)) / (12 * h)
		coarse := (8*(p2-m2) - (p4 - m4)) / (24 * h)
		// The truncation error is bounded by the difference of the results for the steps h and 2h, and the rounding
		// error of the losses is proportional to the systems' condition number.
		tol := math.Abs(fine-coarse) + 64*(1+m.condition)*0x1p-53*(1+math.Abs(loss))/h
		if !(math.Abs(got-fine) <= tol) || tol > 1e-4*(1+math.Abs(fine)) {
			t.Errorf("seed %d: by %s: %v, by differences %v, allowed %g", seed, name, got, fine, tol)
		}
	}
}

// TestFloat32 checks that the results of Float32 nodes are those of Float64 nodes after rounding.
func TestFloat32(t *testing.T) {
	dev := backendtest.Device(t, "cpu", backend.Config{})
	r := rand.New(rand.NewPCG(seed, 2))
	for _, m := range models(t, dev, r) {
		t.Run(m.name, func(t *testing.T) {
			// The Float32 and Float64 nodes get the same numbers.
			for _, v := range m.inputs {
				if data, ok := v.Data().([]float64); ok {
					for i, f := range data {
						data[i] = float64(float32(f))
					}
				}
			}
			w := weights(t, m, r)
			for i, f := range w.Data().([]float64) {
				w.Data().([]float64)[i] = float64(float32(f))
			}
			loss64, wideGradients := m.run(t, w, G.Float64, false)
			loss32, gradients := m.run(t, w, G.Float32, false)
			// The bound is 64 roundings to 24 bits, multiplied by the condition number.
			size := 64 * (1 + m.condition) * 0x1p-24
			if !(math.Abs(loss32-loss64) <= size*(10+math.Abs(loss64))) {
				t.Errorf("seed %d: the loss is %v, %v in float64", seed, loss32, loss64)
			}
			for name, g := range gradients {
				for i, v := range g {
					if want := wideGradients[name][i]; !(math.Abs(v-want) <= size*(10+math.Abs(want))) {
						t.Errorf("seed %d: by %s: element %d is %v, %v in float64", seed, name, i, v, want)
					}
				}
			}
		})
	}
}

// TestTraining checks that the gradients of a machine whose inputs change in place equal those of a new graph.
func TestTraining(t *testing.T) {
	dev := backendtest.Device(t, "cpu", backend.Config{})
	r := rand.New(rand.NewPCG(seed, 3))
	x, z := random(r, 12, 2), random(r, 12, 2)
	y := random(r, 12)
	build := func() (*G.ExprGraph, *G.Node, *G.Node, *G.Node) {
		g := G.NewGraph()
		theta := G.NewVector(g, G.Float64, G.WithShape(1), G.WithName("theta"), G.WithValue(tensor.New(tensor.WithShape(1), tensor.WithBacking([]float64{0.5}))))
		nx := G.NodeFromAny(g, x.Clone(), G.WithName("x"))
		p := gorgonia.Params{Device: dev, Kernel: kernels.Gaussian{Sigma: 1}, Theta: theta}
		lambda := G.NewScalar(g, G.Float64, G.WithName("lambda"), G.WithValue(0.1))
		f, err := gorgonia.KernelRidge(p, nx, G.NodeFromAny(g, y.Clone(), G.WithName("y")), lambda, G.NodeFromAny(g, z.Clone(), G.WithName("z")))
		if err != nil {
			t.Fatal(err)
		}
		loss := G.Must(G.Sum(G.Must(G.Square(f))))
		if _, err := G.Grad(loss, nx, theta); err != nil {
			t.Fatal(err)
		}
		return g, nx, theta, f
	}
	g, nx, theta, f := build()
	vm := G.NewTapeMachine(g, G.BindDualValues(nx, theta))
	defer vm.Close()
	solver := G.NewVanillaSolver(G.WithLearnRate(0.05))
	for step := range 4 {
		if err := vm.RunAll(); err != nil {
			t.Fatal(err)
		}
		g2, nx2, theta2, _ := build()
		copy(nx2.Value().Data().([]float64), nx.Value().Data().([]float64))
		copy(theta2.Value().Data().([]float64), theta.Value().Data().([]float64))
		vm2 := G.NewTapeMachine(g2, G.BindDualValues(nx2, theta2))
		if err := vm2.RunAll(); err != nil {
			t.Fatal(err)
		}
		for _, pair := range [][2]*G.Node{{nx, nx2}, {theta, theta2}} {
			a, _ := pair[0].Grad()
			b, _ := pair[1].Grad()
			for i, v := range numbers(t, a.Data()) {
				if want := numbers(t, b.Data())[i]; v != want {
					t.Fatalf("seed %d: step %d: the gradient with respect to %v is %v, of a new graph %v", seed, step, pair[0], v, want)
				}
			}
		}
		vm2.Close()
		if err := solver.Step([]G.ValueGrad{nx, theta}); err != nil {
			t.Fatal(err)
		}
		vm.Reset()
	}
	if err := gorgonia.Release(f); err != nil {
		t.Error(err)
	}
	if err := gorgonia.Release(nx); err == nil || !strings.Contains(err.Error(), "is not a node of KernelRidge") {
		t.Errorf("release of an input: %v", err)
	}
}
