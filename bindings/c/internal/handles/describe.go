package handles

import (
	"encoding/json"
	"runtime"
	"runtime/debug"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/fitreport"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
)

// About returns, in JSON, the version, devices, learners and kernels of the library.
func About(Names) (string, error) {
	type device struct {
		Device    string `json:"device"`
		Processor string `json:"processor"`
		Chosen    bool   `json:"chosen"`
		Reason    string `json:"reason,omitempty"` // the reason why the device cannot be used
	}
	about := struct {
		Version  string                 `json:"version"`
		Go       string                 `json:"go"`
		Memory   int64                  `json:"memory_bytes,omitempty"` // memory that is available to the process, if known
		Devices  []device               `json:"devices"`
		Learners []learners.Description `json:"learners"`
		Kernels  []kernels.Description  `json:"kernels"`
	}{Version: "unknown", Go: runtime.Version(), Learners: learners.Catalogue(), Kernels: kernels.Catalogue()}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		about.Version = info.Main.Version
	}
	if free, ok := backend.HostMemory(); ok {
		about.Memory = free
	}
	for _, s := range backend.Report() {
		d := device{Device: s.Device, Processor: s.Info.Processor, Chosen: s.Chosen}
		if s.Err != nil {
			d.Reason = s.Err.Error()
		}
		about.Devices = append(about.Devices, d)
	}
	return text(about)
}

// Describe returns, in JSON, a description of the device.
func (d *Device) Describe(Names) (string, error) {
	if err := d.acquire(); err != nil {
		return "", err
	}
	defer d.release()
	i := d.dev.Info()
	return text(map[string]any{
		"device": i.Device, "processor": i.Processor, "instruction": i.Instruction, "threads": i.Threads, "memory": i.Memory,
	})
}

// Describe returns, in JSON, a description of the factored system.
func (f *Factor) Describe(Names) (string, error) {
	if err := f.acquire(); err != nil {
		return "", err
	}
	defer f.release()
	kernel := ""
	if f.kernel != nil {
		kernel = f.kernel.String()
	}
	return text(map[string]any{
		"order": f.factor.Order(), "kernel": kernel, "lambda": f.lambda, "device": f.device.dev.Info().Device,
	})
}

// description is the result of Model.Describe.
type description struct {
	fitreport.Report
	Task         learners.Task     `json:"task"`
	Features     int               `json:"features"`          // number of columns of x in Predict
	Names        []string          `json:"names,omitempty"`   // names of the columns of x
	Targets      []string          `json:"targets,omitempty"` // names of the outputs
	Raw          bool              `json:"raw"`               // whether Predict encodes x like the columns of a table
	Missing      bool              `json:"missing"`           // whether Predict treats NaN as a missing value
	Labels       []float64         `json:"labels,omitempty"`  // the value that Predict returns for each class
	Capabilities []string          `json:"capabilities"`      // results besides predictions: "decision", "probabilities", "deviations", "intervals", "sets"
	Parameters   map[string]any    `json:"parameters"`
	Arrays       map[string][2]int `json:"arrays"`

	// Device and Seconds are set only if this process has fitted the model.
	Device  string  `json:"device,omitempty"`
	Seconds float64 `json:"seconds,omitempty"` // duration of the whole fit in seconds
}

// Describe returns, in JSON, a description of the model and of its fit.
func (m *Model) Describe(names Names) (string, error) {
	if err := m.acquire(); err != nil {
		return "", err
	}
	defer m.release()
	model, state := m.bundle.Model, m.bundle.Model.State()
	f := description{
		Report: fitreport.New(model, names.phrase), Task: learners.Regression, Parameters: state.Params, Arrays: map[string][2]int{},
		Capabilities: []string{}, Device: m.device, Seconds: m.seconds,
	}
	f.Features, _ = model.Dims()
	for name, h := range arraysOf(model) {
		f.Arrays[name] = [2]int{h.Rows, h.Cols}
	}
	if novelty(model) {
		f.Task = learners.Novelty
	}
	f.columns(m)
	f.abilities(model)
	if m.bundle.HasIntervals() {
		f.Capabilities = append(f.Capabilities, "intervals")
	} else if m.bundle.Calibration != nil {
		f.Capabilities = append(f.Capabilities, "sets")
	}
	return text(f)
}

func (f *description) columns(m *Model) {
	if m.gram {
		f.Features -= 2
	}
	e := m.bundle.Encoder
	if e == nil {
		return
	}
	f.Targets = e.TargetNames()
	f.Raw, f.Missing = m.encodes, !e.RefuseMissing
	if e.Sparse() && !m.encodes { // the names x1, x2, … are omitted, because there may be millions
		return
	}
	f.Names = rawColumns(e)
	f.Features = len(f.Names)
}

// abilities sets Capabilities, which lists the results that the model has besides predictions.
func (f *description) abilities(model learners.Model) {
	if k, ok := model.(learners.Classifier); ok {
		c := k.Classes()
		f.Task, f.Labels = learners.Classification, c.Labels
		f.Capabilities = append(f.Capabilities, "decision")
	}
	if _, ok := learners.As[learners.Prober](model); ok {
		f.Capabilities = append(f.Capabilities, "probabilities")
	}
	if _, ok := learners.As[learners.Uncertain](model); ok {
		f.Capabilities = append(f.Capabilities, "deviations")
	}
}

func text(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}
