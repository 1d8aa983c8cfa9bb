package cpu

import (
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
	"github.com/mercer-go/mercer/internal/check"
	"github.com/mercer-go/mercer/internal/flop"
)

func init() { backend.Register(driver{}, 0) }

// driver offers one device for each tier.
type driver struct{}

func (driver) Name() string { return "cpu" }

func (driver) Candidates() []backend.Candidate {
	var list []backend.Candidate
	memory := budget() // read only once, because reading the limits of the system takes 0.3 ms
	for _, t := range ukr.Tiers() {
		c := backend.Candidate{
			Info: backend.Info{
				Device:      "cpu/" + t.Name,
				Processor:   processor(),
				Instruction: t.Name,
				Threads:     runtime.GOMAXPROCS(0),
				Memory:      memory,
			},
			Reproducible: t.Reproducible != nil,
		}
		if missing := t.Missing(); missing != "" {
			c.Err = fmt.Errorf("the processor or the operating system lacks %s", missing)
		}
		list = append(list, c)
	}
	return list
}

func (driver) Open(name string, c backend.Config) (backend.Device, error) {
	return openWith(name, c, cacheSizes{})
}

func unknownTier(name string) error {
	return fmt.Errorf("%w: cpu: no tier is called %q", backend.ErrUnavailable, name)
}

func open(t *ukr.Tier, c backend.Config, caches cacheSizes) (*device, error) {
	if missing := t.Missing(); missing != "" {
		return nil, fmt.Errorf("%w: cpu/%s: the processor or the operating system lacks %s", backend.ErrUnavailable, t.Name, missing)
	}
	if c.Reproducible {
		if t.Reproducible == nil {
			return nil, fmt.Errorf("%w: cpu/%s: its results differ from those of other processors by rounding, but reproducible results were requested", backend.ErrUnavailable, t.Name)
		}
		t = t.Reproducible()
	}
	d := newDevice(t, c.Threads, caches)
	d.reproducible = c.Reproducible
	d.memory.limit = c.Memory
	if d.threads == 0 {
		d.threads = runtime.GOMAXPROCS(0)
	}
	if d.memory.limit == 0 {
		d.memory.limit = budget()
	}
	return d, nil
}

// newDevice returns a device with the memory limit 0: the caller sets the limit before it makes matrices.
func newDevice(t *ukr.Tier, threads int, caches cacheSizes) *device {
	caches = caches.orReported()
	d := &device{tier: t, threads: threads, caches: caches}
	d.memory.name = "cpu/" + t.Name
	d.f32 = newEngine(d, &t.F32, caches)
	d.f64 = newEngine(d, &t.F64, caches)
	return d
}

// device is a processor with the micro-kernels of one tier.
type device struct {
	tier         *ukr.Tier
	threads      int // 0 means GOMAXPROCS at the time of each call
	caches       cacheSizes
	memory       memory
	closed       atomic.Bool
	reproducible bool
	f32          *engine[float32]
	f64          *engine[float64]
}

func (d *device) Info() backend.Info {
	return backend.Info{
		Device:       "cpu/" + d.tier.Name,
		Processor:    processor(),
		Instruction:  d.tier.Name,
		Threads:      d.workers(),
		Memory:       d.memory.limit,
		Reproducible: d.reproducible,
	}
}

// workers returns the number of goroutines that share the work of a call.
func (d *device) workers() int {
	if d.threads > 0 {
		return d.threads
	}
	return runtime.GOMAXPROCS(0)
}

func (d *device) F32() backend.Backend[float32] { return &queue[float32]{engine: d.f32} }
func (d *device) F64() backend.Backend[float64] { return &queue[float64]{engine: d.f64} }

func (d *device) Narrow(dst backend.Matrix[float32], src backend.Matrix[float64]) {
	check.SameDims("Narrow", dst, src)
	to, from := d.f32.asMatrix("Narrow", dst), d.f64.asMatrix("Narrow", src)
	convert(d, to, from)
}

func (d *device) Widen(dst backend.Matrix[float64], src backend.Matrix[float32]) {
	check.SameDims("Widen", dst, src)
	to, from := d.f64.asMatrix("Widen", dst), d.f32.asMatrix("Widen", src)
	convert(d, to, from)
}

// NarrowPacked implements backend.PackedNarrower.
func (d *device) NarrowPacked(dst backend.Packed[float32], src backend.Packed[float64]) {
	check.NarrowPacked(dst, src)
	to := (&queue[float32]{engine: d.f32}).asPacked("NarrowPacked", dst)
	from := (&queue[float64]{engine: d.f64}).asPacked("NarrowPacked", src)
	n, n1 := to.Order(), to.n1
	if n1 != from.n1 {
		panic("cpu: NarrowPacked: the layouts differ, because one matrix is a leading part of a larger matrix: round the larger matrix instead")
	}
	parallelRanges(d.workers(), n, rowGrain(n1), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			rounded(to.rect.row(1 + i)[:min(i+1, n1)], from.rect.row(1+i))
			if i < to.n2 {
				rounded(to.rect.row(i)[i:to.n2], from.rect.row(i)[i:])
			}
		}
	})
}

// convert sets the matrix `to` to the elements of `from`, rounded to the type D.
func convert[D, S backend.Float](d *device, to *matrix[D], from *matrix[S]) {
	parallelRanges(d.workers(), from.rows, rowGrain(from.cols), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			rounded(to.row(i), from.row(i))
		}
	})
}

func rounded[D, S backend.Float](to []D, from []S) {
	for j, v := range from[:len(to)] {
		to[j] = D(v)
	}
}

func (d *device) InUse() (inUse, peak int64) { return d.memory.inUse() }

// Workspace returns the largest size in bytes of the packed operands. The size depends on the caches, not on the
// matrices. InUse counts neither this workspace nor the rounded rows of a factor of reduced precision, 576 bytes
// per row.
func (d *device) Workspace() int64 {
	b := d.f64.block
	return 8 * int64(b.kc) * (int64(b.nc) + int64(d.workers()*b.mc))
}

// Rates implements flop.Rated. It assumes that in a factorization of reduced precision, 0.8 of the operations run
// d.tier.Pairs times as fast as in float32, and 0.2 run at the rate of float32.
func (d *device) Rates() flop.Rates {
	r := flop.Rates{Single: 2, Values: 1.5, Products: d.tier.Products}
	if d.tier.Pairs > 0 {
		r.Reduced = 1 / (0.2/r.Single + 0.8/(r.Single*d.tier.Pairs))
	}
	return r
}

// PackedBytes returns the size in bytes of the packed operands of Gram and GramMul for n points with d features,
// beyond Workspace. Each block of points is packed in panels of MR points and in panels of NR points.
func (d *device) PackedBytes(n, features int) int64 {
	u, bytes := d.f64.ukr, int64(0)
	for _, width := range []int{u.MR, u.NR} {
		rows := panels(min(n, gramBlock(features, 8)), width) * width
		bytes += 8 * int64(rows) * (int64(features) + 1)
	}
	return max(bytes-d.Workspace(), 0)
}

// Sync returns nil: every method completes its work before it returns.
func (d *device) Sync() error { return nil }

// Close makes every later call of New fail; the garbage collector frees the memory.
func (d *device) Close() error {
	d.closed.Store(true)
	return nil
}
