package bench

import (
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNoise(t *testing.T) {
	from := usage{total: 1000, idle: 500, steal: 10, ownTime: 100}
	to := usage{total: 1200, idle: 540, steal: 20, ownTime: 220}
	// Of 200 ticks, 40 are idle, 10 are stolen, and 120 belong to the benchmark.
	if d := cmp.Diff(&Noise{Steal: 5, Others: 15}, noise(from, to)); d != "" {
		t.Error(d)
	}
	// The times are read at different moments, so that their sum may exceed the total of 200 ticks.
	if d := cmp.Diff(&Noise{Steal: 5, Others: 0}, noise(from, usage{total: 1200, idle: 660, steal: 20, ownTime: 160})); d != "" {
		t.Error(d)
	}
	if noise(from, from) != nil {
		t.Error("noise in no time")
	}
}

func TestMachine(t *testing.T) {
	m := readMachine()
	t.Logf("%+v", m)
	if m.CPUs < 1 || m.MaxProcs < 1 || m.Go != runtime.Version() || m.System != runtime.GOOS+"/"+runtime.GOARCH {
		t.Errorf("got %+v", m)
	}
}
