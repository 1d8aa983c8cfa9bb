package bench

import (
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/mercer-go/mercer/backend"
)

// Machine is where and by what a benchmark ran.
type Machine struct {
	Processor string   `json:"processor"`
	CPUs      int      `json:"cpus"`
	MaxProcs  int      `json:"gomaxprocs"`
	Devices   []string `json:"devices"` // of Mercer, that can be used here; the best first
	Virtual   bool     `json:"virtual"` // a virtual machine, whose cores others may use too
	Governor  string   `json:"governor,omitempty"`
	System    string   `json:"system"` // operating system and architecture
	Go        string   `json:"go"`
	Mercer    string   `json:"mercer"`          // version or revision
	Noise     *Noise   `json:"noise,omitempty"` // nil: not to be known here
}

// Noise is what took processor time away from the benchmark, in per cent of the
// time of all processors while it ran.
type Noise struct {
	Steal  float64 `json:"steal_percent"`  // by the machine that runs this virtual one
	Others float64 `json:"others_percent"` // by other processes, and the kernel for them
}

// readMachine fills in all but Noise. What it reads from files is of Linux.
func readMachine() Machine {
	governor, _ := os.ReadFile("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
	cpuinfo, _ := os.ReadFile("/proc/cpuinfo")
	m := Machine{
		CPUs:     runtime.NumCPU(),
		MaxProcs: runtime.GOMAXPROCS(0),
		System:   runtime.GOOS + "/" + runtime.GOARCH,
		Go:       runtime.Version(),
		Mercer:   revision(),
		Governor: strings.TrimSpace(string(governor)),
		Virtual:  slices.Contains(strings.Fields(string(cpuinfo)), "hypervisor"),
	}
	for _, s := range backend.Report() {
		if s.Err == nil {
			m.Devices = append(m.Devices, s.Device)
		}
		if m.Processor == "" {
			m.Processor = s.Info.Processor
		}
	}
	return m
}

// revision is the version of this module as it was built, which names the commit and
// uncommitted changes.
func revision() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return ""
}
