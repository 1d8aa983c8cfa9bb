package main

import (
	"bytes"
	"fmt"
	"html/template"
	"image"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The size of one panel without its legend: of an SVG picture or a page, and of a PNG with its
// resolution.
const (
	panelWidth  = 13 * vg.Centimeter
	panelHeight = 10 * vg.Centimeter
	imageWidth  = 11 * vg.Centimeter
	imageHeight = 11.5 * vg.Centimeter
	imageDPI    = 150
)

// picture is rows of panels, as many in each.
type picture struct {
	title string
	rows  [][]*panel
	data  map[string]any // of --json, beside the name of the file
}

// render draws the picture in the format that the ending of a file says.
func (pic picture) render(path string, size pixels) ([]byte, error) {
	for _, row := range pic.rows {
		for _, p := range row {
			if p != nil && p.err != nil {
				return nil, p.err
			}
		}
	}
	if p := pic.rows[0][0]; p.Title.Text == "" {
		p.Title.Text = pic.title
	}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".svg":
		return svgPage(pic.rows, size)
	case ".html":
		return htmlPage(pic.title, pic.rows, size)
	}
	return pngPage(pic.rows, size)
}

// pngPage draws rows of panels as a PNG.
func pngPage(rows [][]*panel, size pixels) ([]byte, error) {
	width, height := pageSize(rows, imageWidth, imageHeight)
	dpi, of := imageDPI, vgimg.UseWH(width, height)
	if size.width > 0 {
		dpi = max(1, int(72*size.scale(width, height)))
		of = vgimg.UseImage(image.NewRGBA(image.Rect(0, 0, size.width, size.height)))
	}
	img := vgimg.NewWith(of, vgimg.UseDPI(dpi))
	drawPanels(rows, draw.New(img))
	var buf bytes.Buffer
	_, err := vgimg.PngCanvas{Canvas: img}.WriteTo(&buf)
	return buf.Bytes(), err
}

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

// pixels is the size of a picture; the zero value stands for its natural size.
type pixels struct{ width, height int }

// parsePixels reads WIDTHxHEIGHT; "" is the natural size.
func parsePixels(text string) (p pixels, err error) {
	if text == "" {
		return p, nil
	}
	const least, most = 100, 10000
	w, h, ok := strings.Cut(text, "x")
	if ok {
		p.width, err = strconv.Atoi(w)
	}
	if ok && err == nil {
		p.height, err = strconv.Atoi(h)
	}
	if !ok || err != nil {
		return p, usagef("--size: want WIDTHxHEIGHT in pixels, such as 1280x720, got %q", text)
	}
	if min(p.width, p.height) < least || max(p.width, p.height) > most {
		return p, usagef("--size: width and height must be from %d to %d pixels, got %s", least, most, text)
	}
	return p, nil
}

// scale is the number of pixels of a point in a picture in which something of a natural
// size fits.
func (p pixels) scale(width, height vg.Length) float64 {
	return min(float64(p.width)/width.Points(), float64(p.height)/height.Points())
}

// svgPicture draws rows of panels as an SVG element; attributes stand in place of its width
// and height in points.
func svgPicture(rows [][]*panel, size pixels, attributes string) ([]byte, error) {
	width, height := pageSize(rows, panelWidth, panelHeight)
	if size.width > 0 {
		scale := size.scale(width, height)
		width, height = vg.Points(float64(size.width)/scale), vg.Points(float64(size.height)/scale)
	}
	canvas := &svgCanvas{Canvas: vgsvg.New(width, height)}
	drawPanels(rows, draw.New(canvas))
	data, err := canvas.bytes()
	if attributes != "" {
		data = prelude.ReplaceAllLiteral(data, []byte("<svg "+attributes))
	}
	return data, err
}

// svgPage draws rows of panels as one SVG picture.
func svgPage(rows [][]*panel, size pixels) ([]byte, error) {
	attributes := ""
	if size.width > 0 {
		attributes = fmt.Sprintf(`width="%d" height="%d"`, size.width, size.height)
	}
	data, err := svgPicture(rows, size, attributes)
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
{{- with .Width}}
body { max-width: none; }
.panels { display: block; }
svg { width: {{.}}px; max-width: 100%; }
{{- end}}
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
var inked = strings.NewReplacer("#FFFFFF", "var(--paper)", "#000000", "var(--ink)", "#202020", "var(--ink)", "#E0E0E0", "var(--rule)")

// htmlPage draws panels as a page, each of the given size.
func htmlPage(title string, rows [][]*panel, size pixels) ([]byte, error) {
	page := struct {
		Title  string
		Width  int
		Panels []template.HTML
	}{Title: title, Width: size.width}
	for _, row := range rows {
		for _, p := range row {
			if p == nil {
				continue
			}
			data, err := svgPicture([][]*panel{{p}}, size, fmt.Sprintf(`role="img" aria-label="%s"`, template.HTMLEscapeString(p.Title.Text)))
			if err != nil {
				return nil, err
			}
			// Black is the initial color of SVG: what has none is black too.
			text := strings.Replace(inked.Replace(string(data)), "<g ", `<g fill="var(--ink)" `, 1)
			page.Panels = append(page.Panels, template.HTML(text))
		}
	}
	var buf bytes.Buffer
	err := pageOf.Execute(&buf, page)
	return buf.Bytes(), err
}
