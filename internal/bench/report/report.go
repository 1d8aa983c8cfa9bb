// Package report writes the report of a measurement as an HTML page: one file that needs no
// network, is readable on a phone and on paper, uses the reader's light or dark color scheme, and
// contains its charts as SVG drawn by gonum/plot.
//
// The page is also well-formed XML, so that it can be checked.
package report

import (
	_ "embed"
	"html/template"
	"io"

	"github.com/mercer-go/mercer/internal/bench"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page holds the values that the template inserts.
type page struct {
	*bench.Report
	Stamp string // the machine and the date, which are shown below every chart
	Cards []card
}

// card is a table with its chart.
type card struct {
	*bench.Table
	Picture template.HTML // empty for a card without a chart
	Legend  []key
}

// key is a line of a legend.
type key struct {
	Swatch template.HTML
	Name   string
}

// Wide reports whether the card takes the whole width. This applies to a table of many columns and
// to a table without a chart.
func (c card) Wide() bool { return len(c.Head) > 5 || c.Picture == "" }

// Write writes the page of r.
func Write(w io.Writer, r *bench.Result) error {
	report, err := r.Report()
	if err != nil {
		return err
	}
	p := page{Report: report, Stamp: r.Processor() + ", " + r.Started.UTC().Format("2006-01-02")}
	looks := map[string]int{} // an implementation has the same marker and color in all charts
	look := func(name string) int {
		if _, ok := looks[name]; !ok {
			looks[name] = len(looks)
		}
		return looks[name]
	}
	for _, t := range report.Tables {
		c := card{Table: t}
		if t.Chart != nil {
			if c.Picture, err = picture(t.Title, t.Chart, look); err != nil {
				return err
			}
			for _, curve := range t.Chart.Curves {
				k := key{Name: curve.Name}
				if k.Swatch, err = swatch(look(curve.Name), curve); err != nil {
					return err
				}
				c.Legend = append(c.Legend, k)
			}
		}
		p.Cards = append(p.Cards, c)
	}
	return pageTemplate.Execute(w, p)
}
