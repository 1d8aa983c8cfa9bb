package gorgonia_test

import (
	"fmt"
	"log"
	"math"
	"math/rand/v2"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/mercer-go/mercer/backend"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/gorgonia"
	"github.com/mercer-go/mercer/kernels"
)

// This example learns a metric with gradients through a solve. The target depends on three of eight
// features. A is an 8×8 matrix, and each row of X is a sample. Kernel ridge regression is fitted to
// 300 rows of XA. A and λ are trained to predict 300 other rows. The example also prints the error
// at 300 unseen rows.
func Example() {
	dev, err := backend.Open("", backend.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()

	g := G.NewGraph()
	rng := rand.New(rand.NewPCG(1, 2))
	fitX, fitY := rows(g, rng, "fit", 300)
	heldX, heldY := rows(g, rng, "held", 300)
	newX, newY := rows(g, rng, "new", 300)

	a := G.NodeFromAny(g, tensor.I(G.Float64, 8, 8, 0), G.WithName("A"))
	logLambda := G.NewScalar(g, G.Float64, G.WithName("ln λ"), G.WithValue(math.Log(0.1)))
	lambda := G.Must(G.Exp(logLambda))
	head := gorgonia.Params{Device: dev, Kernel: kernels.Gaussian{Sigma: 3}}
	predict := func(z *G.Node) *G.Node {
		f, err := gorgonia.KernelRidge(head, G.Must(G.Mul(fitX, a)), fitY, lambda, G.Must(G.Mul(z, a)))
		if err != nil {
			log.Fatal(err)
		}
		return f
	}
	meanSquare := func(f, y *G.Node) *G.Node { return G.Must(G.Mean(G.Must(G.Square(G.Must(G.Sub(f, y)))))) }
	loss := meanSquare(predict(heldX), heldY)
	unseen := meanSquare(predict(newX), newY)
	if _, err := G.Grad(loss, a, logLambda); err != nil {
		log.Fatal(err)
	}

	vm := G.NewTapeMachine(g, G.BindDualValues(a, logLambda))
	defer vm.Close()
	solver := G.NewAdamSolver(G.WithLearnRate(0.05))
	for step := range 51 {
		if err := vm.RunAll(); err != nil {
			log.Fatal(err)
		}
		if step%25 == 0 {
			fmt.Printf("step %2d: mean squared error of held-out rows %.2f, of unseen ones %.2f\n", step, loss.Value().Data(), unseen.Value().Data())
		}
		if err := solver.Step([]G.ValueGrad{a, logLambda}); err != nil {
			log.Fatal(err)
		}
		vm.Reset()
	}
	// Output:
	// step  0: mean squared error of held-out rows 0.40, of unseen ones 0.35
	// step 25: mean squared error of held-out rows 0.04, of unseen ones 0.06
	// step 50: mean squared error of held-out rows 0.02, of unseen ones 0.03
}

// rows returns n points x with eight features and y = sin 2x₁ + x₂x₃ plus noise.
func rows(g *G.ExprGraph, rng *rand.Rand, name string, n int) (x, y *G.Node) {
	xs, ys := make([]float64, 8*n), make([]float64, n)
	for i := range ys {
		p := xs[8*i : 8*i+8]
		for j := range p {
			p[j] = rng.NormFloat64()
		}
		ys[i] = math.Sin(2*p[0]) + p[1]*p[2] + 0.05*rng.NormFloat64()
	}
	return G.NodeFromAny(g, tensor.New(tensor.WithShape(n, 8), tensor.WithBacking(xs)), G.WithName(name+" x")),
		G.NodeFromAny(g, tensor.New(tensor.WithShape(n), tensor.WithBacking(ys)), G.WithName(name+" y"))
}
