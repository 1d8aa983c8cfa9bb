package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/bench/peer"
	"github.com/mercer-go/mercer/bench/pypeer"
)

// openDevices opens devices by name, each once, whatever names it has. On a failure it
// returns those that were opened before as well.
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

// precisions lists those that can be measured.
func precisions() []string { return []string{"float64", "float32"} }

// checkNames refuses names that are not known.
func checkNames(kind, what string, given, known []string) error {
	for _, name := range given {
		if !slices.Contains(known, name) {
			return fmt.Errorf("bench: %s: no %s is called %q; there are: %s", kind, what, name, strings.Join(known, ", "))
		}
	}
	return nil
}

// checkPositive refuses numbers below 1.
func checkPositive(kind, what string, lists ...[]int) error {
	for _, n := range slices.Concat(lists...) {
		if n < 1 {
			return fmt.Errorf("bench: %s: %s must be ≥ 1, got %d", kind, what, n)
		}
	}
	return nil
}

// orElse is list, or other where that is nil.
func orElse[T any](list, other []T) []T {
	if list == nil {
		return other
	}
	return list
}

// chosen lists the known names that are among the given ones.
func chosen(known, given []string) []string {
	return slices.DeleteFunc(slices.Clone(known), func(name string) bool { return !slices.Contains(given, name) })
}

// setup is what the measurements of fits work with.
type setup struct {
	ctx     context.Context
	devices []backend.Device
	peers   []fitPeer
	judges  backend.Device
	judge   func(*synthetic) judge
	memory  int64    // bytes for matrices; 0 is 80 % of what the process may use
	methods []string // what the automatic choice was, once for each case
}

// open opens the devices, the best processor for the judge, and the libraries by name
// in the processes of interpreters; gonum is in this one.
func (l *setup) open(devices []string, c backend.Config, libraries, pythons []string) (err error) {
	l.memory = c.Memory
	if l.judges, l.judge, err = newJudge(l.ctx, c.Memory); err != nil {
		return err
	}
	if l.devices, err = openDevices(devices, c); err != nil {
		return err
	}
	var finder *pypeer.Finder
	for _, name := range libraries {
		p, err := fitPeer{name: name}, error(nil)
		if name == "gonum" {
			p.gonum, err = peer.Open(name, nil)
		} else {
			if finder == nil {
				finder = pypeer.NewFinder(l.ctx, pythons)
			}
			p.python, err = finder.Open(l.ctx, name, c.Threads)
		}
		if err != nil {
			p.missing = err.Error()
		}
		l.peers = append(l.peers, p)
	}
	return l.ctx.Err()
}

// ownImplementation is a device as an implementation.
func ownImplementation(d backend.Device) Implementation {
	i := d.Info()
	return Implementation{Name: ownName(d), Kind: OwnKind, Device: i.Device, Threads: i.Threads, Detail: i.Instruction + ", " + i.Processor}
}

// implementation is a library as an implementation.
func (p fitPeer) implementation(threads int) Implementation {
	e := Implementation{Name: p.name, Kind: PeerKind, Missing: p.missing, Threads: threads}
	if p.python != nil {
		e.Detail, e.Path = p.python.Detail, p.python.Path
	}
	return e
}

func ceilingImplementation(d backend.Device) Implementation {
	return Implementation{
		Name: ceilingPrefix + d.Info().Device, Kind: CeilingKind, Device: d.Info().Device,
		Detail: "fused multiply-adds in registers on one core, times the threads",
	}
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
		if p.python != nil {
			p.python.Close()
		}
	}
}
