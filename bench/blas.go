package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/bench/peer"
)

// BLASKind is the kind of BLAS's Results.
const BLASKind = "blas"

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

// The names of the ceilings among a Result's implementations.
const (
	ceilingPrefix = "ceiling " // and a device
	memoryCeiling = "ceiling memory"
)

// ceiling is what a device offers that can run multiply-adds in registers: one
// core, at least so many operations, the number made.
type ceiling interface {
	Ceiling(single bool, flops float64) float64
}

// blasBench is a BLAS at work: the devices that it opened.
type blasBench struct {
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
	c := blasBench{BLAS: b, devices: map[int][]backend.Device{}}
	defer c.close()
	if err := c.open(); err != nil {
		return nil, err
	}
	return b.Runner.Run(ctx, BLASKind, c.implementations(), c.tasks())
}

// fill puts in what was left out, and checks the rest.
func (b *BLAS) fill() error {
	b.Routines = orElse(b.Routines, []string{"gemm", "syrk", "trsm", "potrf"})
	b.Precisions = orElse(b.Precisions, precisions())
	b.Threads = orElse(b.Threads, slices.Compact([]int{1, runtime.GOMAXPROCS(0)}))
	b.Sizes = orElse(b.Sizes, []int{256, 512, 1024, 2048, 4096})
	b.Devices = orElse(b.Devices, []string{""})
	if err := cmp.Or(checkNames(BLASKind, "routine", b.Routines, Routines()), checkNames(BLASKind, "precision", b.Precisions, precisions()), checkPositive(BLASKind, "sizes and threads", b.Sizes, b.Threads)); err != nil {
		return err
	}
	// In rising order and once each, so that the last is the largest.
	b.Sizes = slices.Compact(slices.Sorted(slices.Values(b.Sizes)))
	b.Threads = slices.Compact(slices.Sorted(slices.Values(b.Threads)))
	return nil
}

func (c *blasBench) close() {
	for _, list := range c.devices {
		closeAll(list)
	}
	closeAll(c.ceilings)
}

// open opens every device at every number of threads, and those whose ceilings
// are timed: the best of the processor, and the ones that compete.
func (c *blasBench) open() error {
	for _, t := range c.Threads {
		var err error
		if c.devices[t], err = openDevices(c.Devices, backend.Config{Threads: t, Memory: c.Memory}); err != nil {
			return err
		}
		for _, d := range c.devices[t] {
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
		if _, ok := d.(ceiling); !ok || slices.ContainsFunc(c.ceilings, sameDevice(d)) {
			d.Close()
			continue
		}
		c.ceilings = append(c.ceilings, d)
	}
	return nil
}

// fits refuses operands that memory does not hold: there are four matrices at
// once, the result and the reference's among them.
func (c *blasBench) fits(memory int64) error {
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

func (c *blasBench) implementations() []Implementation {
	var list []Implementation
	for _, d := range c.devices[c.Threads[0]] {
		list = append(list, Implementation{Name: ownName(d), Kind: OwnKind, Detail: d.Info().Instruction + ", " + d.Info().Processor})
	}
	for _, p := range c.Peers {
		e := Implementation{Name: p.Name, Kind: PeerKind, Missing: p.Missing}
		if p.Library != nil {
			e.Detail, e.Path = p.Library.Detail, p.Library.Path
		}
		list = append(list, e)
	}
	for _, d := range c.ceilings {
		list = append(list, ceilingImplementation(d))
	}
	if slices.ContainsFunc(routines, func(r routine) bool { return r.vector && slices.Contains(c.Routines, r.name) }) {
		list = append(list, Implementation{
			Name: memoryCeiling, Kind: CeilingKind,
			Detail: fmt.Sprintf("the matrix at the rate of copying %d MiB, bytes read and written counted; one that stays in a cache can be faster", copied>>20),
		})
	}
	return list
}

// tasks lists the cases: routine, precision, threads, n, the last fastest.
func (c *blasBench) tasks() []Task {
	var list []Task
	for _, r := range routines {
		if !slices.Contains(c.Routines, r.name) {
			continue
		}
		for _, precision := range chosen(precisions(), c.Precisions) {
			for _, threads := range c.Threads {
				for _, n := range c.Sizes {
					list = append(list, Task{
						Case: Case{
							{"routine", r.name}, {"precision", precision},
							{"threads", strconv.Itoa(threads)}, {"n", strconv.Itoa(n)},
						},
						Weight: r.flops(n),
						Start: func(ctx context.Context) ([]Entry, error) {
							if precision == "float32" {
								return entries(ctx, c, r, threads, n, backend.Device.F32, func(l *peer.Library) peer.Routines[float32] { return l.F32 })
							}
							return entries(ctx, c, r, threads, n, backend.Device.F64, func(l *peer.Library) peer.Routines[float64] { return l.F64 })
						},
					})
				}
			}
		}
	}
	return list
}
