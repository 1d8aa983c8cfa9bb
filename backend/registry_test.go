package backend

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// fakeDriver has candidates but no real devices; its method Open only records the name.
type fakeDriver struct {
	name       string
	candidates []Candidate
	opened     *[]string
	probed     *[]string
}

// fakeDevice records its name and settings; its methods must not be called.
type fakeDevice struct {
	Device
	name string
	conf Config
}

func (d fakeDriver) Name() string { return d.name }

func (d fakeDriver) Candidates() []Candidate {
	if d.probed != nil {
		*d.probed = append(*d.probed, d.name)
	}
	return d.candidates
}

func (d fakeDriver) Open(device string, c Config) (Device, error) {
	if d.opened != nil {
		*d.opened = append(*d.opened, device)
	}
	if device == "broken" {
		return nil, errors.New("it broke while opening")
	}
	return fakeDevice{name: d.name + "/" + device, conf: c}, nil
}

var (
	errNoAVX512 = errors.New("this processor lacks avx512f")
	errNoCUDA   = errors.New("libcuda.so.1 was not found")
)

// withDrivers replaces the registry for one test, and clears MERCER_DEVICE.
func withDrivers(t *testing.T, register func()) {
	t.Helper()
	mu.Lock()
	previous := drivers
	drivers = nil
	mu.Unlock()
	t.Cleanup(func() {
		mu.Lock()
		drivers = previous
		mu.Unlock()
	})
	t.Setenv(EnvDevice, "")
	register()
}

// registerTypical registers the drivers of a machine without CUDA and AVX-512, not in the order of preference.
func registerTypical() {
	Register(fakeDriver{name: "slow", candidates: []Candidate{{Info: Info{Device: "slow"}}}}, NotAutomatic)
	Register(fakeDriver{name: "cpu", candidates: []Candidate{
		{Info: Info{Device: "cpu/avx512"}, Err: errNoAVX512}, {Info: Info{Device: "cpu/avx2"}}, {Info: Info{Device: "cpu/generic"}},
	}}, 0)
	Register(fakeDriver{name: "cuda", candidates: []Candidate{{Info: Info{Device: "cuda/0"}, Err: errNoCUDA}}}, 10)
}

func TestOpen(t *testing.T) {
	for _, c := range []struct {
		name, env string
		want      string   // name of the device that Open must open
		fails     []string // texts that the error of Open must contain; nil if Open must succeed
	}{
		{name: "", want: "cpu/avx2"},
		{name: "auto", want: "cpu/avx2"},
		{name: "AUTO", want: "cpu/avx2"},
		{name: "cpu", want: "cpu/avx2"},
		{name: "cpu/generic", want: "cpu/generic"},
		{name: "CPU/Generic", want: "cpu/generic"},
		{name: "slow", want: "slow/"},
		{name: "", env: "cpu/generic", want: "cpu/generic"},
		{name: "", env: "auto", want: "cpu/avx2"},
		{name: "cpu/avx2", env: "cpu/generic", want: "cpu/avx2"},
		{name: "auto", env: "cpu/generic", want: "cpu/avx2"},
		{name: "cpu", env: "nonsense", want: "cpu/avx2"},

		// Open never falls back to a device that was not requested.
		{name: "cpu/avx512", fails: []string{`"cpu/avx512"`, "avx512f"}},
		{name: "cuda", fails: []string{`"cuda"`, "cuda/0: libcuda.so.1 was not found"}},
		{name: "", env: "cuda/0", fails: []string{`"cuda/0"`, "MERCER_DEVICE", "libcuda"}},
		{name: "gpu", fails: []string{`no device is called "gpu"`, "auto, cuda, cuda/0, cpu, cpu/avx512, cpu/avx2, cpu/generic, slow"}},
		{name: "cpu/", fails: []string{`no device is called "cpu/"`}},
		{name: "cpu/avx", fails: []string{`no device is called "cpu/avx"`}},
		{name: "", env: "nonsense", fails: []string{`"nonsense"`, "MERCER_DEVICE"}},
	} {
		t.Run(c.name+"|"+c.env, func(t *testing.T) {
			withDrivers(t, registerTypical)
			t.Setenv(EnvDevice, c.env)
			dev, err := Open(c.name, Config{Threads: 3, Memory: 5})
			if c.fails != nil {
				if !errors.Is(err, ErrUnavailable) {
					t.Fatalf("opened %v, error %v; want one that matches ErrUnavailable", dev, err)
				}
				for _, text := range c.fails {
					if !strings.Contains(err.Error(), text) {
						t.Errorf("error %q does not contain %q", err, text)
					}
				}
				if c.env == "" && strings.Contains(err.Error(), EnvDevice) {
					t.Errorf("error %q blames the environment", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := dev.(fakeDevice); got.name != c.want || !reflect.DeepEqual(got.conf, Config{Threads: 3, Memory: 5}) {
				t.Errorf("opened %q with %+v, want %q with the configuration given", got.name, got.conf, c.want)
			}
		})
	}
}

// TestOpenProbesOneDriver checks that opening a named device probes only the driver of that device.
func TestOpenProbesOneDriver(t *testing.T) {
	for _, c := range []struct {
		name   string
		probed []string
	}{
		{"cpu", []string{"cpu"}}, {"cpu/avx2", []string{"cpu"}}, {"cuda/0", []string{"cuda"}}, {"slow", []string{"slow"}},
		{"auto", []string{"cuda", "cpu"}},
	} {
		var probed []string
		withDrivers(t, func() {
			for name, preference := range map[string]int{"slow": NotAutomatic, "cpu": 0, "cuda": 10} {
				device := name
				if name != "slow" {
					device += "/avx2"
				}
				if name == "cuda" {
					device = "cuda/0"
				}
				Register(fakeDriver{name: name, candidates: []Candidate{{Info: Info{Device: device}}}, probed: &probed}, preference)
			}
		})
		if _, err := Open(c.name, Config{}); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if !slices.Equal(probed, c.probed) {
			t.Errorf("%s: probed %v, want %v", c.name, probed, c.probed)
		}
	}
}

// TestOpenReproducible checks that only reproducible devices are opened if Config or the environment requests them.
func TestOpenReproducible(t *testing.T) {
	if fused() {
		withDrivers(t, func() {
			Register(fakeDriver{name: "cpu", candidates: []Candidate{{Info: Info{Device: "cpu/neon"}, Reproducible: true}}}, 0)
		})
		if _, err := Open("", Config{Reproducible: true}); !errors.Is(err, errFused) {
			t.Errorf("opened by a build that fuses: %v", err)
		}
		return
	}
	withDrivers(t, func() {
		Register(fakeDriver{name: "cpu", candidates: []Candidate{{Info: Info{Device: "cpu/avx512"}}, {Info: Info{Device: "cpu/avx2"}, Reproducible: true}}}, 0)
		Register(fakeDriver{name: "cuda", candidates: []Candidate{{Info: Info{Device: "cuda/0"}}}}, 1)
	})
	for _, c := range []struct {
		name, env    string
		reproducible bool
		want         string // name of the device that Open must open; "" if Open must fail
		fails        string // text that the error must contain
	}{
		{name: "", want: "cuda/0"},
		{name: "", env: "0", want: "cuda/0"},
		{name: "", reproducible: true, want: "cpu/avx2"},
		{name: "", env: "1", want: "cpu/avx2"},
		{name: "cpu", env: "true", want: "cpu/avx2"},
		{name: "cpu/avx2", reproducible: true, env: "0", want: "cpu/avx2"},
		{name: "cpu/avx512", env: "1", fails: "its results differ from those"},
		{name: "cuda", reproducible: true, fails: "cuda/0: its results differ from those"},
		{name: "", env: "maybe", fails: "MERCER_REPRODUCIBLE must be 1 or 0"},
	} {
		t.Setenv(EnvReproducible, c.env)
		dev, err := Open(c.name, Config{Reproducible: c.reproducible})
		switch {
		case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
			t.Errorf("%q, %q: error %v, want one with %q", c.name, c.env, err, c.fails)
		case c.fails == "" && err != nil:
			t.Errorf("%q, %q: %v", c.name, c.env, err)
		case c.fails == "" && dev.(fakeDevice).name != c.want:
			t.Errorf("%q, %q: opened %s, want %s", c.name, c.env, dev.(fakeDevice).name, c.want)
		}
	}
}

func TestOpenReasons(t *testing.T) {
	withDrivers(t, func() {
		Register(fakeDriver{name: "cpu", candidates: []Candidate{{Info: Info{Device: "cpu/avx512"}, Err: errNoAVX512}}}, 0)
		Register(fakeDriver{name: "cuda", candidates: []Candidate{{Info: Info{Device: "cuda/0"}, Err: errNoCUDA}}}, 1)
		Register(fakeDriver{name: "slow", candidates: []Candidate{{Info: Info{Device: "slow"}}}}, NotAutomatic)
	})
	_, err := Open("", Config{})
	for _, want := range []error{ErrUnavailable, errNoAVX512, errNoCUDA} {
		if !errors.Is(err, want) {
			t.Errorf("error %q does not wrap %q", err, want)
		}
	}
}

func TestOpenWithoutDrivers(t *testing.T) {
	withDrivers(t, func() {})
	for _, name := range []string{"", "cpu"} {
		if _, err := Open(name, Config{}); !errors.Is(err, ErrUnavailable) || strings.Contains(err.Error(), "%!") {
			t.Errorf("Open(%q): %v", name, err)
		}
	}
	withDrivers(t, func() {
		Register(fakeDriver{name: "slow", candidates: []Candidate{{Info: Info{Device: "slow"}}}}, NotAutomatic)
	})
	if _, err := Open("", Config{}); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "slow") || strings.Contains(err.Error(), "%!") {
		t.Errorf("Open with only a driver for tests: %v", err)
	}
}

// TestOpenFails checks that Open returns an error if a device passes its probe but cannot be opened.
func TestOpenFails(t *testing.T) {
	var opened []string
	withDrivers(t, func() {
		Register(fakeDriver{name: "cpu", opened: &opened, candidates: []Candidate{{Info: Info{Device: "cpu/broken"}}, {Info: Info{Device: "cpu/generic"}}}}, 0)
	})
	if _, err := Open("", Config{}); err == nil || !strings.Contains(err.Error(), "broke") {
		t.Errorf("Open: %v", err)
	}
	if !slices.Equal(opened, []string{"broken"}) {
		t.Errorf("opened %q", opened)
	}
}

// TestOpenFallsBack checks that Open with a Fallback tries the next device, unless the caller named the device.
func TestOpenFallsBack(t *testing.T) {
	var opened []string
	withDrivers(t, func() {
		Register(fakeDriver{name: "cpu", opened: &opened, candidates: []Candidate{{Info: Info{Device: "cpu/generic"}}}}, 0)
		Register(fakeDriver{name: "gpu", opened: &opened, candidates: []Candidate{{Info: Info{Device: "gpu/broken"}}}}, 1)
	})
	var reported []string
	c := Config{Fallback: func(device string, err error) { reported = append(reported, device+": "+err.Error()) }}
	dev, err := Open("auto", c)
	if err != nil || dev.(fakeDevice).name != "cpu/generic" {
		t.Errorf("Open: %v, %v", dev, err)
	}
	if !slices.Equal(reported, []string{"gpu/broken: it broke while opening"}) || !slices.Equal(opened, []string{"broken", "generic"}) {
		t.Errorf("reported %q, opened %q", reported, opened)
	}
	for _, name := range []string{"gpu", "gpu/broken"} {
		if dev, err := Open(name, c); err == nil || !strings.Contains(err.Error(), "broke") {
			t.Errorf("Open(%q): %v, %v", name, dev, err)
		}
	}
}

func TestOpenConfig(t *testing.T) {
	withDrivers(t, registerTypical)
	for _, c := range []Config{{Threads: -1}, {Memory: -1}} {
		if dev, err := Open("", c); err == nil || errors.Is(err, ErrUnavailable) {
			t.Errorf("Open with %+v: %v, %v", c, dev, err)
		}
	}
}

func TestReport(t *testing.T) {
	withDrivers(t, registerTypical)
	// The report shows the choice of "auto", regardless of MERCER_DEVICE.
	t.Setenv(EnvDevice, "cpu/generic")
	var lines []string
	for _, s := range Report() {
		line := s.Device
		if s.Chosen {
			line += " chosen"
		}
		if s.Err != nil {
			line += ": " + s.Err.Error()
		}
		lines = append(lines, line)
	}
	want := []string{
		"cuda/0: libcuda.so.1 was not found",
		"cpu/avx512: this processor lacks avx512f",
		"cpu/avx2 chosen",
		"cpu/generic",
		"slow",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got %q\nwant %q", lines, want)
	}
}

func TestRegisterTwice(t *testing.T) {
	withDrivers(t, registerTypical)
	defer func() {
		if v := recover(); v == nil || !strings.Contains(v.(string), `"cpu" is registered twice`) {
			t.Errorf("panic: %v", v)
		}
	}()
	Register(fakeDriver{name: "cpu"}, 3)
}

// TestPreferenceTies checks that Open tries drivers of equal preference in the order of registration.
func TestPreferenceTies(t *testing.T) {
	withDrivers(t, func() {
		for _, name := range []string{"b", "a", "c"} {
			Register(fakeDriver{name: name, candidates: []Candidate{{Info: Info{Device: name}}}}, 7)
		}
	})
	if dev, err := Open("", Config{}); err != nil || dev.(fakeDevice).name != "b/" {
		t.Errorf("opened %v, %v", dev, err)
	}
}
