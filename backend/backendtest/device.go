package backendtest

import (
	"testing"

	"github.com/mercer-go/mercer/backend"
)

// testDevice is what does not depend on the precision.
func testDevice(t *testing.T, s Suite) {
	dev := s.Open(t, backend.Config{})
	info := dev.Info()
	if info.Device == "" || info.Memory <= 0 {
		t.Errorf("Info must name the device and its memory: %+v", info)
	}
}
