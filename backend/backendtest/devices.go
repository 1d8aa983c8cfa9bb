package backendtest

import (
	"slices"
	"testing"

	"github.com/mercer-go/mercer/backend"
)

// Devices names the devices that tests of what is above the backends range over:
// every registered one that this machine can run. -short takes the best one, which
// MERCER_DEVICE may replace, and ref.
func Devices(t testing.TB) []string {
	t.Helper()
	var names []string
	for _, s := range backend.Report() {
		if s.Err == nil {
			names = append(names, s.Device)
		}
	}
	if len(names) == 0 {
		t.Fatal("no backend that can be used is registered: import one for its side effect")
	}
	if !testing.Short() {
		return names
	}
	best := "ref"
	if dev, err := backend.Open("", backend.Config{}); err == nil {
		best = dev.Info().Device
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name != best && name != "ref" })
}
