package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/bench/peer"
	"github.com/mercer-go/mercer/internal/bench/pypeer"
)

// BLASKind measures the routines of BLAS and LAPACK that the solvers use. It also measures the rate of multiply-adds in
// registers, which is the ceiling of the processor.
const BLASKind = "blas"

// Peer holds an open library, or the reason why the library could not be opened.
type Peer struct {
	Name    string
	Library *peer.Library   // the library, opened in this process
	Python  *pypeer.Process // the library, opened in a process of its own
	Missing string          // the reason why the library could not be opened
}

// A Result has ceilings among its implementations. These are their names.
const (
	ceilingPrefix = "ceiling " // followed by the name of a device
	memoryCeiling = "ceiling memory"
)

// ceiling is a device that can run multiply-adds on registers only. The method Ceiling runs at least flops
// operations on one core, and returns the number of operations that it has run.
type ceiling interface {
	Ceiling(single bool, flops float64) float64
}

// blasBench is the state of a blas benchmark with its open devices and libraries.
type blasBench struct {
	Benchmark
	peers    []Peer
	devices  map[int][]backend.Device // open devices by number of threads, in the order of Devices
	ceilings []backend.Device         // devices whose ceilings are measured, the best device of the processor first
	memory   [2][]byte                // source and destination of the copy; empty before the first copy
}

func runBLAS(ctx context.Context, b Benchmark) (*Result, error) {
	return b.runBLASWith(ctx, b.openPeers(ctx))
}

// runBLASWith runs a blas benchmark with the given libraries, which are already open.
func (b Benchmark) runBLASWith(ctx context.Context, peers []Peer) (*Result, error) {
	c := blasBench{Benchmark: b, peers: peers, devices: map[int][]backend.Device{}}
	defer c.close()
	if err := c.open(); err != nil {
		return nil, err
	}
	return b.Runner.Run(ctx, BLASKind, c.implementations(), c.tasks(c.start))
}

func (c *blasBench) close() {
	for _, list := range c.devices {
		closeAll(list)
	}
	closeAll(c.ceilings)
}

// open opens every device with every number of threads, and the devices whose ceilings are measured.
func (c *blasBench) open() error {
	n, size := slices.Max(c.Sizes), 4
	if slices.Contains(c.Precisions, "float64") {
		size = 8
	}
	// A case allocates four matrices: up to two operands, the result and the reference result.
	bytes := func(n int) int64 { return 4 * int64(size) * int64(n) * int64(n) }
	for _, t := range c.Threads {
		var err error
		if c.devices[t], err = openDevices(c.Devices, backend.Config{Threads: t, Memory: c.Memory}); err != nil {
			return err
		}
		for _, d := range c.devices[t] {
			if err := refuse(BLASKind, "n =", "four matrices", n, d.Info().Memory, bytes); err != nil {
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
			continue // the program may have been built without package cpu
		}
		if err != nil {
			return err
		}
		if ceilingName(d) == "" || slices.ContainsFunc(c.ceilings, sameDevice(d)) {
			d.Close()
			continue
		}
		c.ceilings = append(c.ceilings, d)
	}
	return nil
}

func ownName(d backend.Device) string { return "mercer " + d.Info().Device }

func (c *blasBench) implementations() []Implementation {
	var list []Implementation
	for _, d := range c.devices[c.Threads[0]] {
		list = append(list, Implementation{Name: ownName(d), Kind: OwnKind, Detail: d.Info().Instruction + ", " + d.Info().Processor})
	}
	for _, p := range c.peers {
		list = append(list, p.implementation(0))
	}
	for _, d := range c.ceilings {
		list = append(list, ceilingImplementation(d))
	}
	if slices.ContainsFunc(routines, func(r routine) bool { return r.vector && slices.Contains(c.Names, r.name) }) {
		list = append(list, Implementation{
			Name: memoryCeiling, Kind: CeilingKind,
			Detail: fmt.Sprintf("the matrix at the rate of copying %d MiB, bytes read and written counted; one that stays in a cache can be faster", copyBytes>>20),
		})
	}
	return list
}

func (c *blasBench) start(ctx context.Context, name, precision string, threads, n int) ([]Entry, error) {
	r := routines[slices.IndexFunc(routines, func(r routine) bool { return r.name == name })]
	if precision == "float32" {
		return entries(ctx, c, r, threads, n, backend.Device.F32, func(l *peer.Library) peer.Routines[float32] { return l.F32 })
	}
	return entries(ctx, c, r, threads, n, backend.Device.F64, func(l *peer.Library) peer.Routines[float64] { return l.F64 })
}
