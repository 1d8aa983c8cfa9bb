package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/bench/peer"
)

// BLAS measures level 3, and what else of the BLAS and LAPACK the solvers stand
// on: Mercer's devices against other libraries and against the ceiling of the
// processor, which is timed in every case beside them.
type BLAS struct {
	Routines   []string // of Routines(); nil: gemm, syrk, trsm, potrf
	Precisions []string // "float64", "float32"; nil: both
	Threads    []int    // nil: 1 and all there are
	Sizes      []int    // nil: 256, 512, 1024, 2048, 4096
	Devices    []string // names for backend.Open; nil: the best there is
	Peers      []Peer
	Memory     int64 // bytes that the operands may take; 0 is 80 % of what the process may use
	Runner     Runner
}

// Peer is a library that was opened, or the reason why it was not.
type Peer struct {
	Name    string
	Library *peer.Library // nil: missing
	Missing string
}

// OpenPeers opens libraries by name, looking in places first, and never fails:
// what is missing is named so. The second result is the environment with which
// the process should be started again, nil in most cases: see
// peer.Library.Wants.
func OpenPeers(names, places []string) (peers []Peer, wants []string) {
	for _, name := range names {
		l, err := peer.Open(name, places)
		p := Peer{Name: name, Library: l}
		if err != nil {
			p.Missing = err.Error()
		} else {
			wants = append(wants, l.Wants...)
		}
		peers = append(peers, p)
	}
	return peers, wants
}

// The names of the ceilings among a Result's entrants.
const (
	ceilingPrefix = "ceiling " // and a device
	memoryCeiling = "ceiling memory"
)

// ceiling is what a device offers that can run multiply-adds in registers: one
// core, at least so many operations, the number made.
type ceiling interface {
	Ceiling(single bool, flops float64) float64
}

// contest is a BLAS at work: the devices that it opened.
type contest struct {
	BLAS
	devices  map[int][]backend.Device // by threads, in the order of BLAS.Devices
	ceilings []backend.Device         // the best of this processor first
	memory   [2][]byte                // from and to, made when it is first copied
}

// Run measures. It fails when a device cannot be opened, when a library's
// result is wrong, and when ctx is done.
func (b BLAS) Run(ctx context.Context) (*Result, error) {
	if err := b.fill(); err != nil {
		return nil, err
	}
	c := contest{BLAS: b, devices: map[int][]backend.Device{}}
	defer c.close()
	if err := c.open(); err != nil {
		return nil, err
	}
	r := &Result{
		Schema:   Schema,
		Kind:     "blas",
		Started:  time.Now(),
		Machine:  readMachine(),
		Settings: b.Runner.Settings(),
		Entrants: c.entrants(),
	}
	before, known := readUsage()
	cells, err := b.Runner.Measure(ctx, c.tasks())
	if err != nil {
		return nil, err
	}
	r.Cells, r.Seconds = cells, time.Since(r.Started).Seconds()
	if after, ok := readUsage(); known && ok {
		r.Machine.Noise = noise(before, after)
	}
	return r, nil
}

// fill puts in what was left out, and checks the rest.
func (b *BLAS) fill() error {
	if b.Routines == nil {
		b.Routines = []string{"gemm", "syrk", "trsm", "potrf"}
	}
	if b.Precisions == nil {
		b.Precisions = []string{"float64", "float32"}
	}
	if b.Threads == nil {
		b.Threads = slices.Compact([]int{1, runtime.GOMAXPROCS(0)})
	}
	if b.Sizes == nil {
		b.Sizes = []int{256, 512, 1024, 2048, 4096}
	}
	if b.Devices == nil {
		b.Devices = []string{""}
	}
	for _, name := range b.Routines {
		if !slices.Contains(Routines(), name) {
			return fmt.Errorf("bench: blas: no routine is called %q; there are: %v", name, Routines())
		}
	}
	for _, name := range b.Precisions {
		if name != "float64" && name != "float32" {
			return fmt.Errorf("bench: blas: no precision is called %q; there are: float64, float32", name)
		}
	}
	for _, n := range append(slices.Clone(b.Sizes), b.Threads...) {
		if n < 1 {
			return fmt.Errorf("bench: blas: sizes and threads must be ≥ 1, got %d", n)
		}
	}
	return nil
}

func (c *contest) close() {
	for _, list := range c.devices {
		for _, d := range list {
			d.Close()
		}
	}
	for _, d := range c.ceilings {
		d.Close()
	}
}

// open opens every device at every number of threads, and those whose ceilings
// are timed: the best of the processor, and the ones that compete.
func (c *contest) open() error {
	for _, t := range c.Threads {
		for _, name := range c.Devices {
			d, err := backend.Open(name, backend.Config{Threads: t, Memory: c.Memory})
			if err != nil {
				return err
			}
			c.devices[t] = append(c.devices[t], d)
			if err := c.fits(d.Info().Memory); err != nil {
				return err
			}
		}
	}
	names := []string{"cpu"}
	for _, d := range c.devices[c.Threads[0]] {
		names = append(names, d.Info().Device)
	}
	for _, name := range names {
		d, err := backend.Open(name, backend.Config{Threads: 1})
		if errors.Is(err, backend.ErrUnavailable) {
			continue // there is no package cpu in this program
		}
		if err != nil {
			return err
		}
		known := func(o backend.Device) bool { return o.Info().Device == d.Info().Device }
		if _, ok := d.(ceiling); !ok || slices.ContainsFunc(c.ceilings, known) {
			d.Close()
			continue
		}
		c.ceilings = append(c.ceilings, d)
	}
	return nil
}

// fits refuses operands that memory does not hold: there are four matrices at
// once, the result and the reference's among them.
func (c *contest) fits(memory int64) error {
	size := 4.
	if slices.Contains(c.Precisions, "float64") {
		size = 8
	}
	n := float64(slices.Max(c.Sizes))
	if needs := 4 * size * n * n; memory > 0 && needs > float64(memory) {
		return fmt.Errorf("bench: blas: n = %.0f takes %.0f bytes for four matrices, there are %d: n = %.0f would fit",
			n, needs, memory, math.Floor(math.Sqrt(float64(memory)/(4*size))))
	}
	return nil
}

func ownName(d backend.Device) string { return "mercer " + d.Info().Device }

func (c *contest) entrants() []Entrant {
	var list []Entrant
	for _, d := range c.devices[c.Threads[0]] {
		list = append(list, Entrant{Name: ownName(d), Kind: OwnKind, Detail: d.Info().Instruction + ", " + d.Info().Processor})
	}
	for _, p := range c.Peers {
		e := Entrant{Name: p.Name, Kind: PeerKind, Missing: p.Missing}
		if p.Library != nil {
			e.Detail, e.Path = p.Library.Detail, p.Library.Path
		}
		list = append(list, e)
	}
	for _, d := range c.ceilings {
		list = append(list, Entrant{
			Name: ceilingPrefix + d.Info().Device, Kind: CeilingKind,
			Detail: "fused multiply-adds in registers on one core, times the threads",
		})
	}
	if slices.ContainsFunc(routines, func(r routine) bool { return r.vector && slices.Contains(c.Routines, r.name) }) {
		list = append(list, Entrant{
			Name: memoryCeiling, Kind: CeilingKind,
			Detail: fmt.Sprintf("the matrix at the rate of copying %d MiB, bytes read and written counted", copied>>20),
		})
	}
	return list
}

// tasks lists the cases: routine, precision, threads, n, the last fastest.
func (c *contest) tasks() []Task {
	var list []Task
	for _, r := range routines {
		if !slices.Contains(c.Routines, r.name) {
			continue
		}
		for _, precision := range c.Precisions {
			for _, threads := range c.Threads {
				for _, n := range c.Sizes {
					start := func(ctx context.Context) ([]Entry, error) {
						return entries(ctx, c, r, threads, n, backend.Device.F64, func(l *peer.Library) peer.Routines[float64] { return l.F64 })
					}
					if precision == "float32" {
						start = func(ctx context.Context) ([]Entry, error) {
							return entries(ctx, c, r, threads, n, backend.Device.F32, func(l *peer.Library) peer.Routines[float32] { return l.F32 })
						}
					}
					list = append(list, Task{
						Case: Case{
							{"routine", r.name}, {"precision", precision},
							{"threads", strconv.Itoa(threads)}, {"n", strconv.Itoa(n)},
						},
						Weight: r.flops(n),
						Start:  start,
					})
				}
			}
		}
	}
	return list
}

// entries makes the entries of a case. The first device's result is the
// reference of all others.
func entries[T backend.Float](ctx context.Context, c *contest, r routine, threads, n int,
	queue func(backend.Device) backend.Backend[T], of func(*peer.Library) peer.Routines[T]) ([]Entry, error) {
	runtime.GC() // what the last case held
	p := newProblem[T](r, n)
	size := int(unsafe.Sizeof(T(0)))
	limiter := func(d backend.Device) string {
		if _, ok := d.(ceiling); !ok {
			return ""
		}
		if r.vector {
			return memoryCeiling
		}
		return ceilingPrefix + d.Info().Device
	}
	var list []Entry
	for _, d := range c.devices[threads] {
		e, err := deviceEntry(queue(d).With(ctx, nil), p)
		if err != nil {
			return nil, err
		}
		e.Entrant, e.Limiter, e.Work = ownName(d), limiter(d), r.flops(n)
		list = append(list, e)
	}
	for _, l := range c.Peers {
		prepare := p.preparation()
		e := Entry{Entrant: l.Name, Work: r.flops(n), Check: p.compare, Before: func() error { prepare(); return nil }}
		if len(c.ceilings) > 0 {
			e.Limiter = limiter(c.ceilings[0])
		}
		if l.Library == nil {
			e.Reason = l.Missing
		} else if e.Run = p.library(of(l.Library)); e.Run == nil {
			e.Reason = fmt.Sprintf("has no %s in float%d", r.name, 8*size)
		} else {
			e.Enter = func() func() { return l.Library.Threads(threads) }
		}
		list = append(list, e)
	}
	if r.vector {
		return append(list, c.memoryEntry(r.flops(n), float64(size*n)*float64(n+1)/2, threads)), nil
	}
	for _, d := range c.ceilings {
		list = append(list, ceilingEntry(d, size == 4, threads))
	}
	return list, nil
}

// deviceEntry puts p's operands on a device: where they are if it can use Go
// memory, copied there before every run otherwise.
func deviceEntry[T backend.Float](q backend.Backend[T], p *problem[T]) (Entry, error) {
	var e Entry
	var failure error
	place := func(h backend.Host[T]) backend.Matrix[T] {
		m, err := backend.Place(q, h)
		failure = errors.Join(failure, err)
		return m
	}
	a, b, c := place(p.a), place(p.b), place(p.c)
	if failure != nil {
		return e, failure
	}
	_, shared := q.(backend.Wrapper[T])
	e.Run = p.device(q, a, b, c)
	prepare := p.preparation()
	e.Before = func() error {
		prepare()
		if shared || !p.inPlace {
			return nil
		}
		return q.Upload(c, p.c)
	}
	e.Check = func() *Check {
		if !shared {
			if err := q.Download(p.c, c); err != nil {
				return &Check{Difference: math.Inf(1)} // fails, and Run did not
			}
		}
		if p.want.Data == nil {
			p.adopt()
			return nil
		}
		return p.compare()
	}
	e.Close = func() {
		for _, m := range []backend.Matrix[T]{a, b, c} {
			m.Free()
		}
	}
	return e, nil
}

// ceilingEntry times about a millisecond of multiply-adds on one core, and
// counts them once for each thread.
func ceilingEntry(d backend.Device, single bool, threads int) Entry {
	const flops = 5e7
	run := func() float64 { return d.(ceiling).Ceiling(single, flops) }
	return Entry{
		Entrant: ceilingPrefix + d.Info().Device,
		Work:    run() * float64(threads),
		Run:     func() error { run(); return nil },
	}
}

// copied is how many bytes a copy of the memory's ceiling reads: more than any
// cache holds.
const copied = 128 << 20

// memoryEntry times a copy by threads goroutines. Its work is that of a routine
// that has to move bytes for flops, at the same rate.
func (c *contest) memoryEntry(flops, bytes float64, threads int) Entry {
	if c.memory[0] == nil {
		c.memory = [2][]byte{make([]byte, copied), make([]byte, copied)}
	}
	from, to, part := c.memory[0], c.memory[1], copied/threads
	return Entry{
		Entrant: memoryCeiling,
		Work:    flops * 2 * float64(part*threads) / bytes,
		Run: func() error {
			var wg sync.WaitGroup
			for i := range threads {
				wg.Go(func() { copy(to[i*part:(i+1)*part], from[i*part:(i+1)*part]) })
			}
			wg.Wait()
			return nil
		},
	}
}
