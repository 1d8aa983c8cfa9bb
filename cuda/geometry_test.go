package cuda

import (
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/internal/check"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
)

var h100 = properties{name: "H100", processors: 132, major: 9, ratio: 2, clock: 1.98e9}

// TestLaunchesUseTheCard checks, for an H100, an H200 and an L4, that the launches of each operation use at least
// 80 % of the blocks of threads that the card runs at a time, and that no step takes more than 100 ms in a model
// with half of the peak instruction rate. The launches are recorded, not run.
func TestLaunchesUseTheCard(t *testing.T) {
	Need(t)
	dev := backendtest.Device(t, "cuda/0")
	for _, c := range []properties{h100, h200, l4} {
		t.Run(c.name, func(t *testing.T) {
			card(t, dev, c, 64)
			launchesUseTheCard(t, dev.F32().(*queue[float32]))
			launchesUseTheCard(t, dev.F64().(*queue[float64]))
		})
	}
}

func launchesUseTheCard[T backend.Float](t *testing.T, q *queue[T]) {
	const somewhere = driver.DevicePtr(1) << 40
	d := q.engine.device
	ratio := 1.0
	if sizeOf[T]() == 8 {
		ratio = float64(d.props.ratio)
	}
	matrixOf := func(rows, cols int) *matrix[T] {
		return &matrix[T]{device: d, ptr: somewhere, rows: rows, cols: cols, stride: cols}
	}
	orders := []int{20000, 20001, 50000, 65536 + 64, 131072, 200000, 262144, 500000, 1000000}
	if testing.Short() {
		orders = []int{20000, 50000, 131072, 1000000}
	}
	for _, n := range required.Subset(2, orders) {
		for _, features := range required.Subset(2, []int{3, 50, 784}) {
			x := matrixOf(n, features)
			z := matrixOf(n, features)
			z.ptr += 1 << 36 // a different address, so that Z and X are different matrices
			k := kernels.Gaussian{Sigma: 7}
			out := matrixOf(n, n)
			pairs := float64(n) * float64(n)
			for _, op := range []struct {
				name    string
				pairs   float64
				columns int
				call    func() error
			}{
				{"Gram", pairs, 0, func() error { return q.gram(out.view(), k, x, z, whole) }},
				{"Gram, lower", pairs / 2, 0, func() error { return q.gram(out.view(), k, x, x, lower) }},
				{"Gram, upper", pairs / 2, 0, func() error { return q.gram(out.view(), k, x, x, upper) }},
				{"GramMul", pairs, 1, func() error { return q.gramProduct(matrixOf(n, 1), k, x, z, matrixOf(n, 1)) }},
				{"GramMul, 8 columns", pairs, 8, func() error { return q.gramProduct(matrixOf(n, 8), k, x, z, matrixOf(n, 8)) }},
				{"GramMul, symmetric", pairs, 1, func() error { return q.gramProduct(matrixOf(n, 1), k, x, x, matrixOf(n, 1)) }},
			} {
				if op.columns == 0 && n > 200000 {
					continue // larger matrices do not fit
				}
				blocks, launched, rounds, maxBlocks := recordLaunches(t, q, op.call)
				p, err := q.program(k, x, z)
				if err != nil {
					t.Fatal(err)
				}
				pairs := op.pairs
				if launched == "gram_symv" {
					pairs /= 2
				}
				// All blocks of threads of an operation evaluate about the same number of pairs of points.
				second := d.props.singleRate() / 2 * 0.5 / ratio // instructions per second
				slowest := float64(ceil(maxBlocks, d.props.concurrentBlocks())*d.props.concurrentBlocks()) * pairs / float64(blocks) * (p.cost(features) + float64(op.columns)) / second
				utilization := float64(blocks) / float64(rounds*d.props.concurrentBlocks())
				if utilization < 0.8 || slowest > 0.1 {
					t.Errorf("%s of %d points of %d features in %T by %s: %d blocks in %d rounds use %.2f of the places; the longest step takes %.3g s",
						op.name, n, features, *new(T), launched, blocks, rounds, utilization, slowest)
				}
			}
		}
		// Memory bandwidth limits the following operations. Each operation is one step of the queue.
		if n > 200000 {
			continue // larger matrices do not fit
		}
		fixed := &fixedMatrix[T]{memory: matrixOf(1, 1), diag: somewhere, coding: new(check.Coding), n: n}
		for name, call := range map[string]func() error{
			"symm, 1 column": func() error {
				return q.thinProduct(1, matrixOf(n, n).view(), matrixOf(n, 1).view(), 0, matrixOf(n, 1).view(), lower)
			},
			"symm, 4 columns": func() error {
				return q.thinProduct(1, matrixOf(n, n).view(), matrixOf(n, 4).view(), 0, matrixOf(n, 4).view(), lower)
			},
			"gemm, 4 columns": func() error {
				return q.thinProduct(1, matrixOf(n, n).view(), matrixOf(n, 4).view(), 0, matrixOf(n, 4).view(), whole)
			},
			"gemm of a transpose, 1 column": func() error {
				return q.thinProduct(1, matrixOf(n, n).view().t(), matrixOf(n, 1).view(), 0, matrixOf(n, 1).view(), whole)
			},
			"symm of 16 bits": func() error {
				return q.symmFixed(1, fixed, check.Coding{}, matrixOf(n, 1).view(), 0, matrixOf(n, 1).view())
			},
		} {
			blocks, launched, rounds, _ := recordLaunches(t, q, call)
			if utilization := float64(blocks) / float64(rounds*d.props.concurrentBlocks()); utilization < 0.8 {
				t.Errorf("%s of order %d in %T by %s: %d blocks in %d rounds use %.2f of the places", name, n, *new(T), launched, blocks, rounds, utilization)
			}
		}
	}
}

// recordLaunches calls f without running any device function. It returns the number of blocks of threads that do
// work, the name of the device function without its variant, the number of rounds in which the card runs the
// blocks, and the largest number of blocks of a launch. Functions that add up partial sums do not count.
func recordLaunches[T backend.Float](t *testing.T, q *queue[T], f func() error) (blocks int, launched string, rounds, maxBlocks int) {
	t.Helper()
	d := q.engine.device
	original := d.api
	recording, names := *original, map[uintptr]string{}
	recording.Call = func(s *driver.Symbol, args ...uintptr) int32 {
		switch s.Name {
		case "cuEventRecord", "cuEventSynchronize":
			return 0
		case "cuLaunchKernel":
		default:
			return original.Call(s, args...)
		}
		name := names[args[0]]
		if name == "" {
			for n, handle := range d.functions {
				if uintptr(handle) == args[0] {
					name, names[args[0]] = n, n
				}
			}
		}
		if strings.HasPrefix(name, "thin_sum") {
			return 0
		}
		count := int(args[1] * args[2] * args[3])
		triangular := strings.Contains(name, "_symm") || strings.HasPrefix(name, "gram") && !strings.Contains(name, "mul") && !strings.Contains(name, "symv")
		if triangular && args[1] == args[2] {
			count = int(args[1]*(args[1]+1)) / 2 // the blocks above the diagonal do no work
		}
		launched = strings.Join(strings.Split(name, "_")[:2], "_")
		blocks, rounds, maxBlocks = blocks+count, rounds+ceil(count, d.props.concurrentBlocks()), max(maxBlocks, count)
		return 0
	}
	err := q.wait("recording", func() error {
		d.api = &recording
		defer func() { d.api = original }()
		return f()
	})
	if err != nil {
		t.Fatal(err)
	}
	if blocks == 0 {
		t.Fatal("no launch was recorded")
	}
	return blocks, launched, rounds, maxBlocks
}
