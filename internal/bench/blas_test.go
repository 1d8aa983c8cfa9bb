package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mercer-go/mercer/backend"
	_ "github.com/mercer-go/mercer/backend/ref"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/internal/bench/peer"
)

func init() { copyBytes = 1 << 20 }

// usable lists the devices of this machine.
func usable() []string {
	var names []string
	for _, s := range backend.Report() {
		if s.Err == nil {
			names = append(names, s.Device)
		}
	}
	return names
}

// TestBLAS measures a small case of every routine, and compares the results of all devices and libraries.
func TestBLAS(t *testing.T) {
	b := Benchmark{Kind: BLASKind, Names: Routines(), Threads: []int{1, 2}, Sizes: []int{1, 7, 65}, Devices: usable(), Runner: Runner{Repeats: 2}}
	if err := b.Fill(); err != nil {
		t.Fatal(err)
	}
	peers := b.openPeers(t.Context()) // all installed libraries
	for _, p := range peers {
		if p.Library != nil {
			p.Library.Spin = 0 // do not wait for spinning threads: the rates do not matter here
		}
	}
	peers = append(peers, Peer{Name: "nobody", Missing: "not found: libnobody.so"})
	r, err := b.runBLASWith(t.Context(), peers)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(textOf(t, r))
	if want := len(Routines()) * 2 * 2 * 3; len(r.Cells) != want {
		t.Fatalf("%d cells, want %d", len(r.Cells), want)
	}
	for _, c := range r.Cells {
		for i, e := range r.Implementations {
			run := c.Run(e.Name)
			precision := c.Case.Get("precision")
			noPotrf := c.Case.Get("routine") == "potrf" && (e.Name == "blis" || e.Name == "gonum" && precision == "float32")
			switch {
			case e.Kind == CeilingKind:
				if vector := c.Case.Get("routine") == "symv"; vector == (e.Name == memoryCeiling) != run.Timed() {
					t.Errorf("%v: %s: timed: %v", c.Case, e.Name, run.Timed())
				}
			case e.Missing != "":
				if run.Reason != e.Missing || run.Timed() {
					t.Errorf("%v: %s: %+v", c.Case, e.Name, run)
				}
			case noPotrf:
				if run.Reason != "has no potrf in "+precision {
					t.Errorf("%v: %s: %+v", c.Case, e.Name, run)
				}
			case len(run.Timings) != 2 || run.Rate.Median <= 0 || run.Time.Min > run.Time.Median || run.Time.Median > run.Time.Max:
				t.Errorf("%v: %s: %+v", c.Case, e.Name, run)
			case (run.Check == nil) != (i == 0):
				t.Errorf("%v: %s: compared: %v; the first is the reference", c.Case, e.Name, run.Check != nil)
			case e.Name != "mercer ref" && run.Share <= 0:
				t.Errorf("%v: %s has no ceiling", c.Case, e.Name)
			}
		}
	}
}

// TestWrongResult checks, for every routine, that a wrong result of a library is detected.
func TestWrongResult(t *testing.T) {
	for _, r := range routines {
		for _, n := range []int{64, 257} {
			t.Run(fmt.Sprintf("%s/n=%d", r.name, n), func(t *testing.T) {
				checkWrongResults(t, newProblem[float32](r, n))
				checkWrongResults(t, newProblem[float64](r, n))
			})
		}
	}
}

func checkWrongResults[T backend.Float](t *testing.T, p *problem[T]) {
	t.Helper()
	lib, err := peer.Open("gonum", nil)
	if err != nil {
		t.Fatal(err)
	}
	var run func() error
	switch q := any(p).(type) {
	case *problem[float64]:
		run = q.library(lib.F64)
	case *problem[float32]:
		run = q.library(lib.F32)
	}
	if run == nil {
		return // the library lacks the routine, like gonum potrf in float32
	}
	right := func() {
		t.Helper()
		p.preparation()()
		if err := run(); err != nil {
			t.Fatal(err)
		}
	}
	right()
	if p.check() != nil {
		t.Fatal("the reference was compared with something")
	}
	if c := p.check(); c.Difference != 0 {
		t.Errorf("differs by %g from itself", c.Difference)
	}
	for name, spoil := range map[string]func(){
		"nothing done": p.preparation(),
		"transposed operands": func() {
			if p.a.Data != nil {
				transpose(p.a)
				defer transpose(p.a)
			}
			right()
			if p.name == "potrf" || p.name == "syrk" || p.name == "gemm" {
				transpose(p.c)
			}
		},
		"a row left out": func() { right(); clear(p.c.Row(p.n / 2)) },
		"one element too small": func() {
			right()
			p.c.Row(p.n - 1)[0] *= 0.5
			p.c.Row(p.n - 1)[0] -= 0.5
		},
	} {
		spoil()
		if c := p.check(); c.Difference <= c.Limit {
			t.Errorf("%T: %s: differs by %g, within %g", p.c.Data, name, c.Difference, c.Limit)
		}
	}
}

// TestWrongResultIsFound checks that a library that writes no result is detected.
func TestWrongResultIsFound(t *testing.T) {
	lazy := &peer.Library{Threads: func(int) func() { return func() {} }}
	lazy.F64.Gemm = func(float64, backend.Host[float64], backend.Host[float64], float64, backend.Host[float64]) {}
	b := Benchmark{Kind: BLASKind, Names: []string{"gemm"}, Precisions: []string{"float64"}, Sizes: []int{8}}
	if err := b.Fill(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.runBLASWith(t.Context(), []Peer{{Name: "lazy", Library: lazy}}); err == nil || !strings.Contains(err.Error(), "n=8: lazy: the result is wrong") {
		t.Errorf("got %v", err)
	}
}

// transpose transposes a square matrix in place.
func transpose[T backend.Float](h backend.Host[T]) {
	for i := range h.Rows {
		for j := range min(i, h.Cols) {
			h.Row(i)[j], h.Row(j)[i] = h.Row(j)[i], h.Row(i)[j]
		}
	}
}

// distant is a device that cannot use Go memory.
type distant struct{ backend.Device }

func (d distant) F64() backend.Backend[float64] { return queueOnly[float64]{d.Device.F64()} }

type queueOnly[T backend.Float] struct{ backend.Backend[T] }

func (q queueOnly[T]) With(ctx context.Context, done func(float64)) backend.Backend[T] {
	return queueOnly[T]{q.Backend.With(ctx, done)}
}

// TestDeviceWithItsOwnMemory checks that operands are copied to a distant device, and that the memory is freed.
func TestDeviceWithItsOwnMemory(t *testing.T) {
	dev, err := backend.Open("ref", backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for _, r := range routines {
		c := &blasBench{devices: map[int][]backend.Device{1: {dev, distant{dev}}}}
		start := func(ctx context.Context) ([]Entry, error) {
			list, err := entries(ctx, c, r, 1, 33, backend.Device.F64, nil)
			for i := range list {
				list[i].Implementation += fmt.Sprint(i)
			}
			return list, err
		}
		cells, err := Runner{Repeats: 2}.Measure(t.Context(), []Task{{Case: Case{{"routine", r.name}}, Start: start}})
		if err != nil {
			t.Fatal(err)
		}
		if check := cells[0].Runs[1].Check; check == nil || check.Difference != 0 {
			t.Errorf("%s: got %+v", r.name, check)
		}
	}
	if inUse, peak := dev.InUse(); inUse != 0 || peak == 0 {
		t.Errorf("%d bytes are still in use, of %d", inUse, peak)
	}
}

func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		b    Benchmark
		want string
	}{
		{Benchmark{Kind: BLASKind, Names: []string{"gem"}}, `routine: "gem" is not known, did you mean gemm?; the choices are: gemm, symm`},
		{Benchmark{Kind: BLASKind, Precisions: []string{"float16"}}, `precision: "float16" is not known`},
		{Benchmark{Kind: BLASKind, Sizes: []int{8, 0}}, "must be ≥ 1, got 0"},
		{Benchmark{Kind: BLASKind, Threads: []int{-1}}, "must be ≥ 1, got -1"},
		{Benchmark{Kind: BLASKind, Devices: []string{"abacus"}}, `no device is called "abacus"`},
		{Benchmark{Kind: BLASKind, Sizes: []int{1000}, Memory: 8 << 20}, "n = 1000 needs 32000000 bytes for four matrices, but the memory has 8388608: n = 512 would fit"},
	} {
		if _, err := test.b.Run(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: got %v", test.b, err)
		}
	}
	canceledCtx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := (Benchmark{Kind: BLASKind, Sizes: []int{8}}).Run(canceledCtx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestRepeated checks that a value is measured once even if an option lists it twice, and that sizes are sorted.
func TestRepeated(t *testing.T) {
	b := Benchmark{
		Kind: BLASKind, Names: []string{"gemm", "gemm"}, Precisions: []string{"float32", "float32"}, Threads: []int{2, 1, 2}, Sizes: []int{9, 4, 9},
		Devices: []string{"cpu/generic", "CPU/generic"},
	}
	r, err := b.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var cases []string
	for _, c := range r.Cells {
		cases = append(cases, c.Case.String())
		if run := c.Run("mercer cpu/generic"); !run.Timed() || c.Runs[0].Implementation == c.Runs[1].Implementation {
			t.Errorf("%v: %+v", c.Case, c.Runs)
		}
	}
	want := []string{
		"routine=gemm/precision=float32/threads=1/n=4", "routine=gemm/precision=float32/threads=1/n=9",
		"routine=gemm/precision=float32/threads=2/n=4", "routine=gemm/precision=float32/threads=2/n=9",
	}
	if d := cmp.Diff(want, cases); d != "" {
		t.Error(d)
	}
}

// TestDefaults checks that missing options are filled in, and which ceilings are measured.
func TestDefaults(t *testing.T) {
	b := Benchmark{Kind: BLASKind, Names: []string{"syrk"}, Sizes: []int{8}, Devices: []string{"cpu/generic"}, Runner: Runner{Repeats: 1}}
	r, err := b.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var precisions, ceilings []string
	for _, c := range r.Cells {
		precisions = append(precisions, c.Case.Get("precision"))
	}
	for _, e := range r.Implementations {
		if e.Kind == CeilingKind {
			ceilings = append(ceilings, e.Name)
		}
	}
	if d := cmp.Diff([]string{"float64", "float32"}, slices.Compact(precisions)); d != "" {
		t.Error(d)
	}
	dev, err := backend.Open("cpu", backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Compact([]string{"ceiling " + dev.Info().Device, "ceiling cpu/generic"})
	if d := cmp.Diff(want, ceilings); d != "" {
		t.Error(d)
	}
	if run := r.Cells[0].Run("mercer cpu/generic"); run.Limiter != "ceiling cpu/generic" {
		t.Errorf("bounded by %q", run.Limiter)
	}
}
