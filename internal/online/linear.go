package online

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// LinearBytes returns the device memory of Linear for n samples, in bytes.
func (l *Loop) LinearBytes(n int) int64 {
	b, d, columns := int64(min(n, max(Block, l.Batch))), int64(l.X.Cols), int64(l.columns())
	if l.X.Sparse != nil { // the product of a block needs memory for at most two numbers for each feature
		return 8*((2+columns)*d+b*(min(b, Block)+2*columns+2)) + 2*l.X.CopyBytes(int(b))
	}
	return 8 * (int64(n)*d + d*columns + b*(min(b, Block)+2*columns+d))
}

// columns returns the number of columns of w. Average doubles it: see linearHypothesis.
func (l *Loop) columns() int {
	if l.Average {
		return 2 * l.Outputs
	}
	return l.Outputs
}

// Linear learns f(x) = wᵀx + b and returns b and the d×Outputs matrix w. The argument coef is the initial w. If coef
// is 0×0, w starts at 0.
func (l *Loop) Linear(t *run.Task, coef backend.Host[float64]) (w backend.Host[float64], b []float64, err error) {
	l.block = Block
	h := &linearHypothesis{Loop: l, b: t.B, offset: make([]float64, l.columns())}
	if h.w, err = t.B.New(l.X.Cols, l.columns()); err != nil {
		return w, nil, err
	}
	defer h.w.Free()
	for c := range l.Outputs {
		h.offset[c] = l.Start
	}
	if coef.Rows > 0 {
		start := backend.NewHost[float64](l.X.Cols, l.columns())
		for p := range start.Rows {
			copy(start.Row(p), coef.Row(p))
		}
		if err := t.B.Upload(h.w, start); err != nil {
			return w, nil, err
		}
	}
	if err := l.run(t, h); err != nil {
		return w, nil, err
	}
	return h.result()
}

// linearHypothesis is f(x) = wᵀx + b. For an average it also stores the sum of the changes times their steps.
type linearHypothesis struct {
	*Loop
	b      backend.Backend[float64]
	w      backend.Matrix[float64] // d×C, or d×2C if it includes the sum for the average
	offset []float64               // b, and for the average the sum of its changes, each multiplied by its step
}

// gather returns the samples of a block on the device. If they are consecutive, it is a view of x.
func gather(b backend.Backend[float64], x numeric.Points, block []int) (backend.Matrix[float64], error) {
	inPlace := true
	for r, i := range block {
		inPlace = inPlace && i == block[0]+r
	}
	if inPlace {
		return x.Slice(block[0], len(block)).Place(b)
	}
	return x.Take(block).Place(b)
}

func (h *linearHypothesis) values(block []int) (backend.Host[float64], error) {
	f := backend.NewHost[float64](len(block), h.Outputs)
	err := h.compute(block, f, func(x, out backend.Matrix[float64]) {
		h.b.Gemm(backend.NoTrans, backend.NoTrans, 1, x, h.w.View(0, 0, h.X.Cols, h.Outputs), 0, out)
	})
	for i := range f.Rows {
		for c, v := range h.offset[:h.Outputs] {
			f.Row(i)[c] += v
		}
	}
	return f, err
}

func (h *linearHypothesis) gram(block []int) (backend.Host[float64], error) {
	g := backend.NewHost[float64](len(block), len(block))
	return g, h.compute(block, g, func(x, out backend.Matrix[float64]) {
		if h.X.Sparse != nil {
			h.b.Gram(out, kernels.Linear{}, x, x)
			return
		}
		h.b.Syrk(backend.Lower, backend.NoTrans, 1, x, 0, out)
	})
}

// compute calls queue with the samples of a block and a matrix for the output, and then downloads this matrix to dst.
func (h *linearHypothesis) compute(block []int, dst backend.Host[float64], queue func(x, out backend.Matrix[float64])) error {
	x, err := gather(h.b, h.X, block)
	if err != nil {
		return err
	}
	defer x.Free()
	out, err := h.b.New(dst.Rows, dst.Cols)
	if err != nil {
		return err
	}
	defer out.Free()
	queue(x, out)
	return h.b.Download(dst, out)
}

func (h *linearHypothesis) learn(block []int, delta backend.Host[float64], mistaken, steps []int) error {
	_, columns := h.w.Dims()
	rows, changes := make([]int, len(mistaken)), backend.NewHost[float64](len(mistaken), columns)
	for q, r := range mistaken {
		rows[q] = block[r]
		for c, v := range delta.Row(r) {
			changes.Row(q)[c] = v
			h.offset[c] += v * h.Bias
			if columns > h.Outputs {
				delayed := v * float64(steps[q])
				changes.Row(q)[h.Outputs+c] = delayed
				h.offset[h.Outputs+c] += delayed * h.Bias
			}
		}
	}
	x, err := gather(h.b, h.X, rows)
	if err != nil {
		return err
	}
	defer x.Free()
	d, err := backend.Place(h.b, changes)
	if err != nil {
		return err
	}
	defer d.Free()
	h.b.Gemm(backend.Transpose, backend.NoTrans, 1, x, d, 1, h.w)
	return h.b.Sync()
}

// result returns w and b. If Average is set, they are averages over the steps.
func (h *linearHypothesis) result() (backend.Host[float64], []float64, error) {
	_, columns := h.w.Dims()
	weights := backend.NewHost[float64](h.X.Cols, columns)
	if err := h.b.Download(weights, h.w); err != nil {
		return weights, nil, err
	}
	if columns == h.Outputs {
		return weights, h.offset, nil
	}
	steps := h.averaged()
	w, b := backend.NewHost[float64](h.X.Cols, h.Outputs), make([]float64, h.Outputs)
	for p := range w.Rows {
		for c := range h.Outputs {
			w.Row(p)[c] = weights.Row(p)[c] - weights.Row(p)[h.Outputs+c]/steps
		}
	}
	for c := range b {
		b[c] = h.offset[c] - h.offset[h.Outputs+c]/steps
	}
	return w, b, nil
}
