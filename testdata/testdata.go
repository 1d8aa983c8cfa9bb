// Package testdata contains three small data sets whose licenses permit redistribution. The tests, the examples and
// `mercer demo` therefore need no download. README.md names the sources and the licenses.
package testdata

import "embed"

// FS holds diabetes.csv (regression, 442 × 10), breast_cancer.csv (two classes, 569 × 30) and digits.csv (ten classes,
// 1797 × 64). Each has a header line and its target in the last column, named "target".
//
//go:embed diabetes.csv breast_cancer.csv digits.csv
var FS embed.FS
