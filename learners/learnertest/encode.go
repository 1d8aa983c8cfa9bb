package learnertest

import (
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/dataset"
)

// Encode learns an encoder e from the table by the rules. It returns the encoded samples x and targets y of the
// table, and e.
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
