package main

import (
	"bytes"
	"fmt"
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

	"github.com/mercer-go/mercer/internal/webpage"
)

// Size of a panel without legend: panelWidth × panelHeight in SVG, imageWidth × imageHeight in PNG.
const (
	panelWidth  = 13 * vg.Centimeter
	panelHeight = 10 * vg.Centimeter
	imageWidth  = 11 * vg.Centimeter
	imageHeight = 11.5 * vg.Centimeter
	imageDPI    = 150
)

// picture consists of rows that have equal numbers of panels. An HTML page may have no rows.
type picture struct {
	title  string
	rows   [][]*panel
	data   map[string]any // what --json prints in addition to the name of the file
	facts  []string       // lines of the HTML page about the data and the model
	tables []webpage.Card // tables of the HTML page
}

// render draws the picture in the format that the extension of the file name implies.
func (pic picture) render(path string, size pixels) ([]byte, error) {
	for _, row := range pic.rows {
		for _, p := range row {
			if p != nil && p.err != nil {
				return nil, p.err
			}
		}
	}
	ext := strings.ToLower(filepath.Ext(path))
	if ext == ".html" {
		return pic.htmlPage()
	}
	if p := pic.rows[0][0]; p.Title.Text == "" {
		p.Title.Text = pic.title
	}
	if ext == ".svg" {
		return svgPage(pic.rows, size, false)
	}
	return pngPage(pic.rows, size)
}

// pngPage draws rows of panels as a PNG.
func pngPage(rows [][]*panel, size pixels) ([]byte, error) {
	width, height := pageSize(rows, imageWidth, imageHeight)
	dpi, canvasOption := imageDPI, vgimg.UseWH(width, height)
	if size.width > 0 {
		dpi = max(1, int(72*size.scale(width, height)))
		canvasOption = vgimg.UseImage(image.NewRGBA(image.Rect(0, 0, size.width, size.height)))
	}
	img := vgimg.NewWith(canvasOption, vgimg.UseDPI(dpi))
	drawPanels(rows, draw.New(img))
	var buf bytes.Buffer
	_, err := vgimg.PngCanvas{Canvas: img}.WriteTo(&buf)
	return buf.Bytes(), err
}

// pixels is the size of a picture. The zero value means a size that depends on the content.
type pixels struct{ width, height int }

// parsePixels parses WIDTHxHEIGHT. It returns the zero value for "".
func parsePixels(text string) (p pixels, err error) {
	if text == "" {
		return p, nil
	}
	const minSize, maxSize = 100, 10000
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
	if min(p.width, p.height) < minSize || max(p.width, p.height) > maxSize {
		return p, usagef("--size: width and height must be from %d to %d pixels, got %s", minSize, maxSize, text)
	}
	return p, nil
}

// scale returns the largest number of pixels per point with which a drawing of the given size fits the picture.
func (p pixels) scale(width, height vg.Length) float64 {
	return min(float64(p.width)/width.Points(), float64(p.height)/height.Points())
}

// svgCanvas writes the width of each text into the SVG, so that the layout does not depend on the reader's fonts.
type svgCanvas struct {
	*vgsvg.Canvas
	widths      []vg.Length
	height      vg.Length
	interactive bool // the picture is for an HTML page, and has groups of series and hints
	hints       []webpage.Hint
}

// FillString implements vg.Canvas.
func (c *svgCanvas) FillString(f font.Face, pt vg.Point, text string) {
	c.widths = append(c.widths, f.Width(text))
	c.Canvas.FillString(f, pt, text)
}

var (
	texts   = regexp.MustCompile("<text ")
	prelude = regexp.MustCompile(`<svg width="[^"]*" height="[^"]*"`)
)

// svgPage draws rows of panels as an SVG picture, with the text widths of the font Liberation Sans. An interactive
// picture is for an HTML page: see hintGroup.
func svgPage(rows [][]*panel, size pixels, interactive bool) ([]byte, error) {
	width, height := pageSize(rows, panelWidth, panelHeight)
	if size.width > 0 {
		scale := size.scale(width, height)
		width, height = vg.Points(float64(size.width)/scale), vg.Points(float64(size.height)/scale)
	}
	canvas := &svgCanvas{Canvas: vgsvg.New(width, height), height: height, interactive: interactive}
	drawPanels(rows, draw.New(canvas))
	var buf bytes.Buffer
	_, err := canvas.WriteTo(&buf)
	i := 0
	data := buf.Bytes()
	if interactive {
		data = []byte(webpage.WithHints(string(grouped(data)), canvas.hints))
	}
	data = texts.ReplaceAllFunc(data, func(tag []byte) []byte {
		i++
		return fmt.Appendf(slices.Clone(tag), `textLength="%.4g" lengthAdjust="spacingAndGlyphs" `, canvas.widths[i-1].Points())
	})
	if size.width > 0 {
		data = prelude.ReplaceAll(data, fmt.Appendf(nil, `<svg width="%d" height="%d"`, size.width, size.height))
	}
	return bytes.ReplaceAll(data, []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arimo,Arial,Helvetica,sans-serif")), err
}
