package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
)

// inFolder writes the files to a new folder, runs the command there, and returns the folder.
func inFolder(t *testing.T, files map[string]string, args ...string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(folder)
	var out, errs bytes.Buffer
	if code := run(args, strings.NewReader(""), &out, &errs); code != 0 {
		t.Fatalf("mercer %s: %d: %s", strings.Join(args, " "), code, errs.String())
	}
	return folder
}

// svgOf draws a plot of a table and returns the SVG picture.
func svgOf(t *testing.T, table string, args ...string) string {
	t.Helper()
	folder := inFolder(t, map[string]string{"t.csv": table}, append(append([]string{"plot"}, args...), "--quiet", "--out", "p.svg", "t.csv")...)
	data, err := os.ReadFile(filepath.Join(folder, "p.svg"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

type coordinates struct{ x, y float64 }

var (
	svgPath  = regexp.MustCompile(`(?s)<path d="([^"]*)" style="([^"]*)"`)
	svgPoint = regexp.MustCompile(`[ML]([-0-9.e]+),([-0-9.e]+)`)
	svgArc   = regexp.MustCompile(`^M([-0-9.e]+),([-0-9.e]+)A([-0-9.e]+),`)
)

// circles returns the centers of the circles with the given style.
func circles(t *testing.T, svg, style string) (centers []coordinates) {
	for _, m := range paths(t, svg, style) {
		if len(m) == 1 {
			centers = append(centers, m[0])
		}
	}
	return centers
}

// paths returns the points of each path with the given style. For a circle it returns only the center.
func paths(t *testing.T, svg, style string) (list [][]coordinates) {
	t.Helper()
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, m := range svgPath.FindAllStringSubmatch(svg, -1) {
		if m[2] != style {
			continue
		}
		var points []coordinates
		if arc := svgArc.FindStringSubmatch(m[1]); arc != nil {
			points = []coordinates{{number(arc[1]) - number(arc[3]), number(arc[2])}}
		} else {
			for _, p := range svgPoint.FindAllStringSubmatch(m[1], -1) {
				points = append(points, coordinates{number(p[1]), number(p[2])})
			}
		}
		list = append(list, points)
	}
	return list
}

// maxRounding is the largest rounding error of a coordinate < 1000 that is written with five digits.
const maxRounding = 0.5 * 1e-2

const (
	ridgeBall = "fill:#0071B1;fill-opacity:0.21961"
	lassoBall = "fill:#E59E00;fill-opacity:0.21961"
	ringStyle = "fill:none;stroke:#000000;stroke-width:0.5"
	planeLine = "fill:none;stroke:#000000;stroke-width:1.6"
)

func extents(points []coordinates) (width, height float64) {
	low, high := points[0], points[0]
	for _, p := range points {
		low, high = coordinates{min(low.x, p.x), min(low.y, p.y)}, coordinates{max(high.x, p.x), max(high.y, p.y)}
	}
	return high.x - low.x, high.y - low.y
}

// TestBallsAreRound checks that the bound of ridge is a circle on the page, and the bound of lasso a square with a
// corner at the bottom, for several shapes of the page, ranges of the weights and labels.
func TestBallsAreRound(t *testing.T) {
	data, err := os.ReadFile("../../docs/pictures/ball.csv")
	if err != nil {
		t.Fatal(err)
	}
	const steep = "a long name of a column,b,y\n1,0,100000\n0,1,1\n-1,0,-100000\n0,-1,-1\n1,1,100001\n"
	for name, c := range map[string]struct {
		table string
		args  []string
	}{
		"default":            {string(data), nil},
		"wide":               {string(data), []string{"--size", "1280x720"}},
		"tall":               {string(data), []string{"--size", "300x900"}},
		"numbers as given":   {string(data), []string{"--textbook"}},
		"one weight is most": {steep, []string{"--radius", "20000"}},
	} {
		t.Run(name, func(t *testing.T) {
			svg := svgOf(t, c.table, append([]string{"ball", "--target", "y"}, c.args...)...)
			for _, style := range []string{ridgeBall, lassoBall} {
				balls := paths(t, svg, style)
				if len(balls) != 1 {
					t.Fatalf("%d areas %s", len(balls), style)
				}
				if w, h := extents(balls[0]); math.Abs(w-h) > 4*maxRounding || w < 10*maxRounding {
					t.Errorf("%s is %v wide and %v high", style, w, h)
				}
			}
		})
	}
}

// TestMarginIsPerpendicular draws a support vector machine with a linear kernel and one support vector per class. On
// the page, the boundary must be the perpendicular bisector of the segment between the two support vectors.
func TestMarginIsPerpendicular(t *testing.T) {
	data, err := os.ReadFile("../../docs/pictures/planes.csv")
	if err != nil {
		t.Fatal(err)
	}
	planes := string(data)
	// scaled is the table planes with the second column multiplied by 1000.
	scaled := regexp.MustCompile(`(?m),([0-9.]+),(a|b)$`).ReplaceAllStringFunc(planes, func(s string) string {
		cells := strings.Split(s, ",")
		return "," + cells[1] + "e3," + cells[2]
	})
	for name, c := range map[string]struct {
		table string
		args  []string
	}{
		"numbers as given": {planes, []string{"--textbook"}},
		"standardized":     {planes, nil},
		"turned":           {planes, []string{"--x", "x2", "--y", "x1", "--textbook"}},
		"other units":      {scaled, nil},
		"wide":             {scaled, []string{"--size", "1920x400"}},
		"narrow":           {planes, []string{"--size", "200x800", "--textbook"}},
		"one outlying row": {planes + "12,4,b\n", []string{"--textbook"}},
	} {
		t.Run(name, func(t *testing.T) {
			svg := svgOf(t, c.table, append([]string{"boundary", "--learner", "svc", "--kernel", "linear()", "--C", "1e6", "--target", "class"}, c.args...)...)
			rings, lines := circles(t, svg, ringStyle), paths(t, svg, planeLine)
			if len(rings) != 3 || len(lines) != 2 { // these numbers include one ring and one line in the legend
				t.Fatalf("%d rings, %d lines", len(rings), len(lines))
			}
			p, q, line := rings[0], rings[1], lines[0]
			a, b := line[0], line[len(line)-1]
			sx, sy, lx, ly := q.x-p.x, q.y-p.y, b.x-a.x, b.y-a.y
			s, l := math.Hypot(sx, sy), math.Hypot(lx, ly)
			// Each coordinate has a rounding error of at most maxRounding, and each end of the segment and of the
			// boundary an error of at most √2·maxRounding.
			if cos, bound := (sx*lx+sy*ly)/(s*l), 2*math.Sqrt2*maxRounding*(1/s+1/l); math.Abs(cos) > bound {
				t.Errorf("the cosine of the angle is %v, more than rounding %v", cos, bound)
			}
			middle := ((p.x+q.x)/2-a.x)*ly/l - ((p.y+q.y)/2-a.y)*lx/l
			// The error of the solver moves the boundary by at most 1e-3 of the distance s/2.
			if math.Abs(middle) > 3*math.Sqrt2*maxRounding+1e-3*s/2 {
				t.Errorf("the plane is %v beside the middle", middle)
			}
			if strings.Contains(svg, "not to scale") {
				t.Error("the title says not to scale")
			}
		})
	}
	// The second column is multiplied by 1000 and not standardized, so that the axes are not to scale.
	svg := svgOf(t, scaled, "boundary", "--learner", "svc", "--kernel", "linear()", "--target", "class", "--textbook")
	if !strings.Contains(svg, "svc, axes not to scale") {
		t.Error("axes of 1 to 1000 do not say that they are not to scale")
	}
}

// TestZeroLevel checks that a line f = 0 on which f does not change its sign is drawn as a line, and that an area
// f = 0 is gray. On XOR with the kernel (xᵀx')², the kernel perceptron finds f = (x1 + x2)², which is 0 at both
// points of class −1 (Bunescu, Kernel methods: the worked example of XOR).
func TestZeroLevel(t *testing.T) {
	quadratic := []string{"--learner", "kernel-perceptron", "--no-intercept", "--kernel", "polynomial(degree=2,c=0)"}
	for name, c := range map[string]struct {
		table string
		args  []string
		class string
		slope float64 // slope of the line f = 0 on the page; 0 means that an area f = 0 is expected
	}{
		"x1 + x2":          {"x1,x2,y\n1,1,1\n-1,1,-1\n-1,-1,1\n1,-1,-1\n", append(quadratic, "--textbook"), "-1", -1},
		"x1 - x2":          {"x1,x2,y\n1,-1,1\n1,1,-1\n-1,1,1\n-1,-1,-1\n", append(quadratic, "--textbook"), "-1", 1},
		"off the grid":     {"x1,x2,y\n1,2,1\n-2,1,-1\n-1,-2,1\n2,-1,-1\n", append(quadratic, "--textbook"), "-1", -0.5},
		"steep":            {"x1,x2,y\n3,1,1\n-1,3,-1\n-3,-1,1\n1,-3,-1\n", append(quadratic, "--textbook"), "-1", -3},
		"standardized":     {"x1,x2,y\n7,10,1\n3,10,-1\n3,8,1\n7,8,-1\n", append(quadratic, "--shuffle=false"), "-1", -1},
		"fourth power":     {"x1,x2,y\n1,1,1\n-1,1,-1\n-1,-1,1\n1,-1,-1\n", []string{"--learner", "kernel-perceptron", "--kernel", "polynomial(degree=4,c=0)", "--no-intercept", "--textbook"}, "-1", -1},
		"zero by rounding": {"x1,x2,y\n0.1,0.2,a\n0.6,0.5,a\n0.3,0.4,b\n0.4,0.3,b\n", []string{"--learner", "svc", "--kernel", "linear()", "--C", "0.001", "--textbook"}, "a", 0},
		"equal means":      {"x1,x2,y\n0.1,0.7,a\n0.9,0.2,a\n0.3,0.4,b\n0.7,0.5,b\n", []string{"--learner", "svc", "--kernel", "linear()", "--C", "0.01"}, "a", 0},
		"XOR by a plane":   {"x1,x2,y\n1,1,1\n-1,1,-1\n-1,-1,1\n1,-1,-1\n", []string{"--learner", "svc", "--kernel", "linear()"}, "-1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			svg := svgOf(t, c.table, append([]string{"boundary", "--target", "y"}, c.args...)...)
			if !strings.Contains(svg, "f = 0: class "+c.class+"<") {
				t.Errorf("the legend does not say the class of f = 0")
			}
			gray := len(paths(t, svg, "fill:#D0D0D0"))
			areas := len(paths(t, svg, ridgeBall)) // number of areas in the color of class −1
			if c.slope == 0 {
				if gray != 2 || areas != 0 { // one gray area in the picture and one in the legend
					t.Errorf("%d gray areas, %d of the first class", gray, areas)
				}
				return
			}
			if gray != 0 || areas != 0 {
				t.Errorf("%d gray areas and %d specks of the first class", gray, areas)
			}
			lines := paths(t, svg, planeLine)
			if len(lines) < 2 {
				t.Fatalf("%d lines f = 0", len(lines))
			}
			for _, line := range lines[:len(lines)-1] {
				a, b := line[0], line[len(line)-1]
				if l := math.Hypot(b.x-a.x, b.y-a.y); l < 150 {
					t.Errorf("a line f = 0 is only %v long", l)
				}
				for _, p := range line {
					// Each point has an error of a thousandth of a cell, whose width is 1.5, and a rounding error.
					if crossProduct := (p.y-a.y)*(b.x-a.x) - (p.x-a.x)*(b.y-a.y); math.Abs(crossProduct)/math.Hypot(b.x-a.x, b.y-a.y) > 3*(math.Sqrt2*maxRounding+2e-3) {
						t.Fatalf("a point of f = 0 lies %v beside its line", crossProduct)
					}
				}
				if slope := (b.y - a.y) / (b.x - a.x); math.Abs(slope/c.slope-1) > 1e-3 {
					t.Errorf("f = 0 has slope %v, want %v", slope, c.slope)
				}
			}
		})
	}
}

// TestSize checks that --size is the size of a picture in pixels.
func TestSize(t *testing.T) {
	table := "x1,x2,y\n1,1,1\n-1,1,-1\n-1,-1,1\n1,-1,-1\n"
	args := []string{"plot", "boundary", "--learner", "svc", "--target", "y", "--quiet", "--size", "640x360", "--out"}
	for _, name := range []string{"p.png", "p.svg"} {
		folder := inFolder(t, map[string]string{"t.csv": table}, append(args, name, "t.csv")...)
		data, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		switch name {
		case "p.png":
			if w, h := int(data[18])<<8|int(data[19]), int(data[22])<<8|int(data[23]); w != 640 || h != 360 { // width and height in the header of the PNG
				t.Errorf("PNG of %d by %d", w, h)
			}
		case "p.svg":
			if !bytes.Contains(data, []byte(`<svg width="640" height="360" viewBox`)) {
				t.Errorf("%.300s", data)
			}
			if err := xml.Unmarshal(data, new(struct{})); err != nil { // returns an error for malformed XML
				t.Error(err)
			}
		}
	}
}

// TestManyClasses checks that each of up to 60 classes has its own marker, and that the legend of 26 classes is
// complete and below the axes.
func TestManyClasses(t *testing.T) {
	markers := map[string]bool{}
	for _, n := range []int{2, 8, 9, 26, 60} {
		for k := range n {
			m := classMarker(k, n)
			r, g, b, _ := m.Color.RGBA()
			markers[strings.Join([]string{strconv.Itoa(n), strconv.Itoa(int(r)), strconv.Itoa(int(g)), strconv.Itoa(int(b)), fmt.Sprintf("%T", m.Shape)}, " ")] = true
		}
	}
	if want := 2 + 8 + 9 + 26 + 60; len(markers) != want {
		t.Errorf("%d marks of %d classes", len(markers), want)
	}
	var table strings.Builder
	table.WriteString("x,y,class\n")
	for k := range 26 {
		for i := range 3 {
			x, y := float64(k%6)+0.1*float64(i), float64(k/6)+0.1*float64(i%2)
			table.WriteString(fourDigits(x) + "," + fourDigits(y) + ",class " + string(rune('A'+k)) + "\n")
		}
	}
	svg := svgOf(t, table.String(), "boundary", "--learner", "kernel-knn", "--target", "class")
	for k := range 26 {
		// The name of a class is in the legend and in the region of the class.
		if name := ">class " + string(rune('A'+k)) + "<"; strings.Count(svg, name) != 2 {
			t.Errorf("%s stands %d times in the picture", name, strings.Count(svg, name))
		}
	}
	// Long names appear only in the legend.
	longNames := strings.ReplaceAll(table.String(), ",class ", ",a long description of the class ")
	svg = svgOf(t, longNames, "boundary", "--learner", "kernel-knn", "--target", "class")
	if strings.Count(svg, ">a long description of the class A<") != 1 {
		t.Error("a long name is not once in the picture")
	}
	if len(circles(t, svg, ringStyle)) != 0 {
		t.Error("points of a learner that keeps every row are ringed")
	}
}

// TestFlatPicturesAreLow checks pictures whose axes have the same scale and whose points lie in a narrow band: there
// is no empty space above the title, unless --size requires it.
func TestFlatPicturesAreLow(t *testing.T) {
	const table = "x,y,c\n0,0,a\n3,1,b\n1,1,a\n2,0,b\n0,1,a\n3,0,b\n"
	title := regexp.MustCompile(`(?s)x="[-0-9.]+" y="([-0-9.]+)" transform="[^"]*"\s*style="[^"]*font-size:12px">svc, linear\(\)<`)
	for _, c := range []struct {
		size string
		low  bool
	}{{"", true}, {"700x700", false}} {
		args := []string{"boundary", "--learner", "svc", "--kernel", "linear()", "--no-standardize", "--target", "c"}
		if c.size != "" {
			args = append(args, "--size", c.size)
		}
		svg := svgOf(t, table, args...)
		head := regexp.MustCompile(`<svg width="[^"]*" height="[^"]*" viewBox="0 0 ([0-9.]+) ([0-9.]+)"`).FindStringSubmatch(svg)
		match := title.FindStringSubmatch(svg)
		if head == nil || match == nil {
			t.Fatalf("no size or no title: %.300s", svg)
		}
		height, err := strconv.ParseFloat(head[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		y, err := strconv.ParseFloat(match[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		// The baseline of the title is at most titleHeight plus a margin of 3 mm below the upper edge.
		if distance, maxDistance := height+y, (titleHeight + 3*vg.Millimeter).Points(); (distance <= maxDistance) != c.low {
			t.Errorf("size %q: %.4g points above the title, %.4g are its space", c.size, distance, maxDistance)
		}
	}
}
