package backend

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Config holds the settings of a device. The zero value suits most callers.
type Config struct {
	Threads int   // number of workers; 0 means GOMAXPROCS
	Memory  int64 // maximum number of bytes of all matrices; 0 means 80 % of the memory available to the process
	// Reproducible requests results that have the same bits on every processor, for the same version of Mercer,
	// input and options. Open then opens only devices that guarantee this; docs/trust.md lists them and further
	// conditions. If MERCER_REPRODUCIBLE is true, Open acts as if Reproducible were set.
	Reproducible bool
	// Fallback receives the name of a device that passed its probe but cannot be opened, and the reason; Open then
	// tries the next device. If Fallback is nil, or the caller named the device, Open returns the failure.
	Fallback func(device string, err error)
}

// A Candidate is a device that a driver supports, usable or not.
type Candidate struct {
	Info               // the result of the probe; only Device may be set if Err is not nil
	Err          error // why this machine cannot run the device; nil if it can
	Reproducible bool  // whether the device can be opened with Config.Reproducible
	Chosen       bool  // whether Open("auto") would choose the device; set by Report
}

// Driver makes devices of one kind. Packages cpu and cuda each register one driver.
type Driver interface {
	// Name is the part of a device's name before the slash.
	Name() string
	// Candidates probes the machine: it returns every device that the driver supports, best first.
	Candidates() []Candidate
	// Open opens a device. `device` is its name without the driver's name and the slash.
	Open(device string, c Config) (Device, error)
}

// NotAutomatic is the preference of a driver whose devices Open opens only if the caller names them.
const NotAutomatic = -1

type registration struct {
	driver     Driver
	preference int
}

var (
	mu      sync.RWMutex
	drivers []registration // in descending order of preference
)

// Register adds a driver. Open("") chooses the usable device whose driver has the highest preference other than
// NotAutomatic. Register panics if a driver of that name exists.
func Register(d Driver, preference int) {
	mu.Lock()
	defer mu.Unlock()
	for _, r := range drivers {
		if r.driver.Name() == d.Name() {
			panic(fmt.Sprintf("backend: Register: driver %q is registered twice", d.Name()))
		}
	}
	drivers = append(drivers, registration{d, preference})
	slices.SortStableFunc(drivers, func(a, b registration) int { return cmp.Compare(b.preference, a.preference) })
}

// registered returns a copy of the list of drivers, in descending order of preference.
func registered() []registration {
	mu.RLock()
	defer mu.RUnlock()
	return slices.Clone(drivers)
}

// EnvDevice is the environment variable with the name of the device that Open("") opens.
const EnvDevice = "MERCER_DEVICE"

// EnvReproducible is the environment variable that sets Config.Reproducible if it is 1 or true.
const EnvReproducible = "MERCER_REPRODUCIBLE"

// Open opens a device.
//
//	""           the best usable device (or the device named by MERCER_DEVICE)
//	"auto"       the best usable device
//	"cpu"        the best usable device of the driver "cpu"
//	"cpu/avx2"   that device and no other
//
// If no requested device can be used, the error of Open matches ErrUnavailable and gives the reason
// for each requested device. Open never opens a device that was not requested.
func Open(name string, c Config) (Device, error) {
	if c.Threads < 0 || c.Memory < 0 {
		return nil, fmt.Errorf("backend: open: threads and memory must be ≥ 0, got %d and %d", c.Threads, c.Memory)
	}
	if text := os.Getenv(EnvReproducible); text != "" {
		reproducible, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("backend: open: %s must be 1 or 0, got %q", EnvReproducible, text)
		}
		c.Reproducible = c.Reproducible || reproducible
	}
	if c.Reproducible && fused() {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, errFused)
	}
	source := ""
	if name == "" {
		if name = os.Getenv(EnvDevice); name != "" {
			source = " (from " + EnvDevice + ")"
		}
	}
	name = strings.ToLower(name)
	if name == "auto" {
		name = ""
	}
	matched := false
	var reasons []error
	for _, s := range candidates(name) {
		matched = true
		if s.Err != nil {
			reasons = append(reasons, fmt.Errorf("%s: %w", s.Device, s.Err))
			continue
		}
		if c.Reproducible && !s.Reproducible {
			reasons = append(reasons, fmt.Errorf("%s: its results differ from those of other processors by rounding, but reproducible results were requested: request the device cpu, or no device", s.Device))
			continue
		}
		dev, err := openDevice(s.Device, c)
		if err == nil || name != "" || c.Fallback == nil {
			return dev, err
		}
		c.Fallback(s.Device, err)
		reasons = append(reasons, err)
	}
	switch {
	case len(registered()) == 0:
		return nil, fmt.Errorf("%w: no driver is registered: import package cpu", ErrUnavailable)
	case name == "" && len(reasons) == 0:
		return nil, fmt.Errorf("%w: no registered driver is chosen automatically: name one of the devices %s", ErrUnavailable, strings.Join(names()[1:], ", "))
	case name == "":
		return nil, fmt.Errorf("%w: no device can be used on this machine: %w", ErrUnavailable, errors.Join(reasons...))
	case matched:
		return nil, fmt.Errorf("%w: %q%s: %w", ErrUnavailable, name, source, errors.Join(reasons...))
	}
	return nil, fmt.Errorf("%w: no device is called %q%s; the devices are: %s", ErrUnavailable, name, source, strings.Join(names(), ", "))
}

// openDevice opens a candidate.
func openDevice(candidate string, c Config) (Device, error) {
	driver, device, _ := strings.Cut(candidate, "/")
	for _, r := range registered() {
		if r.driver.Name() == driver {
			return r.driver.Open(device, c)
		}
	}
	return nil, fmt.Errorf("%w: %s: no driver has that name", ErrUnavailable, candidate)
}

// Report lists every device of every driver, in the order in which Open("auto") considers them.
func Report() []Candidate {
	list := candidates("")
	for _, r := range registered() {
		if r.preference == NotAutomatic {
			list = append(list, r.driver.Candidates()...)
		}
	}
	return list
}

// candidates lists the devices that match name ("", a driver or a device) and marks the first usable one as chosen.
func candidates(name string) []Candidate {
	var list []Candidate
	chosen := false
	for _, r := range registered() {
		if name == "" && r.preference == NotAutomatic {
			continue
		}
		// Only drivers that match name are probed: probing a GPU driver starts the GPU.
		if driver, _, _ := strings.Cut(name, "/"); name != "" && driver != r.driver.Name() {
			continue
		}
		for _, c := range r.driver.Candidates() {
			if name != "" && name != r.driver.Name() && name != c.Device {
				continue
			}
			c.Chosen = c.Err == nil && !chosen
			chosen = chosen || c.Chosen
			list = append(list, c)
		}
	}
	return list
}

// names lists the names of drivers and devices that Open accepts.
func names() []string {
	list := []string{"auto"}
	for _, r := range registered() {
		list = append(list, r.driver.Name())
		for _, c := range r.driver.Candidates() {
			if c.Device != r.driver.Name() {
				list = append(list, c.Device)
			}
		}
	}
	return list
}
