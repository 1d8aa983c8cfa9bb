package report

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mercer-go/mercer/bench"
)

// crossing is a crossover of two devices on a grid: the primal takes n m² + m³/3
// nanoseconds, the dual m n² + n³/3, in three equal stages; the second device is
// twice as fast.
func crossing() *bench.Result {
	r := &bench.Result{
		Schema: bench.Schema, Kind: bench.CrossoverKind, Started: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
		Machine:  bench.Machine{Processor: "Abacus", CPUs: 2, System: "linux/amd64"},
		Settings: bench.Settings{Repeats: 4},
	}
	for _, device := range []string{"cpu/fast", "cuda/0"} {
		for _, form := range []string{bench.Primal, bench.Dual} {
			r.Entrants = append(r.Entrants, bench.Entrant{Name: "mercer " + device + " " + form, Kind: bench.OwnKind, Device: device, Method: form})
		}
	}
	r.Entrants = append(r.Entrants, bench.Entrant{Name: "ceiling cpu/fast", Kind: bench.CeilingKind})
	for _, precision := range []string{"float64", "float32"} {
		for _, n := range []int{100, 200, 400, 800} {
			for _, m := range []int{100, 200, 400} {
				c := bench.Cell{Case: bench.Case{{Name: "precision", Value: precision}, {Name: "n", Value: strconv.Itoa(n)}, {Name: "m", Value: strconv.Itoa(m)}}}
				for _, e := range r.Entrants[:4] {
					x, y := float64(n), float64(m)
					if e.Method == bench.Dual {
						x, y = y, x
					}
					s := (x*y*y + y*y*y/3) * 1e-9
					if e.Device == "cuda/0" {
						s /= 2
					}
					run := bench.Run{
						Entrant: e.Name, Work: s * 4e9, Ceiling: 5, Timings: []float64{s, s, s, s},
						Time: bench.Spread{Median: s, Min: 0.99 * s, Max: 1.01 * s, Outliers: 1},
						Rate: bench.Spread{Median: 4, Min: 3.96, Max: 4.04},
					}
					for _, name := range []string{bench.GramStage, bench.FactorStage, bench.SolveStage} {
						run.Stages = append(run.Stages, bench.Stage{Name: name, Work: run.Work / 3, Time: bench.Spread{Median: s / 3, Min: s / 3, Max: s / 3}})
					}
					c.Runs = append(c.Runs, run)
				}
				r.Cells = append(r.Cells, c)
			}
		}
	}
	return r
}

// TestCrossoverPage: the page answers in its first lines, and has a map, times
// against n, rates under the ceiling and devices side by side, each with a table
// and with machine and day.
func TestCrossoverPage(t *testing.T) {
	root := parse(t, write(t, crossing()))
	all := root.words()
	for _, want := range []string{
		"Primal or dual? Ridge regression on Abacus",
		"takes the faster form at 48 of 48 points; the wrong form costs up to",
		"cpu/fast float64 1.00 12 of 12",
		"Who wins, and by how much", "Time against n", "Rates of the stages under the ceiling", "Device against device", "What was fitted", "Every point",
		"100 below 100 100 ", "200 200 200 ", "400 400 400 ", // measured n beside n = m
	} {
		if !strings.Contains(all, want) {
			t.Errorf("there is no %q in %.3000s", want, all)
		}
	}
	names := map[string]int{}
	for _, c := range root.find("figure") {
		if !strings.Contains(c.words(), "Abacus, 2026-03-04") {
			t.Errorf("a card does not say where and when: %.200s", c.words())
		}
		if len(c.find("table")) != 1 {
			t.Errorf("a card has %d tables", len(c.find("table")))
		}
		for _, s := range c.find("svg") {
			names[s.attr("aria-label")]++
		}
	}
	for _, want := range []string{
		"who wins, cpu/fast, float64", "who wins, cuda/0, float32",
		"time against n, cpu/fast, float64, m = 200", "time against n, cpu/fast, float64, m = 400",
		"GFLOP/s against n = m, cuda/0, float64", "time of each device against n = m, float32",
	} {
		if names[want] != 1 {
			t.Errorf("%d pictures of %q: %v", names[want], want, names)
		}
	}
	// The GPU is twice as fast at every size.
	for _, c := range root.find("figure") {
		if text := c.words(); strings.Contains(text, "n = m cpu/fast cuda/0 ×") && strings.Count(text, " 2.00") < 3 {
			t.Errorf("the devices are not compared: %s", text)
		}
	}
}

// TestMap: a tile for each point in the colour of the one who wins, the deeper the
// clearer, with its text, and three lines over them.
func TestMap(t *testing.T) {
	root := parse(t, write(t, crossing()))
	svg := root.find("figure")[0].find("svg")[0]
	tiles := map[string]int{}
	strokes := 0
	for _, p := range svg.find("path") {
		style := p.attr("style")
		for _, c := range regexp.MustCompile(`fill:var\(--(side\d\d)\)`).FindAllStringSubmatch(style, -1) {
			tiles[c[1]]++
		}
		if strings.Contains(style, "stroke-dasharray") {
			strokes++
		}
	}
	// m = 100, 200, 400 and n = 100 … 800. Even on the diagonal: ratio 1, primal,
	// three times; next to it (n = 2m) the ratio is (4 + 8/3)/(2 + 1/3) = 2.86,
	// then (16 + 64/3)/(4 + 1/3) = 8.6 and above.
	want := map[string]int{"side00": 3, "side02": 3, "side03": 3, "side12": 2, "side13": 1}
	for name, n := range want {
		if tiles[name] != n {
			t.Errorf("%d tiles are %s, want %d: %v", tiles[name], name, n, tiles)
		}
	}
	// The level line n = m, and the model's where there is one.
	if strokes < 1 {
		t.Errorf("%d dashed lines", strokes)
	}
	text := svg.words()
	for _, want := range []string{"~P 1.00", "P 2.86", "D 2.86", "P 8.62", "D 8.62", "m features", "n samples", "800"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in the map: %s", want, text)
		}
	}
	legend := root.find("section")[0].find("li")
	if len(legend) < 4 {
		t.Errorf("%d keys in the legend", len(legend))
	}
}

// TestEdges: tiles meet halfway between the logarithms of the values.
func TestEdges(t *testing.T) {
	got := fmt.Sprintf("%.4g %.4g", edges([]int{1, 4, 100}), edges([]int{8}))
	if want := fmt.Sprintf("%.4g %.4g", []float64{0.5, 2, 20, 500}, []float64{8 / math.Sqrt2, 8 * math.Sqrt2}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestClip: a line is cut where it leaves the picture, on logarithmic axes.
func TestClip(t *testing.T) {
	got := clip([]point{{x: 1, y: 1}, {x: 100, y: 100}, {x: 10000, y: 100}}, 10, 1000, 1, 1e6)
	want := [][2]float64{{10, 10}, {100, 100}, {1000, 100}}
	if len(got) != len(want) {
		t.Fatalf("got %v", got)
	}
	for i, w := range want {
		// 40 halvings of a way of less than four powers of ten.
		if math.Abs(got[i].X/w[0]-1) > 1e-10 || math.Abs(got[i].Y/w[1]-1) > 1e-10 {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// TestNothingCrossed: a crossover of nothing, and one of a single point.
func TestNothingCrossed(t *testing.T) {
	r := crossing()
	r.Cells = r.Cells[:1]
	if text := parse(t, write(t, r)).words(); !strings.Contains(text, "takes the faster form at 2 of 2 points") {
		t.Error(text)
	}
	r.Cells = nil
	if text := parse(t, write(t, r)).words(); !strings.Contains(text, "Nothing was measured.") {
		t.Error(text)
	}
}
