// Package report makes a page of a measurement: one HTML file that needs
// nothing from the network, reads on a phone and on paper, follows the reader's
// choice of light or dark, and holds its pictures as SVG drawn by gonum/plot.
//
// The page is well-formed XML as well, so that it can be checked.
package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mercer-go/mercer/bench"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page is what the template fills in.
type page struct {
	Title, Lead string
	Summary     *summary
	SummaryNote string
	Facts       []string
	Sections    []*section
	Entrants    []bench.Entrant
	Agreements  []bench.Agreement
	Footer      string
}

// summary is the table on the first screen.
type summary struct {
	Head []string
	Rows [][]cell
}

// section is a heading over figures that share a legend.
type section struct {
	Title  string
	Text   string // under it; may be empty
	Legend []key
	Cards  []card
}

// key is a line of a legend.
type key struct {
	Swatch template.HTML
	Name   string
}

// card is a picture with the table of what it shows.
type card struct {
	Title   string
	Picture template.HTML
	Stamp   string // machine and day
	Head    []string
	Rows    [][]cell
	Notes   []string
}

// Broad tells whether the card takes the whole width: for a table of many columns.
func (c card) Broad() bool {
	return len(c.Head) > 6 || c.Picture == "" && len(c.Head) > 4 || c.tableWidth() > 310
}

// tableWidth is about how wide the card's table is on paper, where a card that is
// not broad has some 320 pixels for it: digits are 6.4 wide there, small ones 5.6,
// and a heading is broken between its words.
func (c card) tableWidth() (all float64) {
	for j, head := range c.Head {
		width := 0.0
		for word := range strings.FieldsSeq(head) {
			width = max(width, 6.8*float64(utf8.RuneCountInString(word)))
		}
		for _, row := range c.Rows {
			if j < len(row) {
				small := max(utf8.RuneCountInString(row[j].Note), utf8.RuneCountInString(row[j].Share))
				width = max(width, 6.4*float64(utf8.RuneCountInString(row[j].Text)), 5.6*float64(small))
			}
		}
		all += width + 8
	}
	return all
}

// cell is a cell of a table.
type cell struct{ Text, Note, Share, Class string }

// Write writes the page of r.
func Write(w io.Writer, r *bench.Result) error {
	make, ok := pages[r.Kind]
	if !ok {
		return fmt.Errorf("bench: report: there is no page for %q", r.Kind)
	}
	p, err := make(r)
	if err != nil {
		return err
	}
	return pageTemplate.Execute(w, p)
}

// pages makes the page of each kind of measurement.
var pages = map[string]func(*bench.Result) (*page, error){
	"blas":              blasPage,
	bench.GoKind:        goPage,
	bench.CrossoverKind: crossoverPage,
	bench.FitKind:       fitPage,
	bench.DevicesKind:   devicesPage,
	bench.ScaleKind:     scalePage,
	bench.RunsKind:      runsPage,
}

// newPage is a page with what every kind has.
func newPage(r *bench.Result, title string) *page {
	return &page{Title: title, Entrants: r.Entrants, Agreements: r.Agreements(), Facts: append(r.Lines(), r.Notes...)}
}

// stamp is the line under every picture: on what machine it was measured, when.
func stamp(r *bench.Result) string {
	return processor(r) + ", " + r.Started.UTC().Format("2006-01-02")
}

// sections makes a section for each value of the parameter by, with a card for
// each table.
func sections(r *bench.Result, tables []*bench.Table, by string, title func(value string) string) ([]*section, error) {
	var list []*section
	var current string
	for _, t := range tables {
		if value := t.Case.Get(by); len(list) == 0 || value != current {
			list, current = append(list, &section{Title: title(value)}), value
		}
		c := tableCard(t)
		c.Title = strings.TrimPrefix(c.Title, t.Case.Get(by)+", ")
		if err := list[len(list)-1].add(r, c, tableFigure(r, t)); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// add draws the picture of a card, puts the card into the section, and the
// curves that are new into the legend.
func (s *section) add(r *bench.Result, c card, f figure) error {
	var err error
	if c.Picture, err = f.draw(); err != nil {
		return err
	}
	c.Stamp = stamp(r)
	s.Cards = append(s.Cards, c)
	limits := 0
	for _, curve := range f.series {
		if curve.name != "" && !slices.ContainsFunc(s.Legend, func(k key) bool { return k.Name == curve.name }) {
			swatch, err := curve.swatch(limits)
			if err != nil {
				return err
			}
			s.Legend = append(s.Legend, key{swatch, curve.name})
		}
		if curve.limit {
			limits++
		}
	}
	return nil
}

// look gives every entrant of r one of its own, and the libraries the same ones
// whatever devices they are compared with.
func look(r *bench.Result, e *bench.Entrant) int {
	looks := map[string][]int{bench.OwnKind: {0, 4, 6}, bench.PeerKind: {1, 2, 3, 5, 7}, bench.CeilingKind: {0}}[e.Kind]
	before := 0
	for _, o := range r.Entrants {
		if o.Name == e.Name {
			break
		}
		if o.Kind == e.Kind {
			before++
		}
	}
	return looks[before%len(looks)]
}

// tableFigure is the picture of a table.
func tableFigure(r *bench.Result, t *bench.Table) figure {
	f := figure{name: t.Title(), x: t.Key, y: t.Unit(), logY: t.Quantity.Log}
	for _, e := range t.Entrants {
		s := series{name: e.Name, limit: e.Kind == bench.CeilingKind}
		s.look = look(r, e)
		for _, c := range t.Rows {
			if v, ok := t.Value(e, c.Run(e.Name)); ok {
				s.points = append(s.points, point{x: float64(c.Case.Int(t.Key)), y: v.Median, low: v.Min, high: v.Max})
			}
		}
		f.series = append(f.series, s)
	}
	return f
}

// tableCard is a table without its picture.
func tableCard(t *bench.Table) card {
	c := card{Title: t.Title() + ": " + t.Unit(), Head: []string{t.Key}, Notes: t.Left()}
	for _, e := range t.Entrants {
		c.Head = append(c.Head, e.Name)
	}
	for _, row := range t.Rows {
		cells := []cell{{Text: row.Case.Get(t.Key)}}
		for _, e := range t.Entrants {
			run := row.Run(e.Name)
			v, ok := t.Value(e, run)
			if !ok {
				cells = append(cells, cell{Text: "–"})
				continue
			}
			if e.Kind == bench.CeilingKind {
				cells = append(cells, cell{Text: bench.Figures(v.Median)})
				continue
			}
			x := cell{Text: bench.Figures(v.Median), Note: "once"}
			if len(run.Timings) > 1 {
				x.Note = bench.Figures(v.Min) + "–" + bench.Figures(v.Max)
			}
			if v.Outliers > 0 {
				x.Note += strings.Repeat("°", v.Outliers)
			}
			if run.Share > 0 {
				x.Share = bench.Percent(run.Share)
			}
			cells = append(cells, x)
		}
		c.Rows = append(c.Rows, cells)
	}
	return c
}
