package solvers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/atomicfile"
)

// Costs are the constants of the cost model for what the primal and the dual
// method of a linear kernel do, in operations at the rate of a large matrix
// product in float64. `mercer bench crossover` measures them. In Params they
// replace the built-in ones; the zero value stands for those.
//
//	XᵀX, n samples, d features   n d² + Input·n·d + Covariance·d²
//	XXᵀ                          n² d + Input·n·d + Gram·n²
//	Cholesky, order k            k³/(3·Potrf) + Panel·k²
//	products and solves with few columns       their operations / Thin
type Costs struct {
	Rate       float64 `json:"rate"`       // operations in a second, of a large product
	Input      float64 `json:"input"`      // for each element of X
	Covariance float64 `json:"covariance"` // for each element of XᵀX
	Gram       float64 `json:"gram"`       // for each element of XXᵀ
	Potrf      float64 `json:"potrf"`      // rate of Cholesky beside that of a product
	Panel      float64 `json:"panel"`      // for each element of the factor
	Thin       float64 `json:"thin"`       // rate with few columns beside that of a product
}

// builtin are the constants of the cpu backend, see cost.go.
var builtin = Costs{Rate: 1e11, Gram: 2, Potrf: ratePotrf, Thin: rateThin}

// orBuiltin is c, or the built-in ones for the zero value.
func (c Costs) orBuiltin() Costs {
	if c == (Costs{}) {
		return builtin
	}
	return c
}

// check holds the rules of constants; the zero value breaks them.
func (c Costs) check() error {
	for _, v := range []struct {
		name  string
		value float64
		rate  bool
	}{
		{"rate", c.Rate, true}, {"potrf", c.Potrf, true}, {"thin", c.Thin, true},
		{"input", c.Input, false}, {"covariance", c.Covariance, false}, {"gram", c.Gram, false}, {"panel", c.Panel, false},
	} {
		if !(v.value >= 0) || math.IsInf(v.value, 1) || v.rate && v.value == 0 {
			return fmt.Errorf("solvers: costs: %s must be finite and ≥ 0, a rate > 0, got %v", v.name, v.value)
		}
	}
	return nil
}

// CovarianceCost is that of XᵀX, d × d, and of XᵀY with t columns.
func (c Costs) CovarianceCost(n, d, t int) float64 {
	return backend.SyrkFlops(d, n) + backend.GemmFlops(d, t, n) + c.Input*float64(n)*float64(d) + c.Covariance*float64(d)*float64(d)
}

// GramCost is that of XXᵀ, n × n.
func (c Costs) GramCost(n, d int) float64 {
	return backend.SyrkFlops(n, d) + c.Input*float64(n)*float64(d) + c.Gram*float64(n)*float64(n)
}

// FactorCost is that of Cholesky.
func (c Costs) FactorCost(order int) float64 {
	return backend.PotrfFlops(order)/c.Potrf + c.Panel*float64(order)*float64(order)
}

// ThinCost is that of operations with few columns.
func (c Costs) ThinCost(flops float64) float64 { return flops / c.Thin }

// MachineCosts are Costs as they were measured: where and when.
type MachineCosts struct {
	Device    string    `json:"device"`
	Processor string    `json:"processor"`
	Threads   int       `json:"threads"`
	Measured  time.Time `json:"measured"`
	Costs     Costs     `json:"costs"`
}

// of tells whether they are those of a device: the same processor and threads.
func (m MachineCosts) of(info backend.Info) bool {
	return m.Device == info.Device && m.Processor == info.Processor && m.Threads == info.Threads
}

// costsFile is the JSON form of a file of MachineCosts.
type costsFile struct {
	Schema   int            `json:"schema"`
	Machines []MachineCosts `json:"machines"`
}

// costsSchema is raised when a field changes its meaning or goes.
const costsSchema = 1

// readCosts reads a file; one that is not there is empty.
func readCosts(path string) (costsFile, error) {
	f := costsFile{Schema: costsSchema}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("solvers: costs: %w", err)
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return f, fmt.Errorf("solvers: costs: %s: %w: delete it and measure again", path, err)
	}
	if f.Schema != costsSchema {
		return f, fmt.Errorf("solvers: costs: %s: schema %d; this version reads schema %d: delete it and measure again", path, f.Schema, costsSchema)
	}
	return f, nil
}

// LoadCosts returns the costs of a device from the file that SaveCosts wrote;
// false when there is no such file, or when it has none of this device, on this
// processor and with this number of threads.
func LoadCosts(path string, info backend.Info) (MachineCosts, bool, error) {
	f, err := readCosts(path)
	if err != nil {
		return MachineCosts{}, false, err
	}
	for _, m := range f.Machines {
		if !m.of(info) {
			continue
		}
		if err := m.Costs.check(); err != nil {
			return MachineCosts{}, false, fmt.Errorf("%w: %s: delete it and measure again", err, path)
		}
		return m, true, nil
	}
	return MachineCosts{}, false, nil
}

// SaveCosts writes costs into the file at path, whole or not at all, in place of
// those of the same device, processor and threads; others stay. The file is made
// where it is not there, its folder must be.
func SaveCosts(path string, list []MachineCosts) error {
	f, err := readCosts(path)
	if err != nil {
		return err
	}
	for _, m := range list {
		if err := m.Costs.check(); err != nil {
			return err
		}
		f.Machines = slices.DeleteFunc(f.Machines, func(o MachineCosts) bool {
			return m.of(backend.Info{Device: o.Device, Processor: o.Processor, Threads: o.Threads})
		})
		f.Machines = append(f.Machines, m)
	}
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("solvers: costs: %w", err)
	}
	return atomicfile.WriteBytes(path, append(text, '\n'))
}

// BuiltinCosts are those that the zero value of Costs stands for.
func BuiltinCosts() Costs { return builtin }
