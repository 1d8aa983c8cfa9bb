package trees

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/pairwise"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels/objects"
)

// flatTree returns a tree whose n leaves cycle through k productions.
func flatTree(n, k int) string {
	var b strings.Builder
	b.WriteString("(S")
	for i := range n {
		fmt.Fprintf(&b, " (L w%d)", i%k)
	}
	return b.String() + ")"
}

// TestEstimatedOperationsAreCounted checks that the function operations returns the number of
// operations that matcher counts.
func TestEstimatedOperationsAreCounted(t *testing.T) {
	k, g := Subtree{Decay: 0.1}, grammar{}
	trees, err := k.read(g, []string{flatTree(7, 2), flatTree(30, 3), "(S (A (L w0) x) (L w1))", flatTree(30, 3)})
	if err != nil {
		t.Fatal(err)
	}
	for _, lower := range []bool{false, true} {
		m := &matcher{decay: k.Decay, start: make([]int32, len(g)+1)}
		for i, a := range trees {
			m.load(a)
			partners := trees
			if lower {
				partners = trees[:i+1]
			}
			for _, b := range partners {
				m.value(b, func(float64) bool { return false })
			}
		}
		if got := operations(g, trees, trees, lower); got != float64(m.operations) {
			t.Errorf("lower %t: estimate %v, counted %d", lower, got, m.operations)
		}
	}
}

// TestOneValueCanBeStopped checks that the evaluation of one pair calls stop after every pairwise.Poll operations.
func TestOneValueCanBeStopped(t *testing.T) {
	const n, calls = 6000, 3
	g := grammar{}
	trees, err := Subtree{Decay: 0.1}.read(g, []string{flatTree(n, 1)})
	if err != nil {
		t.Fatal(err)
	}
	m := &matcher{decay: 0.1, start: make([]int32, len(g)+1)}
	m.load(trees[0])
	stopCalls, fraction := 0, 0.0
	m.value(trees[0], func(values float64) bool {
		stopCalls++
		fraction += values
		return stopCalls == calls
	})
	if limit := calls * (pairwise.Poll + n); stopCalls != calls || m.operations > limit || fraction <= 0 || fraction >= 1 {
		t.Errorf("%d operations with %d calls, more than %d; %v of the value is done", m.operations, stopCalls, limit, fraction)
	}
}

// TestWorkThatCannotEndIsRefused checks the errors for too many operations, 1.1·10¹⁶ pairs of leaves, and for too
// much memory, 72 MB per thread.
func TestWorkThatCannotEndIsRefused(t *testing.T) {
	tree := flatTree(3000, 1)
	k := Subtree{Decay: 0.1}
	g := grammar{}
	parsed, err := k.read(g, []string{tree})
	if err != nil {
		t.Fatal(err)
	}
	trees, operations := 50000, "1.1e+16 operations"
	if required.FewCases() {
		trees, operations = 20000, "1.8e+15 operations"
	}
	copies := make([]indexed, trees)
	for i := range copies {
		copies[i] = parsed[0]
	}
	if err := k.feasible(g, copies, copies, true, objects.Options{}); err == nil || !strings.Contains(err.Error(), operations) {
		t.Errorf("got %v", err)
	}
	if _, err := k.Gram(t.Context(), []string{tree}, objects.Options{Memory: 1 << 26, Threads: 1}); !errors.Is(err, backend.ErrMemory) {
		t.Errorf("got %v", err)
	}
}
