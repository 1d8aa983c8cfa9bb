package main

import (
	"bytes"
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The size of one panel.
const (
	panelWidth  = 13 * vg.Centimeter
	panelHeight = 10 * vg.Centimeter
)

// svgCanvas gives each text the width by which it was laid out, whatever font a reader has.
type svgCanvas struct {
	*vgsvg.Canvas
	widths []vg.Length
}

// FillString implements vg.Canvas.
func (c *svgCanvas) FillString(f font.Face, at vg.Point, text string) {
	c.widths = append(c.widths, f.Width(text))
	c.Canvas.FillString(f, at, text)
}

// bytes is the picture.
func (c *svgCanvas) bytes() ([]byte, error) {
	var buf bytes.Buffer
	_, err := c.WriteTo(&buf)
	i := 0
	return texts.ReplaceAllFunc(buf.Bytes(), func(tag []byte) []byte {
		i++
		return fmt.Appendf(slices.Clone(tag), `textLength="%.4g" lengthAdjust="spacingAndGlyphs" `, c.widths[i-1].Points())
	}), err
}

var texts = regexp.MustCompile("<text ")

// svgPage draws rows of panels as one SVG picture.
func svgPage(rows [][]*plot.Plot) ([]byte, error) {
	canvas := &svgCanvas{Canvas: vgsvg.New(vg.Length(len(rows[0]))*panelWidth, vg.Length(len(rows))*panelHeight)}
	tiles := draw.Tiles{Rows: len(rows), Cols: len(rows[0]), PadX: 4 * vg.Millimeter, PadY: 4 * vg.Millimeter, PadTop: 3 * vg.Millimeter, PadBottom: 3 * vg.Millimeter, PadLeft: 3 * vg.Millimeter, PadRight: 4 * vg.Millimeter}
	for i, canvases := range plot.Align(rows, tiles, draw.New(canvas)) {
		for j, c := range canvases {
			if rows[i][j] != nil {
				rows[i][j].Draw(c)
			}
		}
	}
	data, err := canvas.bytes()
	return bytes.ReplaceAll(data, []byte("font-family:Liberation Sans"), []byte("font-family:"+fonts)), err
}

// fonts have the widths of Liberation Sans, by which the text was laid out.
const fonts = "Liberation Sans,Arimo,Arial,Helvetica,sans-serif"

// pageOf is one page that needs nothing else; pictures follow the reader's light or
// dark, and fill a narrow screen.
var pageOf = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta name="color-scheme" content="light dark"/>
<title>{{.Title}}</title>
<style>
:root { --paper: #ffffff; --ink: #1c2128; --rule: #e0e0e0; }
@media (prefers-color-scheme: dark) { :root { --paper: #11151a; --ink: #e4e8ec; --rule: #313a44; } }
body { margin: 0 auto; padding: 1rem; max-width: 76rem; background: var(--paper); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.3rem; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); gap: 1rem; }
svg { display: block; width: 100%; height: auto; }
svg text { font-family: ` + fonts + ` !important; }
</style>
</head>
<body>
<h1>{{.Title}}</h1>
<div class="panels">
{{range .Panels}}<figure style="margin:0">{{.}}</figure>
{{end}}</div>
</body>
</html>
`))

// prelude is what vgsvg writes before the first group, up to the width and height.
var prelude = regexp.MustCompile(`(?s)^.*?<svg width="[^"]*" height="[^"]*"`)

// inked replaces the colors of text, lines and grids, as vgsvg writes them, by those of
// the page.
var inked = strings.NewReplacer("#000000", "var(--ink)", "#202020", "var(--ink)", "#E0E0E0", "var(--rule)")

// htmlPage draws panels as a page.
func htmlPage(title string, rows [][]*plot.Plot) ([]byte, error) {
	page := struct {
		Title  string
		Panels []template.HTML
	}{Title: title}
	for _, row := range rows {
		for _, p := range row {
			if p == nil {
				continue
			}
			p.BackgroundColor = nil
			name := template.HTMLEscapeString(p.Title.Text)
			canvas := &svgCanvas{Canvas: vgsvg.New(panelWidth, panelHeight)}
			p.Draw(draw.Crop(draw.New(canvas), 2*vg.Millimeter, -3*vg.Millimeter, 2*vg.Millimeter, -2*vg.Millimeter))
			data, err := canvas.bytes()
			if err != nil {
				return nil, err
			}
			text := prelude.ReplaceAllLiteralString(string(data), fmt.Sprintf(`<svg role="img" aria-label="%s"`, name))
			// Black is the initial color of SVG: what has none is black too.
			text = strings.Replace(inked.Replace(text), "<g ", `<g fill="var(--ink)" `, 1)
			page.Panels = append(page.Panels, template.HTML(text))
		}
	}
	var buf bytes.Buffer
	err := pageOf.Execute(&buf, page)
	return buf.Bytes(), err
}
