// Package webpage writes a page of tables and pictures in HTML: one file that needs no network, is readable on a
// phone and on paper, and uses the reader's light or dark color scheme.
//
// A script in the page sorts the tables, shows the values of the points under the pointer and selects one of
// several series. The page has the same content if scripts are turned off. It is also well-formed XML.
package webpage

import (
	_ "embed"
	"html/template"
	"io"
)

//go:embed page.html
var pageText string

//go:embed page.js
var script string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// Page is a title with cards.
type Page struct {
	Title  string
	Lead   string   // the main result, in one sentence
	Facts  []string // lines about the data and the machine
	Cards  []Card
	Footer string
}

// Script returns the script of the page. The CDATA markers make the script valid in XML.
func (Page) Script() template.HTML {
	return template.HTML("<script>/*<![CDATA[*/\n" + script + "/*]]>*/</script>")
}

// Card is a picture or a table or both.
type Card struct {
	Title   string
	Series  string // the series that the card belongs to, or ""
	Wide    bool   // whether the card is as wide as the page
	Picture template.HTML
	Stamp   string // a line below the picture
	Legend  []Key
	Head    []string
	Rows    [][]Cell // rows as long as Head; the first cell names the row
	Notes   []string
}

// Words reports whether column i is aligned like text. This holds for column 0, and for a column
// whose cell in row 0 has Words set.
func (c Card) Words(i int) bool { return i == 0 || len(c.Rows) > 0 && c.Rows[0][i].Words }

// Key is a line of a legend.
type Key struct {
	Swatch template.HTML
	Name   string
}

// Cell is a cell of a table.
type Cell struct {
	Text  string
	Note  string // small text below Text
	Class string // a class of the style sheet: good, bad, primal or dual
	Words bool   // whether the cell is aligned like text
}

// Write writes the page.
func (p Page) Write(w io.Writer) error { return pageTemplate.Execute(w, p) }
