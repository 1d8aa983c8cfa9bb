package adjoint

import (
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// gramSums accumulates the gradients of one call, block by block.
type gramSums struct {
	*work
	k       kernels.Kernel
	x, z    host
	weights Weights
	want    Want
	block   int

	mx, mz        matrix
	dense, values buffer // dense: the given weights, or U Vᵀ for a block; values: the derivatives for a block
	u, v, product matrix // u, v: the factors of weights that are given as U Vᵀ; product: the weights of a block on the device
	weightRows    host   // the given weights, if they must be copied to the device block by block
	derivatives   []kernels.Kernel
	theta         []float64
	columns       []float64
	stats         []*statSums
}

// statSums holds the sums over pairs of S = W∘∂k/∂s for one statistic s.
type statSums struct {
	stat       kernels.Stat
	derivative kernels.StatDerivative
	product    bool
	px, pz     host   // the points that are multiplied by S; centered for ‖x−z‖²
	mpx, mpz   matrix // px and pz on the device
	byX, byZ   buffer // the products S·pz and Sᵀ·px
	rows       []float64
	cols       []float64
	outX, outZ host // sums over features, for statistics without products
	outShift   host
}

func (s *gramSums) prepare() (err error) {
	if s.mx, err = s.Mem.Place(s.x); err != nil {
		return err
	}
	if s.mz, err = s.Mem.Place(s.z); err != nil {
		return err
	}
	if s.values, err = s.buffer(backend.NewHost[float64](s.block, s.z.Rows)); err != nil {
		return err
	}
	if d := s.weights.Dense; d.Rows > 0 {
		if _, ok := s.B.(backend.Wrapper[float64]); ok {
			s.dense, err = s.buffer(d) // the weights are only read
		} else if s.product, err = s.Mem.New(s.block, s.z.Rows); err == nil {
			s.weightRows = d
		}
	} else {
		if s.u, err = s.Mem.Place(s.weights.U); err != nil {
			return err
		}
		if s.v, err = s.Mem.Place(s.weights.V); err != nil {
			return err
		}
		s.dense, err = s.buffer(backend.NewHost[float64](s.block, s.z.Rows))
	}
	if err != nil {
		return err
	}
	if s.want&WantTheta != 0 {
		s.derivatives = kernels.Gradient(s.k)
		s.theta = make([]float64, len(s.derivatives))
		s.columns = make([]float64, s.z.Rows)
	}
	if s.want&wantPoints == 0 {
		return nil
	}
	n, m, d := s.x.Rows, s.z.Rows, s.x.Cols
	for i, derivative := range kernels.StatDerivatives(s.k) {
		t := &statSums{stat: kernels.Compile(s.k).Stats[i], derivative: derivative}
		s.stats = append(s.stats, t)
		t.product = productStat(s.k, t.stat)
		switch {
		case t.product:
			t.px, t.pz, t.mpx, t.mpz = s.x, s.z, s.mx, s.mz
			if t.stat.Kind == kernels.SqDist {
				t.px, t.pz = centered(s.x, s.z)
				if t.mpx, err = s.Mem.Place(t.px); err != nil {
					return err
				}
				if t.mpz, err = s.Mem.Place(t.pz); err != nil {
					return err
				}
			}
			if t.byX, err = s.buffer(backend.NewHost[float64](n, d)); err != nil {
				return err
			}
			if t.byZ, err = s.buffer(backend.NewHost[float64](m, d)); err != nil {
				return err
			}
			fallthrough
		case t.stat.Kind.OnePoint():
			t.rows, t.cols = make([]float64, n), make([]float64, m)
		default:
			t.outX, t.outZ = backend.NewHost[float64](n, d), backend.NewHost[float64](m, d)
			if s.want&WantShift != 0 {
				t.outShift = backend.NewHost[float64](m, d)
			}
		}
		if s.want&WantShift != 0 && (t.stat.Kind == kernels.SelfX || t.stat.Kind == kernels.RootX) {
			if err := s.prepareSelf(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepareSelf copies the gradients of the statistic k(x, x), or of its inverse root, at each row x of X to the device.
func (s *gramSums) prepareSelf(t *statSums) (err error) {
	gradients := backend.NewHost[float64](s.x.Rows, s.x.Cols)
	for i := range gradients.Rows {
		g, err := t.stat.PointGradient(s.x.Row(i))
		if err != nil {
			return err
		}
		copy(gradients.Row(i), g)
	}
	if t.mpx, err = s.Mem.Place(gradients); err == nil {
		t.byZ, err = s.buffer(backend.NewHost[float64](s.z.Rows, s.z.Cols))
	}
	return err
}

// blockWeights returns the weights of a block, on the device and on the host.
func (s *gramSums) blockWeights(first, rows int) (matrix, host, error) {
	switch {
	case s.u != nil:
		w := s.dense.view(0, rows)
		s.B.Gemm(backend.NoTrans, backend.Transpose, 1, s.u.View(first, 0, rows, s.weights.U.Cols), s.v, 0, w.m)
		return w.m, w.host, w.download()
	case s.weightRows.Rows > 0:
		h := s.weightRows.View(first, 0, rows, s.weightRows.Cols)
		m := s.product.View(0, 0, rows, s.z.Rows)
		return m, h, s.B.Upload(m, h)
	}
	w := s.dense.view(first, rows)
	return w.m, w.host, nil
}

// add adds the terms of all pairs of a block of rows of X and the rows of Z.
func (s *gramSums) add(first, rows int) error {
	wm, wh, err := s.blockWeights(first, rows)
	if err != nil {
		return err
	}
	x := s.mx.View(first, 0, rows, s.x.Cols)
	values := s.values.view(0, rows)
	for i, d := range s.derivatives {
		s.B.Gram(values.m, d, x, s.mz)
		if err := s.B.ColDot(s.columns, wm, values.m); err != nil {
			return err
		}
		for _, v := range s.columns {
			s.theta[i] += v
		}
	}
	for _, t := range s.stats {
		if err := s.addStat(t, x, values, wh, first); err != nil {
			return err
		}
	}
	return nil
}

func (s *gramSums) addStat(t *statSums, x matrix, values buffer, weights host, first int) error {
	s.B.Gram(values.m, t.derivative, x, s.mz)
	if err := values.download(); err != nil {
		return err
	}
	rows := values.host.Rows
	// A weight of 0 contributes 0 even if the derivative is infinite.
	run.Parallel(rows, func(from, to int) {
		for i := from; i < to; i++ {
			row := values.host.Row(i)
			for j, w := range weights.Row(i) {
				if w == 0 {
					row[j] = 0
				} else {
					row[j] *= w
				}
			}
		}
	})
	if t.outX.Rows > 0 {
		s.addFeatures(t, values.host, first)
		return nil
	}
	for i := range rows {
		sum := 0.0
		for j, v := range values.host.Row(i) {
			sum += v
			t.cols[j] += v
		}
		t.rows[first+i] = sum
	}
	if t.mpx == nil {
		return nil
	}
	if err := values.upload(); err != nil {
		return err
	}
	if s.want&WantX != 0 && t.product {
		s.B.Gemm(backend.NoTrans, backend.NoTrans, 1, values.m, t.mpz, 0, t.byX.view(first, rows).m)
	}
	if s.want&(WantZ|WantShift) != 0 {
		beta := 1.0
		if first == 0 {
			beta = 0
		}
		s.B.Gemm(backend.Transpose, backend.NoTrans, 1, values.m, t.mpx.View(first, 0, rows, s.x.Cols), beta, t.byZ.m)
	}
	return s.B.Sync() // the next statistic overwrites values.host
}

// addFeatures adds the derivatives of the statistic's terms, weighted by the elements of weights = W∘∂k/∂s.
func (s *gramSums) addFeatures(t *statSums, weights host, first int) {
	if s.want&WantX != 0 {
		run.Parallel(weights.Rows, func(from, to int) {
			for i := from; i < to; i++ {
				x, out := s.x.Row(first+i), t.outX.Row(first+i)
				for j, w := range weights.Row(i) {
					addTerms(out, t.stat, w, x, s.z.Row(j), false)
				}
			}
		})
	}
	for _, sum := range []struct {
		want Want
		out  host
		byZ  bool
	}{{WantZ, t.outZ, true}, {WantShift, t.outShift, false}} {
		if s.want&sum.want == 0 {
			continue
		}
		run.Parallel(s.z.Rows, func(from, to int) {
			for i := range weights.Rows {
				x, row := s.x.Row(first+i), weights.Row(i)
				for j := from; j < to; j++ {
					addTerms(sum.out.Row(j), t.stat, row[j], x, s.z.Row(j), sum.byZ)
				}
			}
		})
	}
}

// addTerms adds w times the derivatives of the terms of the statistic s of (x, z) to out: with respect to z if byZ
// is set, and to x otherwise. If a derivative is 0, addTerms adds 0, even for an infinite w.
func addTerms(out []float64, s kernels.Stat, w float64, x, z []float64, byZ bool) {
	if w == 0 {
		return
	}
	z = z[:len(x)]
	out = out[:len(x)]
	const sign = 1 << 63
	flip := uint64(0)
	if byZ {
		flip = sign
	}
	switch {
	case s.Kind == kernels.L1 && s.Scale == nil:
		bits := math.Float64bits(w) ^ flip
		for p, v := range x {
			if diff := v - z[p]; diff != 0 {
				out[p] += math.Float64frombits(bits ^ math.Float64bits(diff)&sign)
			}
		}
	case s.Kind == kernels.SqDist && s.Scale == nil:
		w = math.Float64frombits(math.Float64bits(2*w) ^ flip)
		for p, v := range x {
			if diff := v - z[p]; diff != 0 {
				out[p] += w * diff
			}
		}
	default:
		for p := range x {
			d, dz := s.TermGradient(p, x[p], z[p])
			if byZ {
				d = dz
			}
			if d != 0 {
				out[p] += w * d
			}
		}
	}
}

func (s *gramSums) finish() (gx, gz host, err error) {
	gx, gz = backend.NewHost[float64](s.x.Rows, s.x.Cols), backend.NewHost[float64](s.z.Rows, s.z.Cols)
	for _, t := range s.stats {
		if s.want&WantX != 0 {
			if err := t.finish(gx, t.px, t.byX, t.rows, t.outX, s.x, kernels.SelfX, kernels.RootX); err != nil {
				return gx, gz, err
			}
		}
		if s.want&WantZ != 0 {
			if err := t.finish(gz, t.pz, t.byZ, t.cols, t.outZ, s.z, kernels.SelfZ, kernels.RootZ); err != nil {
				return gx, gz, err
			}
		}
	}
	return gx, gz, nil
}

// shift computes the field Shift of Gradients. S and s are defined at statSums.finish. For each
// kind of statistic, the row of z is
//
//	xᵀz      s² z Σ_i S_i
//	‖x−z‖²   2s² (SᵀX − z Σ_i S_i)
//	self     Sᵀ times the derivatives of the statistics of the x_i
func (s *gramSums) shift() (host, error) {
	g := backend.NewHost[float64](s.z.Rows, s.z.Cols)
	for _, t := range s.stats {
		switch {
		case t.outShift.Rows > 0:
			for i, v := range t.outShift.Data {
				g.Data[i] += v
			}
			continue
		case t.mpx == nil:
			continue
		}
		if err := t.byZ.download(); err != nil {
			return g, err
		}
		for j := range g.Rows {
			row, product := g.Row(j), t.byZ.host.Row(j)
			if !t.product {
				for p, v := range product {
					row[p] += v
				}
				continue
			}
			for p, z := range t.pz.Row(j) {
				scale := t.stat.ScaleAt(p) * t.stat.ScaleAt(p)
				if t.stat.Kind == kernels.Dot {
					row[p] += scale * z * t.cols[j]
				} else {
					row[p] += 2 * scale * (product[p] - z*t.cols[j])
				}
			}
		}
	}
	return g, nil
}

// finish adds the gradient of one statistic with respect to the points of one argument of k to g. S holds the
// weighted derivatives, and s is the scale of a feature. For each kind of statistic, the gradient is
//
//	xᵀz      s² (S Z)
//	‖x−z‖²   2s² (x Σ_j S_ij − (S Z))
//	self     Σ_j S_ij times the derivative of the point's own statistic
func (t *statSums) finish(g, points host, products buffer, sums []float64, out, raw host, selfKind, rootKind kernels.StatKind) error {
	switch {
	case out.Rows > 0:
		for i, v := range out.Data {
			g.Data[i] += v
		}
	case t.stat.Kind.OnePoint():
		if t.stat.Kind != selfKind && t.stat.Kind != rootKind {
			return nil
		}
		for i := range g.Rows {
			derivative, err := t.stat.PointGradient(raw.Row(i))
			if err != nil {
				return err
			}
			row := g.Row(i)
			for p, v := range derivative {
				row[p] += sums[i] * v
			}
		}
	default:
		if err := products.download(); err != nil {
			return err
		}
		for i := range g.Rows {
			row, product, x := g.Row(i), products.host.Row(i), points.Row(i)
			for p := range row {
				scale := t.stat.ScaleAt(p) * t.stat.ScaleAt(p)
				if t.stat.Kind == kernels.Dot {
					row[p] += scale * product[p]
				} else {
					row[p] += 2 * scale * (x[p]*sums[i] - product[p])
				}
			}
		}
	}
	return nil
}
