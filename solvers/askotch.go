package solvers

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/message"
)

// Askotch solves (K + λW⁻¹)α = y by blocks of samples: sketch-and-project with
// acceleration (ASkotch: Rathore, Frangella, Yang, Dereziński, Udell 2025). A step
// costs O(bn) and sees b rows of K, so that a solution begins to improve long
// before one product with K is done; nothing but the block is stored.
const Askotch Method = "askotch"

// askotchChoice is how askotch goes about a problem.
type askotchChoice struct {
	Block int // samples in a block
	Rank  int // of the block's approximation; 0: its Cholesky factor
}

// askotchChoice chooses the block: as large as keeps its factor, b³/3, a quarter
// of the values that a step evaluates, bn.
func (z *sizes) askotchChoice(par Params, n int) askotchChoice {
	c := askotchChoice{Block: par.Block, Rank: par.Rank}
	if c.Block == 0 {
		c.Block = int(math.Sqrt(0.75 * float64(n) * (2*float64(z.d) + 2*kernelValue + 2*float64(z.columns))))
	}
	c.Block = max(1, min(c.Block, n))
	c.Rank = min(c.Rank, c.Block)
	return c
}

func askotchEstimate(z *sizes, par Params) (estimate, error) {
	if err := z.soluble(Askotch); err != nil {
		return estimate{}, err
	}
	c := z.askotchChoice(par, z.n)
	text := "their Cholesky factors"
	if c.Rank > 0 {
		text = fmt.Sprintf("rank %d", c.Rank)
	}
	const epochs = 50 // about; what decides is the spectrum of K outside of a block
	step := backend.GramMulFlops(c.Block, z.n, z.d, z.columns) + backend.GramFlops(c.Block, c.Block, z.d, true) + backend.PotrfFlops(c.Block)
	if c.Rank > 0 {
		step += float64(powerSteps)*backend.GramMulFlops(c.Block, c.Block, z.d, 1) - backend.PotrfFlops(c.Block)
	}
	solve := epochs * step * float64(z.n) / float64(c.Block)
	return estimate{
		choice:  c,
		cost:    solve + epochs*kernelValue*float64(z.n)*float64(z.n),
		stages:  []stage{{"solve", solve + z.residualFlops()}},
		bytesOf: func(n int) int64 { return z.askotchBytes(par, n) },
		note:    fmt.Sprintf("blocks of %s, %s", count.Of(c.Block, "sample"), text),
	}, nil
}

func (z *sizes) askotchBytes(par Params, n int) int64 {
	c := z.askotchChoice(par, n)
	b, columns := c.Block, z.columns
	e := sum(elements(n, columns), elements(b, z.d), elements(b, columns))
	if c.Rank == 0 {
		e = add(e, elements(b, b))
	} else {
		// F and what making it takes, or what applying it does.
		making := max(pivotingElements(c.Rank, z.d), elements(2*c.Rank, c.Rank+columns))
		e = sum(e, elements(b, c.Rank), making, elements(b, columns), elements(b, 2))
	}
	return sum(z.place(n), z.refinedBytes(n), bytes(e))
}

// askotch solves by blocks.
func (w *work) askotch() error {
	x, err := w.placeX()
	if err != nil {
		return w.fail(err)
	}
	choice := w.plan.choice.(askotchChoice)
	if w.checkpointer, err = newCheckpointer(w, choice); err != nil {
		return err
	}
	return w.refine(x, fallback{method: Askotch, text: "askotch", make: func() (inner, error) {
		return newSketch(w, x, choice)
	}})
}

// sketch is the inner solver. With A = K + λW⁻¹, a step at the point z takes a
// block B and projects: with P ≈ A_BB
//
//	d = P⁻¹(A_B z − r_B)/L,  w ← z − I_B d
//	v ← βv + (1−β)z − γ I_B d,  z ← av + (1−a)w
//
// β = 1 − θ, γ = 1/(θν), a = 1/(1 + γν), ν = n/b: Nesterov's acceleration with the
// rate θ = √(μ/ν) (Gower, Hanzely, Richtárik, Stich 2018). L is 1 with the factor
// of A_BB, and the largest eigenvalue of P⁻¹A_BB otherwise.
//
// The authors set μ = λ. Here θ follows the rate at which the residual is seen to
// fall, 1 − θ for its square in a step, averaged over the past with weights that
// favor its end, as Dereziński, Needell, Rebrova and Yang (2025) do it for their
// own recursion: no constant is to be guessed, and the worst that a wrong θ does is
// to cost some epochs. An epoch is a random partition of the samples into blocks,
// so that the residuals of its steps together are one of the whole system, up to
// the steps between them.
//
// ν = n/b holds for blocks that are about alike. Where the residuals grow instead,
// because samples are repeated, ν is raised and the work goes on from the best
// point; without momentum at all, in the end, where a step never lengthens the
// way to the solution.
type sketch struct {
	w      *work
	choice askotchChoice
	random *rand.Rand
	source *rand.PCG // of random
	shift  []float64 // λW⁻¹, of length 1 or n

	x, z, xb, r, a backend.Matrix[float64] // n×d, n×c, b×d, b×c, b×b (nil with a rank)
	f, s, u        backend.Matrix[float64] // with a rank: F b×k, P⁻¹r b×c, two vectors b×2
	own            []backend.Matrix[float64]
	stopped        string
}

func newSketch(w *work, x backend.Matrix[float64], choice askotchChoice) (*sketch, error) {
	k := &sketch{w: w, choice: choice, x: x, shift: w.s.shift(), source: rand.NewPCG(w.par.Seed, 0x61736b6f)}
	k.random = rand.New(k.source)
	c := w.s.t
	if w.s.bordered() {
		c++
	}
	b := choice.Block
	for _, m := range []struct {
		to         *backend.Matrix[float64]
		rows, cols int
		ranked     int // 0: always; 1: with a rank only; -1: without one only
	}{
		{&k.z, w.s.n, c, 0}, {&k.xb, b, w.s.d, 0}, {&k.r, b, c, 0}, {&k.a, b, b, -1},
		{&k.f, b, choice.Rank, 1}, {&k.s, b, c, 1}, {&k.u, b, 2, 1},
	} {
		if m.ranked < 0 && choice.Rank > 0 || m.ranked > 0 && choice.Rank == 0 {
			continue
		}
		a, err := w.Mem.New(m.rows, m.cols)
		if err != nil {
			k.release()
			return nil, w.fail(err)
		}
		*m.to = a
		k.own = append(k.own, a)
	}
	return k, nil
}

func (k *sketch) direct() bool       { return false }
func (k *sketch) stopReason() string { return k.stopped }

// switchToCG implements inner: there is no way that takes more work.
func (k *sketch) switchToCG() bool { return false }
func (k *sketch) product() product { return nil }

func (k *sketch) release() {
	for _, m := range k.own {
		k.w.Mem.Free(m)
	}
	k.own = nil
}

// flat is for how many epochs no progress is taken for a plateau.
const flat = 100

const (
	// diverged is a growth of the squares of the residuals that is no chance.
	diverged = 16
	// plainBeyond is how many times the number of blocks ν may be before the
	// acceleration is given up.
	plainBeyond = 64
)

// A descent is where the epochs of one solve have come to.
type descent struct {
	r     backend.Host[float64] // what is solved for
	p     momentum
	saved backend.Host[float64] // where an epoch began of which the residuals were the lowest
	steps float64               // in an epoch
	course
}

// course is what a checkpoint keeps of a descent beside its matrices.
type course struct {
	Epoch, Since               int // epochs of this acceleration; those without progress
	Nu                         number
	Before, Rate, Best, Lowest number
	Beta, Gamma, A             number // of the momentum
	Plain                      bool
	Order                      []int // of the samples
	Random                     []byte
}

// begin returns a descent from 0.
func (k *sketch) begin(r backend.Host[float64]) *descent {
	n, c := r.Rows, r.Cols
	zero := func() backend.Host[float64] { return backend.NewHost[float64](n, c) }
	d := &descent{r: r, p: momentum{w: zero(), v: zero(), z: zero()}, saved: zero()}
	d.steps = float64((n + k.choice.Block - 1) / k.choice.Block)
	d.Nu, d.Lowest, d.Best = number(d.steps), number(math.Inf(1)), number(math.Inf(1))
	d.p.set(0.5/d.steps, d.steps)
	d.Order = make([]int, n)
	for i := range d.Order {
		d.Order[i] = i
	}
	return d
}

// goOn returns the descent of a checkpoint.
func (k *sketch) goOn(st *state) (*descent, error) {
	d := k.begin(st.rhs)
	d.p = momentum{w: st.x, v: st.r, z: st.p, plain: st.Sketch.Plain, beta: float64(st.Sketch.Beta), gamma: float64(st.Sketch.Gamma), a: float64(st.Sketch.A)}
	d.saved, d.course = st.least, *st.Sketch
	return d, k.source.UnmarshalBinary(d.Random)
}

// state is d as a checkpoint has it. It shares no memory with d.
func (k *sketch) state(d *descent) *state {
	now := d.course
	now.Beta, now.Gamma, now.A, now.Plain = number(d.p.beta), number(d.p.gamma), number(d.p.a), d.p.plain
	now.Order = slices.Clone(d.Order)
	now.Random, _ = k.source.MarshalBinary() // which never fails
	return &state{
		Sketch: &now, rhs: d.r, least: cloneHost(d.saved),
		x: cloneHost(d.p.w), r: cloneHost(d.p.v), p: cloneHost(d.p.z),
	}
}

// solve implements inner. It stops after an epoch whose residuals are at the goal.
func (k *sketch) solve(rhs backend.Matrix[float64], goal []float64) error {
	k.stopped = ""
	r := backend.NewHost[float64](rhs.Dims())
	if err := k.w.B.Download(r, rhs); err != nil {
		return k.w.fail(err)
	}
	d := k.begin(r)
	if st := k.w.checkpointer.take(); st != nil {
		var err error
		if d, err = k.goOn(st); err != nil {
			return k.w.fail(err)
		}
	}
	for {
		var whole *state
		if k.w.checkpointer != nil {
			whole = k.state(d)
		}
		if k.w.checkpointer.due() {
			if err := k.w.checkpointer.write(whole); err != nil {
				return err
			}
		}
		began := cloneHost(d.p.w)
		left, err := k.epoch(d)
		if err != nil {
			if whole != nil && k.w.Ctx.Err() != nil {
				if err := k.w.checkpointer.write(whole); err != nil {
					return err
				}
			}
			return k.w.fail(err)
		}
		k.w.res.Iters++
		worst, total := 0.0, 0.0
		for j, v := range left {
			total += v
			worst = larger(worst, ratio(math.Sqrt(v), goal[j]))
		}
		switch {
		case worst <= 1:
			return k.w.B.Upload(rhs, d.p.w)
		case d.p.plain && (math.IsNaN(total) || math.IsInf(total, 0)):
			return &accuracyError{message.Errorf("solvers: askotch: the numbers are not finite: scale the features and targets down or raise {lambda}")}
		case worst < 0.99*float64(d.Best):
			d.Best, d.Since = number(worst), 0
		default:
			d.Since++
		}
		if total < float64(d.Lowest) {
			// The epoch began where its residuals are those of.
			d.saved, d.Lowest = began, number(total)
		}
		if d.Since > flat {
			k.stopped = fmt.Sprintf("no progress in %s", count.Of(flat, "pass"))
		}
		if k.w.res.Iters >= k.w.par.maxIter() {
			k.stopped = fmt.Sprintf("the limit of %s is reached", count.Of(k.w.par.maxIter(), "iteration"))
		}
		if k.stopped != "" {
			return k.w.B.Upload(rhs, d.saved)
		}
		d.accelerate(total)
	}
}

// epoch takes a step for each block of a partition of the samples, and returns
// the squares of the residuals that the steps saw.
func (k *sketch) epoch(d *descent) (left []float64, err error) {
	n := len(d.Order)
	left = make([]float64, d.r.Cols)
	k.random.Shuffle(n, func(i, j int) { d.Order[i], d.Order[j] = d.Order[j], d.Order[i] })
	for from := 0; from < n; from += k.choice.Block {
		block := d.Order[from:min(from+k.choice.Block, n)]
		step, err := k.project(block, d.r, d.p.z, left)
		if err != nil {
			return nil, err
		}
		d.p.step(block, step)
	}
	return left, nil
}

// accelerate chooses the momentum of the next epoch after one with residuals of
// that sum of squares.
func (d *descent) accelerate(total float64) {
	d.Epoch++
	nu := float64(d.Nu)
	if !d.p.plain && !(total < diverged*float64(d.Lowest)) {
		nu *= 4
		d.p.restart(d.saved)
		d.p.plain = nu > plainBeyond*d.steps
		d.p.set(0.5/nu, nu)
		d.Nu, d.Before, d.Epoch = number(nu), 0, 0
		return
	}
	if d.Epoch > 1 && !d.p.plain {
		// Weights e^ln², as in the source: the last half of the epochs counts.
		q, e := math.Log(total/float64(d.Before)), float64(d.Epoch)
		old := math.Exp(math.Log(e)*math.Log(e) - math.Log(e+1)*math.Log(e+1))
		if d.Epoch == 2 {
			old = 0
		}
		d.Rate = number(old*float64(d.Rate) + (1-old)*q)
		d.p.set(-math.Expm1(min(float64(d.Rate), -1e-9)/d.steps), nu)
	}
	d.Before = number(total)
}

// momentum is the three sequences of the acceleration, on the host.
type momentum struct {
	w, v, z        backend.Host[float64]
	beta, gamma, a float64
	plain          bool // none: all three are w
}

// restart begins anew from w.
func (p *momentum) restart(w backend.Host[float64]) {
	p.w, p.v, p.z = cloneHost(w), cloneHost(w), cloneHost(w)
}

// set takes the rate θ for its constants; μν ≤ 1 bounds it.
func (p *momentum) set(theta, nu float64) {
	theta = max(1e-6, min(theta, 1/nu))
	p.beta, p.gamma = 1-theta, 1/(theta*nu)
	p.a = 1 / (1 + p.gamma*nu)
}

// step takes the correction d of the samples in block.
func (p *momentum) step(block []int, d backend.Host[float64]) {
	if p.plain {
		for q, i := range block {
			w, z := p.w.Row(i), p.z.Row(i)
			for j, x := range d.Row(q) {
				w[j] -= x
				z[j] = w[j]
			}
		}
		return
	}
	for i, v := range p.v.Data {
		p.w.Data[i] = p.z.Data[i]
		p.v.Data[i] = p.beta*v + (1-p.beta)*p.z.Data[i]
	}
	for q, i := range block {
		w, v := p.w.Row(i), p.v.Row(i)
		for j, x := range d.Row(q) {
			w[j] -= x
			v[j] -= p.gamma * x
		}
	}
	for i, v := range p.v.Data {
		p.z.Data[i] = p.a*v + (1-p.a)*p.w.Data[i]
	}
}
