package bench

import (
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/mercer-go/mercer/backend"
)

// Machine describes the machine and the program of a benchmark.
type Machine struct {
	Processor string   `json:"processor"`
	CPUs      int      `json:"cpus"`
	MaxProcs  int      `json:"gomaxprocs"`
	Devices   []string `json:"devices"` // names of Mercer's usable devices, starting with the best device
	Virtual   bool     `json:"virtual"` // whether this is a virtual machine, whose cores may be shared with other machines
	Governor  string   `json:"governor,omitempty"`
	System    string   `json:"system"` // operating system and architecture
	Go        string   `json:"go"`
	Mercer    string   `json:"mercer"`          // version or revision of Mercer
	Noise     *Noise   `json:"noise,omitempty"` // nil if this system does not report it
}

// Noise is the processor time that was not available to the benchmark, as a percentage of the time
// of all processors during the benchmark.
type Noise struct {
	Steal  float64 `json:"steal_percent"`  // time taken by the host of this virtual machine
	Others float64 `json:"others_percent"` // time of other processes, and of the kernel for them
}

// readMachine returns a Machine with all fields except Noise. The files that it reads exist on Linux only.
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

// revision returns the version of this module, with the commit and a mark for uncommitted changes.
func revision() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return ""
}
