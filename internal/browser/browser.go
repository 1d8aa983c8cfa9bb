// Package browser renders pages in a headless browser, to test programs that write these pages.
package browser

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mercer-go/mercer/internal/required"
)

// Check renders a page three times: in a wide window with light colors, in a window as wide as a phone with dark
// colors, and for printing on A4. Each picture is an svg in a figure, and must have a size, lines and colors. The
// page must have at most the given number of pictures, and at least one if it contains an svg. No element may
// extend beyond the right edge, except tables that scroll on screens. The console must be empty. Without a browser
// the test is skipped, or fails if MERCER_REQUIRE requires a browser.
func Check(t *testing.T, page string, pictures int) {
	t.Helper()
	browser := chromium(t)
	for _, window := range []struct {
		name        string
		width       int
		dark, paper bool
	}{{"wide", 1280, false, false}, {"phone", 500, true, false}, {"paper", 718, false, true}} { // 500 is the smallest width that the browser accepts
		t.Run(window.name, func(t *testing.T) {
			page := page
			if window.paper {
				page = strings.Replace(page, "@media print", "@media all", 1)
			}
			d := browse(t, browser, page, window.width, 5000, window.dark)
			if window.paper && d.out > 0 {
				t.Errorf("%d tables are wider than their container", d.out)
			}
			if len(d.console) > 0 {
				t.Errorf("the console says:\n%s", strings.Join(d.console, "\n"))
			}
			if d.view != window.width || d.content > d.view {
				t.Errorf("the page is %d wide in a window of %d", d.content, d.view)
			}
			wantPicture := strings.Contains(page, "<svg")
			if len(d.boxes) > 0 != wantPicture || len(d.boxes) > pictures {
				t.Fatalf("%d pictures in the browser, %d cards", len(d.boxes), pictures)
			}
			visible := 0
			for i, box := range d.boxes {
				if box.Dx() < 280 || box.Dy() < 180 || box.Max.X > d.view {
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
func chromium(t *testing.T) string {
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

// measure is a script that adds to a page: the widths of the window and of the content, the number of tables that
// are too wide, and the positions of the pictures.
const measure = `<script>
const boxes = [...document.querySelectorAll("figure > svg")].map(s => {
  const b = s.getBoundingClientRect();
  return [b.left, b.top, b.width, b.height].map(Math.round).join(" ");
});
const out = [...document.querySelectorAll(".scroll table")].filter(t =>
  t.getBoundingClientRect().right > t.closest(".scroll").getBoundingClientRect().right + 1);
const p = document.createElement("pre");
p.id = "measured";
p.textContent = [innerWidth, document.documentElement.scrollWidth, out.length].join(" ") + boxes.map(b => ";" + b).join("");
document.body.append(p);
</script></body>`

// rendering holds a page as rendered by the browser.
type rendering struct {
	picture       image.Image
	view, content int // widths of the window and of the page's content, in pixels
	out           int // number of tables that are wider than their containers
	boxes         []image.Rectangle
	console       []string
}

// browse renders a page in a window of the given size, with the dark color scheme if dark is set.
func browse(t *testing.T, browser, page string, width, height int, dark bool) rendering {
	t.Helper()
	dir := t.TempDir()
	file, shot := filepath.Join(dir, "page.html"), filepath.Join(dir, "page.png")
	if err := os.WriteFile(file, []byte(strings.Replace(page, "</body>", measure, 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	scheme := 1
	if dark {
		scheme = 0
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	c := exec.CommandContext(ctx, browser,
		"--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-background-networking",
		"--user-data-dir="+filepath.Join(dir, "profile"), "--enable-logging=stderr", "--virtual-time-budget=1000",
		fmt.Sprintf("--blink-settings=preferredColorScheme=%d", scheme), fmt.Sprintf("--window-size=%d,%d", width, height),
		"--dump-dom", "--screenshot="+shot, "file://"+file)
	var out, log bytes.Buffer
	c.Stdout, c.Stderr = &out, &log
	if err := c.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", browser, err, log.String())
	}
	d := rendering{console: regexp.MustCompile(`(?m)^.*CONSOLE.*$`).FindAllString(log.String(), -1)}
	match := regexp.MustCompile(`<pre id="measured">([0-9]+) ([0-9]+) ([0-9]+)((?:;[-0-9 ]+)*)</pre>`).FindStringSubmatch(out.String())
	if match == nil {
		t.Fatalf("the page was not loaded to its end: %.300s", out.String())
	}
	d.view, d.content, d.out = parseInt(t, match[1]), parseInt(t, match[2]), parseInt(t, match[3])
	for box := range strings.SplitSeq(strings.TrimPrefix(match[4], ";"), ";") {
		var v []int
		for word := range strings.FieldsSeq(box) {
			v = append(v, parseInt(t, word))
		}
		if len(v) == 4 {
			d.boxes = append(d.boxes, image.Rect(v[0], v[1], v[0]+v[2], v[1]+v[3]))
		}
	}
	f, err := os.Open(shot)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if d.picture, err = png.Decode(f); err != nil {
		t.Fatal(err)
	}
	return d
}

func parseInt(t *testing.T, text string) int {
	t.Helper()
	v, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
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
