// Package browser renders pages in a headless browser, to test programs that write these pages.
package browser

import (
	"bytes"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/internal/required"
)

// Check renders a page three times: in a wide window with light colors, in a window as wide as a phone with dark
// colors, and for printing on A4. Each picture is an svg in a figure, and must have a size, lines and colors. The
// page must have at most the given number of pictures, and at least one if it contains an svg. No element may
// extend beyond the right edge, except tables that scroll on screens. The console must be empty.
func (b *Browser) Check(t *testing.T, page string, pictures int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(page), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, window := range []struct {
		name        string
		width       int
		dark, paper bool
	}{{"wide", 1280, false, false}, {"phone", 390, true, false}, {"paper", 718, false, true}} {
		t.Run(window.name, func(t *testing.T) {
			media, scheme := "screen", "light"
			if window.paper {
				media = "print"
			}
			if window.dark {
				scheme = "dark"
			}
			p := b.open(t, "file://"+file, window.width, 5000, fields{"media": media, "features": []fields{{"name": "prefers-color-scheme", "value": scheme}}})
			d := p.rendering()
			if window.paper && d.Out > 0 {
				t.Errorf("%d tables are wider than their container", d.Out)
			}
			if len(p.Console) > 0 {
				t.Errorf("the console says:\n%s", strings.Join(p.Console, "\n"))
			}
			if d.View != window.width || d.Content > d.View {
				t.Errorf("the page is %d wide in a window of %d", d.Content, d.View)
			}
			wantPicture := strings.Contains(page, "<svg")
			if len(d.Boxes) > 0 != wantPicture || len(d.Boxes) > pictures {
				t.Fatalf("%d pictures in the browser, %d cards", len(d.Boxes), pictures)
			}
			visible := 0
			for i, box := range d.Boxes {
				if box.Dx() < 280 || box.Dy() < 180 || box.Max.X > d.View {
					t.Errorf("picture %d is at %v", i, box)
					continue
				}
				if !box.In(d.picture.Bounds()) {
					continue // the screenshot ends above this picture
				}
				visible++
				if covered, colored := d.ink(box); covered < 0.01 || colored < 0.002 {
					t.Errorf("picture %d: %.2f %% is drawn on, %.2f %% colored", i, 100*covered, 100*colored)
				}
			}
			if wantPicture && visible == 0 {
				t.Error("no picture was in the window")
			}
			corner := rgb(d.picture.At(1, 1))
			if dark := corner[0] < 0x40; dark != window.dark {
				t.Errorf("the paper is %v", corner)
			}
		})
	}
}

// chromium returns the path of the browser, or skips the test with the reason.
func chromium(t testing.TB) string {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome", "chrome"}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	required.SkipOrFail(t, "chromium", "no browser to draw the pages in: none of "+strings.Join(names, ", ")+" is on the path")
	return ""
}

// measure is an expression in JavaScript: the widths of the window and of the content, the number of tables that are
// too wide, and the positions of the pictures.
const measure = `JSON.stringify({
	View: innerWidth,
	Content: document.documentElement.scrollWidth,
	Out: [...document.querySelectorAll(".scroll table")].filter(t =>
		t.getBoundingClientRect().right > t.closest(".scroll").getBoundingClientRect().right + 1).length,
	Boxes: [...document.querySelectorAll("figure > svg")].map(s => {
		const b = s.getBoundingClientRect();
		return {Min: {X: Math.round(b.left), Y: Math.round(b.top)}, Max: {X: Math.round(b.right), Y: Math.round(b.bottom)}};
	}),
})`

// rendering holds a page as rendered by the browser.
type rendering struct {
	picture       image.Image
	View, Content int // widths of the window and of the page's content, in pixels
	Out           int // number of tables that are wider than their containers
	Boxes         []image.Rectangle
}

// rendering measures the page, and takes a picture of its visible part.
func (p *Page) rendering() (d rendering) {
	p.t.Helper()
	if err := json.Unmarshal([]byte(p.Text(measure)), &d); err != nil {
		p.t.Fatal(err)
	}
	var err error
	if d.picture, err = png.Decode(bytes.NewReader(p.Picture())); err != nil {
		p.t.Fatal(err)
	}
	return d
}

// ink returns the fractions of a box's pixels that differ from the color of its first pixel, and that are not gray.
func (d rendering) ink(box image.Rectangle) (covered, colored float64) {
	background := rgb(d.picture.At(box.Min.X, box.Min.Y))
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			v := rgb(d.picture.At(x, y))
			difference := 0
			for i := range v {
				difference = max(difference, v[i]-background[i], background[i]-v[i])
			}
			if difference > 40 {
				covered++
			}
			if slices.Max(v[:])-slices.Min(v[:]) > 60 {
				colored++
			}
		}
	}
	area := float64(box.Dx() * box.Dy())
	return covered / area, colored / area
}

func rgb(c color.Color) [3]int {
	r, g, b, _ := c.RGBA()
	return [3]int{int(r >> 8), int(g >> 8), int(b >> 8)}
}
