package report

import (
	"fmt"
	"strings"

	"github.com/mercer-go/mercer/bench"
)

// routineTitles are the headings of the sections.
var routineTitles = map[string]string{
	"gemm":  "gemm: general matrix product, C ← A B",
	"symm":  "symm: symmetric matrix product, C ← A B",
	"syrk":  "syrk: C ← A Aᵀ, one triangle",
	"trsm":  "trsm: triangular solve, B ← A⁻¹ B",
	"potrf": "potrf: Cholesky factorisation, A = L Lᵀ",
	"symv":  "symv: symmetric matrix times vector",
}

func blasPage(r *bench.Result) (*page, error) {
	tables := r.Tables("n")
	p := newPage(r, "Mercer’s BLAS on "+processor(r))
	p.Footer = "Points are medians; bars and the small figures reach from the lowest to the highest timing, ° marks an outlier " +
		"(beyond 1.5 quartile distances). Per cent is the share of the ceiling: of the multiply-adds that the processor was " +
		"seen to make in registers in the same case, one core’s times the threads, or of the matrix at the rate of a copy. " +
		"n × n operands, row-major; the work counted is the textbook’s."
	list := r.Compare(tables)
	p.Lead = lead(list)
	if len(list) > 0 {
		size := oneSize(list)
		p.Summary = summarise(list, size)
		p.SummaryNote = "At the largest n of each"
		if size != "" {
			p.SummaryNote = "At n = " + size
		}
		p.SummaryNote += ". ×: how many times as fast as that library Mercer is; above 1, Mercer is faster."
	}
	var err error
	p.Sections, err = sections(r, tables, "routine", func(name string) string { return routineTitles[name] })
	return p, err
}

func processor(r *bench.Result) string {
	if r.Machine.Processor == "" {
		return r.Machine.System
	}
	return r.Machine.Processor
}

// lead says in a sentence what was found.
func lead(list []bench.Comparison) string {
	if len(list) == 0 {
		return "Nothing was measured."
	}
	low, high := list[0].Own.Share, list[0].Own.Share
	for _, c := range list {
		low, high = min(low, c.Own.Share), max(high, c.Own.Share)
	}
	parts := []string{wins(list)}
	if low > 0 {
		parts = append(parts, fmt.Sprintf("It reaches %s to %s of the ceiling.", strings.TrimSuffix(bench.Percent(low), " %"), bench.Percent(high)))
	}
	return strings.Join(parts, " ")
}

// wins says in how many comparisons nobody is faster than Mercer.
func wins(list []bench.Comparison) string {
	first, compared := 0, 0
	for _, c := range list {
		slower, others := false, false
		for _, a := range c.Against {
			others = others || a.Times > 0
			slower = slower || a.Times > 0 && a.Times < 1
		}
		if others {
			compared++
			if !slower {
				first++
			}
		}
	}
	if compared == 0 {
		return "There was no other library to compare with."
	}
	return fmt.Sprintf("At the largest n, Mercer is the fastest in %d of %d comparisons.", first, compared)
}

// summarise makes the table of the first screen. The column of n is left out
// when it would say the same in every row.
func summarise(list []bench.Comparison, size string) *summary {
	s := &summary{Head: []string{"", "Mercer, " + list[0].Table.Unit(), "of ceiling"}}
	if size == "" {
		s.Head = append(s.Head, "n")
	}
	for _, a := range list[0].Against {
		s.Head = append(s.Head, "× "+a.Entrant)
	}
	for _, c := range list {
		row := []cell{{Text: c.Table.Case.Get("routine"), Note: c.Table.Case.Without("routine").Title()}, {Text: bench.Figures(c.Value())}, {Text: "–"}}
		if c.Own.Share > 0 {
			row[2].Text = bench.Percent(c.Own.Share)
		}
		if size == "" {
			row = append(row, cell{Text: c.Cell.Case.Get(c.Table.Key)})
		}
		s.Rows = append(s.Rows, append(row, ratios(c.Against)...))
	}
	return s
}

// oneSize is the n of all comparisons, or empty.
func oneSize(list []bench.Comparison) string {
	size := list[0].Cell.Case.Get("n")
	for _, c := range list {
		if c.Cell.Case.Get("n") != size {
			return ""
		}
	}
	return size
}
