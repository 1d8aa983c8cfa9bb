package bench

import (
	"context"
	"fmt"
	"slices"

	"github.com/dustin/go-humanize"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/bench/peer"
	"github.com/mercer-go/mercer/internal/bench/pypeer"
	"github.com/mercer-go/mercer/internal/run"
)

// openDevices opens devices by name, each device once. After an error, it also returns the devices that are open.
func openDevices(names []string, c backend.Config) (list []backend.Device, err error) {
	for _, name := range names {
		d, err := backend.Open(name, c)
		if err != nil {
			return list, err
		}
		if slices.ContainsFunc(list, sameDevice(d)) {
			d.Close()
			continue
		}
		list = append(list, d)
	}
	return list, nil
}

func sameDevice(d backend.Device) func(backend.Device) bool {
	return func(o backend.Device) bool { return o.Info().Device == d.Info().Device }
}

type setup struct {
	Benchmark
	ctx           context.Context
	devices       []backend.Device
	peers         []Peer
	judges        backend.Device
	methods       []string      // remarks for the report: the solver that auto has chosen in each case
	timeEstimates timeEstimates // estimates by implementation and operation
}

// open opens the devices, the device that checks results, and the libraries. The caller must close l, even on errors.
func (b Benchmark) open(ctx context.Context) (l *setup, err error) {
	l = &setup{Benchmark: b, ctx: ctx, timeEstimates: timeEstimates{}}
	if l.judges, err = backend.Open("cpu", backend.Config{Memory: b.Memory}); err != nil {
		return l, err
	}
	if l.devices, err = openDevices(b.Devices, backend.Config{Threads: b.Threads[0], Memory: b.Memory}); err != nil {
		return l, err
	}
	l.peers = b.openPeers(ctx)
	return l, ctx.Err()
}

// openPeers opens the libraries, each Python library in its own process. A Peer holds the reason of a failure.
func (b Benchmark) openPeers(ctx context.Context) (peers []Peer) {
	var finder *pypeer.Finder
	for _, name := range b.Peers {
		p, err := Peer{Name: name}, error(nil)
		if slices.Contains(peer.Names(), name) {
			p.Library, err = peer.Open(name, b.Places)
		} else {
			if finder == nil {
				finder = pypeer.NewFinder(ctx, b.Pythons)
			}
			p.Python, err = finder.Open(ctx, name, b.Threads[0])
		}
		if err != nil {
			p.Missing = err.Error()
		}
		peers = append(peers, p)
	}
	return peers
}

func ownImplementation(d backend.Device) Implementation {
	i := d.Info()
	return Implementation{Name: ownName(d), Kind: OwnKind, Device: i.Device, Threads: i.Threads, Detail: i.Instruction + ", " + i.Processor}
}

// implementation returns the Implementation of a library. A threads of 0 means that the number is unknown.
func (p Peer) implementation(threads int) Implementation {
	e := Implementation{Name: p.Name, Kind: PeerKind, Missing: p.Missing, Threads: threads}
	switch {
	case p.Python != nil:
		e.Detail, e.Path = p.Python.Detail, p.Python.Path
	case p.Library != nil:
		e.Detail, e.Path = p.Library.Detail, p.Library.Path
	}
	return e
}

// ceilingName returns the name of the Implementation that measures the ceiling of the device, or "".
func ceilingName(d backend.Device) string {
	if _, ok := d.(ceiling); !ok {
		return ""
	}
	return ceilingPrefix + d.Info().Device
}

func ceilingImplementation(d backend.Device) Implementation {
	return Implementation{
		Name: ceilingName(d), Kind: CeilingKind, Device: d.Info().Device,
		Detail: "fused multiply-adds in registers on one core, times the threads",
	}
}

// exceeds returns the reason why matrices of the given size do not fit on a device, or "" if they fit.
func exceeds(bytes int64, d backend.Device) string {
	memory := d.Info().Memory
	if bytes <= memory {
		return ""
	}
	return fmt.Sprintf("needs %s of memory, but only %s may be used", humanize.IBytes(uint64(bytes)), humanize.IBytes(uint64(memory)))
}

// refuse returns an error if memory is less than bytes(largest), the memory of a benchmark's
// matrices at its largest size. size is the text before the number in the message, such as "n =".
func refuse(kind, size, matrices string, largest int, memory int64, bytes func(n int) int64) error {
	if memory <= 0 || bytes(largest) <= memory {
		return nil
	}
	return fmt.Errorf("bench: %s: %s %d needs %d bytes for %s, but the memory has %d: %s %d would fit",
		kind, size, largest, bytes(largest), matrices, memory, size, run.Largest(largest, bytes, memory))
}

func closeAll(devices []backend.Device) {
	for _, d := range devices {
		d.Close()
	}
}

func (l *setup) close() {
	closeAll(l.devices)
	if l.judges != nil {
		l.judges.Close()
	}
	for _, p := range l.peers {
		if p.Python != nil {
			p.Python.Close()
		}
	}
}
