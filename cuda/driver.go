package cuda

import (
	"fmt"
	"strconv"
	"sync"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/internal/driver"
)

// Package backend prefers the devices of this package to the devices of package cpu. Open first
// checks that a device computes correctly (check.go).
func init() { backend.Register(cudaDriver{}, preference) }

const preference = 10

type cudaDriver struct{}

func (cudaDriver) Name() string { return "cuda" }

// library returns the driver API, which the first call opens and initializes.
var library = sync.OnceValues(func() (*driver.API, error) {
	api, err := driver.Open()
	if err != nil {
		return nil, err
	}
	return api, initialize(api)
})

// minVersion is the oldest CUDA version whose drivers accept the PTX of this package: 11.8.
const minVersion = 11080

func initialize(api *driver.API) error {
	if err := api.Init(); err != nil {
		return fmt.Errorf("the NVIDIA driver does not start: %w", err)
	}
	version, err := api.Version()
	if err != nil {
		return err
	}
	if version < minVersion {
		return fmt.Errorf("the NVIDIA driver is too old: it supports CUDA %d.%d, but Mercer needs 11.8: install driver 520 or newer", version/1000, version%1000/10)
	}
	return nil
}

func (cudaDriver) Candidates() []backend.Candidate {
	api, err := library()
	if err != nil {
		return []backend.Candidate{{Info: backend.Info{Device: "cuda/0"}, Err: err}}
	}
	n, err := api.DeviceCount()
	if err == nil && n == 0 {
		err = fmt.Errorf("the NVIDIA driver finds no GPU")
	}
	if err != nil {
		return []backend.Candidate{{Info: backend.Info{Device: "cuda/0"}, Err: err}}
	}
	libraries := availableLibraries()
	list := make([]backend.Candidate, n)
	for i := range list {
		list[i].Device = fmt.Sprintf("cuda/%d", i)
		var p properties
		if p, list[i].Err = probe(api, i); list[i].Err == nil {
			list[i].Info = p.info(list[i].Device, libraries)
		}
	}
	return list
}

func (cudaDriver) Open(name string, c backend.Config) (backend.Device, error) {
	api, err := library()
	if err != nil {
		return nil, fmt.Errorf("%w: cuda: %w", backend.ErrUnavailable, err)
	}
	ordinal, err := strconv.Atoi(name)
	if err != nil || ordinal < 0 {
		return nil, fmt.Errorf("%w: cuda: no device is called %q: want a name such as cuda/0", backend.ErrUnavailable, name)
	}
	n, err := api.DeviceCount()
	if err != nil {
		return nil, fmt.Errorf("%w: cuda: %w", backend.ErrUnavailable, err)
	}
	if ordinal >= n {
		return nil, fmt.Errorf("%w: cuda: there is no device %d: the number of devices is %d", backend.ErrUnavailable, ordinal, n)
	}
	if err := keepContext(api, ordinal); err != nil {
		return nil, unavailable(ordinal, err)
	}
	d, err := open(api, ordinal, c)
	if err != nil {
		return nil, err
	}
	if err := d.prepare(ordinal, c); err != nil {
		return nil, err
	}
	return d, nil
}

// retained lists the devices whose primary context this process retains until it ends.
var retained = struct {
	sync.Mutex
	ordinals map[int]bool
}{ordinals: map[int]bool{}}

// keepContext retains a device's primary context once and never releases it, because cuBLAS and cuSOLVER load code
// into that context and keep handles to it. Creating a context again takes some tenths of a second.
func keepContext(api *driver.API, ordinal int) error {
	retained.Lock()
	defer retained.Unlock()
	if retained.ordinals[ordinal] {
		return nil
	}
	handle, err := api.Device(ordinal)
	if err != nil {
		return err
	}
	if _, err := api.RetainPrimary(handle); err != nil {
		return err
	}
	retained.ordinals[ordinal] = true
	return nil
}

// properties are the attributes of a device that the driver reports, and rates derived from them.
type properties struct {
	handle     driver.Device
	name       string
	memory     int64
	processors int
	major      int
	minor      int
	ratio      int     // rate of float32 operations divided by the rate of float64 operations
	rate       float64 // float32 multiply-adds per second, estimated from the clock and the number of cores
	clock      float64 // clock rate of the cores in cycles per second
	bandwidth  float64 // memory bandwidth in bytes per second
}

func probe(api *driver.API, ordinal int) (p properties, err error) {
	if p.handle, err = api.Device(ordinal); err != nil {
		return p, err
	}
	if p.name, err = api.Name(p.handle); err != nil {
		return p, err
	}
	if p.memory, err = api.TotalMem(p.handle); err != nil {
		return p, err
	}
	var clock, memoryClock, memoryWidth int
	for _, a := range []struct {
		target    *int
		attribute driver.Attribute
		required  bool // if false, only the planner uses the attribute, and it is 0 if the driver does not report it
	}{
		{&p.processors, driver.MultiprocessorCount, true}, {&p.major, driver.ComputeMajor, true}, {&p.minor, driver.ComputeMinor, true},
		{&p.ratio, driver.SingleToDoubleRatio, false}, {&clock, driver.ClockRate, false},
		{&memoryClock, driver.MemoryClockRate, false}, {&memoryWidth, driver.MemoryBusWidth, false},
	} {
		value, err := api.Attribute(p.handle, a.attribute)
		if err != nil && a.required {
			return p, err
		}
		if err == nil {
			*a.target = value
		}
	}
	if clock <= 0 { // some virtual GPUs do not report the clock
		clock = 1_000_000
	}
	p.clock = float64(clock) * 1e3
	p.rate = p.clock * float64(p.processors) * 64
	p.bandwidth = 2 * float64(memoryClock) * 1e3 * float64(memoryWidth) / 8 // two transfers per cycle
	if p.major < 7 {
		return p, fmt.Errorf("%s has compute capability %d.%d, but Mercer needs 7.0", p.name, p.major, p.minor)
	}
	return p, nil
}

// singleRate, doubleRate and reducedRate return peak rates in operations per second: for float32, for float64 with
// tensor cores, and for products with factors in FP16 and sums in float32.
func (p properties) singleRate() float64 {
	cores := 128.0
	if p.major == 7 || p.major == 8 && p.minor == 0 {
		cores = 64
	}
	return 2 * p.clock * float64(p.processors) * cores
}

func (p properties) doubleRate() float64 {
	rate := p.singleRate() / float64(max(p.ratio, 1))
	if p.major == 8 && p.minor == 0 || p.major == 9 {
		return 2 * rate
	}
	return rate
}

func (p properties) reducedRate() float64 {
	switch {
	case p.major == 10:
		return 32 * p.singleRate()
	case p.major == 8 && p.minor == 0, p.major == 9:
		return 16 * p.singleRate()
	case p.major == 7 && p.minor == 0:
		return 8 * p.singleRate()
	case p.major == 7:
		return 4 * p.singleRate()
	}
	return 2 * p.singleRate() // consumer cards reach half of this rate
}

// availableLibraries returns the libraries found in addition to the driver.
var availableLibraries = sync.OnceValue(func() driver.Libraries {
	api, err := library()
	if err != nil {
		return driver.Libraries{}
	}
	version, err := api.Version()
	if err != nil {
		return driver.Libraries{BlasErr: err, SolverErr: err}
	}
	return driver.ProbeLibraries(version)
})

func (p properties) info(device string, l driver.Libraries) backend.Info {
	return backend.Info{
		Device:      device,
		Processor:   p.name,
		Instruction: fmt.Sprintf("compute capability %d.%d", p.major, p.minor),
		Memory:      p.memory,
		Libraries:   l.Used(),
		Missing:     l.Missing(),
	}
}
