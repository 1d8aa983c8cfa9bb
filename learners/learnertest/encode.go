package learnertest

import (
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/dataset"
)

// Encode learns an encoder of the table by the rules, and returns it with the encoded samples and
// targets.
func Encode(t testing.TB, table *dataset.Table, rules dataset.Rules) (x, y *mat.Dense, e *dataset.Encoder) {
	t.Helper()
	e, err := dataset.Learn(table, rules)
	if err != nil {
		t.Fatal(err)
	}
	if x, err = e.Features(table); err != nil {
		t.Fatal(err)
	}
	if y, err = e.Targets(table); err != nil {
		t.Fatal(err)
	}
	return x, y, e
}
