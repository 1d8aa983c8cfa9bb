package report

import (
	"strings"
	"testing"
	"time"

	"github.com/mercer-go/mercer/bench"
)

// Two benchmarks: in one n changes, in the other each case has a size of its own.
func TestGoPage(t *testing.T) {
	r, err := bench.ReadGoBench(strings.NewReader(`goos: linux
goarch: amd64
cpu: Abacus
BenchmarkMat/operation=Mul/n=100/library=mercer-2 100 2000000 ns/op
BenchmarkMat/operation=Mul/n=100/library=gonum-2 10 9000000 ns/op
BenchmarkMat/operation=Mul/n=300/library=mercer-2 100 20000000 ns/op
BenchmarkMat/operation=Mul/n=300/library=gonum-2 10 10000000 ns/op
BenchmarkPrograms/program=PCA/n=70/d=5/library=mercer-2 100 2000000 ns/op
BenchmarkPrograms/program=PCA/n=70/d=5/library=gonum-2 10 25000000 ns/op
`), "library", time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	page := write(t, r)
	if figures := parse(t, page).find("figure"); len(figures) != 1 {
		t.Errorf("%d pictures, want that of Mul", len(figures))
	}
	for _, want := range []string{
		"Mercer is the fastest in 1 of 2 comparisons",
		`<td class="bad">0.50</td>`,
		`<td class="good">12.5</td>`,
		`aria-label="Mul"`,
		"PCA, n = 70, d = 5",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if r.Cells[0].Case.Get("benchmark") != "Mat" {
		t.Error("writing the page changed the measurement")
	}
}
