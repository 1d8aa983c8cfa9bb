// Package report writes the report of a measurement as an HTML page. It uses package webpage for
// the page, and gonum/plot for the charts, which are SVG.
package report

import (
	"io"

	"github.com/mercer-go/mercer/internal/bench"
	"github.com/mercer-go/mercer/internal/webpage"
)

const footer = "Points are medians; bars and the small figures reach from the lowest to the highest timing, ° marks an outlier (beyond 1.5 quartile distances). Per cent is the share of the ceiling: of the multiply-adds that the processor made in registers in the same case, one core’s times the threads, or of the matrix at the rate of a copy. Operations are counted, not measured."

// Write writes the page of r.
func Write(w io.Writer, r *bench.Result) error {
	report, err := r.Report()
	if err != nil {
		return err
	}
	p := webpage.Page{Title: report.Title, Lead: report.Answer, Facts: report.Facts, Footer: footer}
	styles := map[string]int{} // number of the marker and color of each implementation, the same in all charts
	styleOf := func(name string) int {
		if _, ok := styles[name]; !ok {
			styles[name] = len(styles)
		}
		return styles[name]
	}
	for _, t := range report.Tables {
		c := webpage.Card{Title: t.Title, Head: t.Head, Notes: t.Notes, Wide: len(t.Head) > 5 || t.Chart == nil}
		for _, fields := range t.Rows {
			var row []webpage.Cell
			for _, f := range fields {
				row = append(row, webpage.Cell{Text: f.Text, Note: f.Note, Class: f.Class, Words: f.Words()})
			}
			c.Rows = append(c.Rows, row)
		}
		if t.Chart != nil {
			c.Stamp = r.Processor() + ", " + r.Started.UTC().Format("2006-01-02")
			if c.Picture, err = picture(t.Title, t.Chart, styleOf); err != nil {
				return err
			}
			for _, curve := range t.Chart.Curves {
				k := webpage.Key{Name: curve.Name}
				if k.Swatch, err = swatch(styleOf(curve.Name), curve); err != nil {
					return err
				}
				c.Legend = append(c.Legend, k)
			}
		}
		p.Cards = append(p.Cards, c)
	}
	return p.Write(w)
}
