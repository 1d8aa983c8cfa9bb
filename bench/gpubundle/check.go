package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mercer-go/mercer/backend"
	_ "github.com/mercer-go/mercer/cuda" // registers the devices "cuda/..."
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// machine is what is here.
type machine struct {
	GPU     string `json:"gpu"`
	Driver  string `json:"driver"`
	Devices string `json:"devices"` // what Mercer found: instruction set, libraries
	Bytes   int64  `json:"memory_bytes"`
	Missing string `json:"missing,omitempty"` // why no GPU can be used
}

func (w *worker) machine() machine {
	m := machine{GPU: "GPU of unknown name", Driver: "of unknown version"}
	for _, s := range backend.Report() {
		if s.Device != "cuda/0" {
			continue
		}
		if s.Err != nil {
			m.Missing = strings.Join(strings.Fields(s.Err.Error()), " ")
			return m
		}
		m.Devices, m.Bytes = s.Info.Instruction, s.Info.Memory
		if s.Info.Processor != "" {
			m.GPU = s.Info.Processor
		}
	}
	c := exec.CommandContext(w.ctx, "nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
	if out, err := c.Output(); err == nil {
		m.Driver, _, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	}
	if path, err := filepath.Abs(w.folder); err == nil {
		w.folder = path
	}
	if path, err := filepath.Abs(w.bundle); err == nil {
		w.bundle = path
	}
	return m
}

// checks makes one check in this process, which does nothing else.
func checks(ctx context.Context, what string, fits int, out io.Writer) error {
	start := time.Now()
	dev, err := backend.Open("cuda/0", backend.Config{})
	if err != nil {
		return err
	}
	defer dev.Close()
	const n, d = 64, 3
	p := solvers.Problem{Kernel: kernels.Gaussian{Sigma: 1}, X: backend.NewHost[float64](n, d), Y: backend.NewHost[float64](n, 1), Lambda: 0.1}
	for i := range p.X.Data {
		p.X.Data[i] = math.Sin(float64(i * i))
	}
	for i := range p.Y.Data {
		p.Y.Data[i] = math.Cos(float64(i))
	}
	found := map[string]float64{}
	switch what {
	case "start-up":
		if _, err := solvers.Solve(ctx, dev, p, solvers.Params{Method: solvers.Dual}); err != nil {
			return err
		}
		found["seconds"] = time.Since(start).Seconds()
	case "leaks":
		methods := []solvers.Method{solvers.Dual, solvers.Mixed, solvers.CG}
		for i := range fits {
			if _, err := solvers.Solve(ctx, dev, p, solvers.Params{Method: methods[i%len(methods)]}); err != nil {
				return err
			}
		}
		now, peak := dev.InUse()
		found["bytes"], found["peak"], found["fits"] = float64(now), float64(peak), float64(fits)
		if now != 0 {
			return fmt.Errorf("%d bytes are left on the device by %d fits", now, fits)
		}
	default:
		return fmt.Errorf("--check: %q is not known; there are: start-up, leaks", what)
	}
	return json.NewEncoder(out).Encode(found)
}
