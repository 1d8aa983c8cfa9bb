package learners

import (
	"fmt"
	"strings"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/gonum"
	"github.com/mercer-go/mercer/internal/spread"
	"gonum.org/v1/gonum/mat"
)

// constantTargets returns the indices of the columns of y that are constant over the rows of weight
// > 0, up to rounding as defined by spread.Rounding.
func constantTargets(y backend.Host[float64], weights []float64) (list []int) {
	columns := make([]spread.Spread, y.Cols)
	for i := range y.Rows {
		if weights != nil && weights[i] == 0 {
			continue
		}
		for j, v := range y.Row(i) {
			columns[j].Add(v)
		}
	}
	for j := range columns {
		if columns[j].Constant() {
			list = append(list, j)
		}
	}
	return list
}

// constantWarning returns a text that names the constant targets, or "" if no target is constant.
func constantWarning(constant []int, targets int) string {
	switch {
	case len(constant) == 0:
		return ""
	case targets == 1:
		return "the target is constant: no feature can explain it"
	case len(constant) == 1:
		return fmt.Sprintf("target %d is constant: no feature can explain it", constant[0]+1)
	}
	names := make([]string, len(constant))
	for i, j := range constant {
		names[i] = fmt.Sprint(j + 1)
	}
	return fmt.Sprintf("targets %s are constant: no feature can explain them", strings.Join(names, ", "))
}

// remarkConstant adds the Fact "warning" to the model if targets are constant. The Fit of most
// regression learners calls it with defer.
func remarkConstant[M interface{ remark(text string) }](m *M, err *error, y mat.Matrix, o Options) {
	if *err != nil {
		return
	}
	if h, hostErr := gonum.Host("y", y); hostErr == nil {
		(*m).remark(constantWarning(constantTargets(h, o.Weights), h.Cols))
	}
}
