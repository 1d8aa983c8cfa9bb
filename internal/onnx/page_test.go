package onnx

import (
	"fmt"
	"slices"
	"strings"
)

// page returns the tables of the differences, in Markdown.
func page(models []*compared, kernels []string) string {
	maxDiff := map[string][2]float64{} // largest differences by learner and kernel
	var columns, linear []string
	for _, m := range models {
		key := m.learner + "/" + m.kernel
		w := maxDiff[key]
		for p, v := range m.maxDiff {
			w[p] = max(w[p], v)
		}
		maxDiff[key] = w
		list := &columns
		if m.kernel == "" {
			list = &linear
		}
		if !slices.Contains(*list, m.learner) {
			*list = append(*list, m.learner)
		}
	}
	var b strings.Builder
	b.WriteString(introduction)
	for p, precision := range []string{"float64", "float32"} {
		fmt.Fprintf(&b, "\n## Kernels and learners, %s\n\n| kernel | %s |\n|---|%s\n", precision, strings.Join(columns, " | "), strings.Repeat("--:|", len(columns)))
		for _, k := range kernels {
			b.WriteString("| `" + k + "` |")
			for _, l := range columns {
				if w, ok := maxDiff[l+"/"+k]; ok {
					fmt.Fprintf(&b, " %.1g |", w[p])
				} else {
					b.WriteString(" refused |")
				}
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("\n## Learners without a kernel\n\n| learner | float64 | float32 |\n|---|--:|--:|\n")
	for _, l := range linear {
		w := maxDiff[l+"/"]
		fmt.Fprintf(&b, "| %s | %.1g | %.1g |\n", l, w[0], w[1])
	}
	return b.String()
}

const introduction = `# ONNX models compared with Mercer's own predictions

The command ` + "`make onnx`" + ` generates this page. It fits every learner with every kernel to 60 samples of 3
features, exports the models as ` + "`mercer export`" + ` does, and evaluates 20 rows, one of which is a
training row, in onnxruntime-node. A number is the largest difference of a prediction, decision value or
probability from that of package learners, divided by the largest output. The labels of classifiers are
equal. λ is 10 for learners that have it.

In float64 all differences are rounding errors below 1e-12, and in float32 below 1e-5. Where λ is so small
that the coefficients cancel in the sum, both programs lose as many digits as the sum.
"Refused" means that the learner does not accept the kernel.
`
