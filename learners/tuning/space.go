package tuning

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/kernels"
)

// space is the set of kernels that a search may try. Each parameter that varies is multiplied by a factor from
// 1/reach to reach, and is then replaced by the nearest valid value.
type space struct {
	kernel kernels.Kernel
	params []kernels.Param
	vary   []int // indices of the parameters that vary
	reach  float64
}

// newSpace returns the space in which the named parameters vary. If names is nil, the length scales vary, or all
// positive parameters if k has no length scales.
func newSpace(k kernels.Kernel, names []string, reach float64) (*space, error) {
	s := &space{kernel: k, params: kernels.Params(k), reach: reach}
	for i, p := range s.params {
		if p.Log && p.Value > 0 && (slices.Contains(names, p.Name) || names == nil && isLength(p.Name)) {
			s.vary = append(s.vary, i)
		}
	}
	if names == nil && len(s.vary) == 0 {
		for i, p := range s.params {
			if p.Log && p.Value > 0 {
				s.vary = append(s.vary, i)
			}
		}
	}
	for _, name := range names {
		if i := slices.IndexFunc(s.params, func(p kernels.Param) bool { return p.Name == name }); i < 0 || !slices.Contains(s.vary, i) {
			return nil, fmt.Errorf("tuning: %q is not a parameter of %v that can vary; the parameters are: %s", name, k, strings.Join(s.positive(), ", "))
		}
	}
	return s, nil
}

// isLength reports whether a name is that of a length scale, such as sigma, sigma[2] or 1.sigma.
func isLength(name string) bool {
	name = name[strings.LastIndexByte(name, '.')+1:]
	return name == "sigma" || strings.HasPrefix(name, "sigma[")
}

func (s *space) positive() []string {
	names := []string{}
	for _, p := range s.params {
		if p.Log && p.Value > 0 {
			names = append(names, p.Name)
		}
	}
	return names
}

// kernelAt returns the kernel in which the i-th of the parameters that vary is multiplied by
// exp(x_i). If x has length 1, x_0 applies to all these parameters.
func (s *space) kernelAt(x []float64) (kernels.Kernel, error) {
	values := make([]float64, len(s.params))
	for i, p := range s.params {
		values[i] = p.Value
	}
	for i, v := range s.vary {
		values[v] = s.params[v].Nearest(values[v] * elementary.Exp(x[min(i, len(x)-1)]))
	}
	k, err := kernels.WithParams(s.kernel, values)
	if err != nil {
		return nil, fmt.Errorf("tuning: %w", err)
	}
	return k, nil
}
