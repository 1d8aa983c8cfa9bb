package dataset_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/dataset"
)

// csvOf returns a CSV file of n rows with weights from 0 to 3. If repeated is set, each row occurs as many times as
// its weight says.
func csvOf(n int, repeated bool) string {
	var b strings.Builder
	b.WriteString("id,a,b,kind,w,y\n")
	r := rand.New(rand.NewPCG(7, 1))
	for i := range n {
		weight := r.IntN(4)
		cell := func(text string, fraction float64) string {
			if r.Float64() < fraction {
				return ""
			}
			return text
		}
		line := fmt.Sprintf("n%d,%s,%s,%s,%d,%d\n", i, cell(fmt.Sprint(1e6+r.NormFloat64()), 0.2), cell(fmt.Sprint(r.IntN(7)), 0.2), cell(string(rune('u'+r.IntN(4))), 0.2), weight, r.IntN(9))
		times := 1
		if repeated {
			times = weight
		}
		for range times {
			b.WriteString(line)
		}
	}
	return b.String()
}

// TestWeightsAreRepetitions checks that weights give the same encoder as repeated rows, for tables and for passes
// over files.
func TestWeightsAreRepetitions(t *testing.T) {
	for _, n := range []int{60, 70000} {
		if testing.Short() && n > 1000 {
			continue
		}
		dir := t.TempDir()
		write := func(name, text string) string {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			return path
		}
		weighted, repeated := write("w.csv", csvOf(n, false)), write("r.csv", csvOf(n, true))
		rules := dataset.Rules{Targets: []string{"y"}, Drop: []string{"id"}, Weight: "w", Standardize: true}
		otherRules := dataset.Rules{Targets: []string{"y"}, Drop: []string{"id", "w"}, Standardize: true}
		learn := func(path string, r dataset.Rules, passes bool) *dataset.Encoder {
			t.Helper()
			var e *dataset.Encoder
			var err error
			if passes {
				var s *dataset.Stream
				if s, err = dataset.Open(path); err == nil {
					e, err = s.Learn(t.Context(), r)
				}
			} else {
				var table *dataset.Table
				if table, err = dataset.Read(path, nil); err == nil {
					e, err = dataset.Learn(table, r)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		for _, passes := range []bool{false, true} {
			got, want := learn(weighted, rules, passes), learn(repeated, otherRules, passes)
			if got.Weight != "w" || !slices.Equal(got.Dropped, []string{"id"}) || len(got.Inputs) != 3 {
				t.Fatalf("passes %v: %+v", passes, got)
			}
			for j, in := range got.Inputs {
				got := want.Inputs[j]
				if in.Text != nil {
					if !reflect.DeepEqual(in.Text, got.Text) {
						t.Errorf("n = %d, passes %v: %s: %+v, repeated %+v", n, passes, in.Name, in.Text, got.Text)
					}
					continue
				}
				// The tolerance allows one rounding error for each term of a sum of up to 2n numbers.
				size := math.Abs(in.Number.Mean) + in.Number.Scale
				tol := 0x1p-52 * 2 * float64(2*n) * size
				fill := in.Number.Fill == got.Number.Fill
				if n > 1000 && in.Name == "a" && passes { // the medians of two samples of normal numbers, which may differ by 5 standard deviations
					fill = math.Abs(in.Number.Fill-got.Number.Fill) < 5*1.25*math.Sqrt2/math.Sqrt(65536)
					tol += math.Abs(in.Number.Fill - got.Number.Fill)
				}
				if !fill || !(math.Abs(in.Number.Mean-got.Number.Mean) <= tol) || !(math.Abs(in.Number.Scale-got.Number.Scale) <= tol) {
					t.Errorf("n = %d, passes %v: %s: %+v, repeated %+v", n, passes, in.Name, *in.Number, *got.Number)
				}
			}
		}
	}
}

// TestBlocksLeaveOutRowsOfWeightZero checks that passes, and a file that is read as a table, give only the rows of
// weight > 0, with their weights.
func TestBlocksLeaveOutRowsOfWeightZero(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(path, []byte(csvOf(500, false)), 0o666); err != nil {
		t.Fatal(err)
	}
	rules := dataset.Rules{Targets: []string{"y"}, Drop: []string{"id"}, Weight: "w", Standardize: true}
	table, err := dataset.Read(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	weighted, weights, err := rules.Weighted(table)
	if err != nil {
		t.Fatal(err)
	}
	s, err := dataset.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Learn(t.Context(), rules)
	if err != nil {
		t.Fatal(err)
	}
	if s.Rows() != len(weights) || weighted.Rows() != len(weights) || len(weights) >= 500 || slices.Contains(weights, 0) {
		t.Fatalf("%d rows, of the table %d, %d weights", s.Rows(), weighted.Rows(), len(weights))
	}
	x, err := e.Features(weighted)
	if err != nil {
		t.Fatal(err)
	}
	j := 0
	err = s.EachBlock(t.Context(), e, 64, false, func(got, _ *mat.Dense, w []float64, _ []uint64) error {
		n, d := got.Dims()
		if !mat.Equal(got, x.Slice(j, j+n, 0, d)) || !slices.Equal(w, weights[j:j+n]) {
			t.Errorf("rows %d to %d differ", j, j+n)
		}
		j += n
		return nil
	})
	if err != nil || j != len(weights) {
		t.Fatalf("%d rows, %v", j, err)
	}
}

// TestRolesOfColumns checks that a column can have only one role, and that weights must be numbers ≥ 0.
func TestRolesOfColumns(t *testing.T) {
	table := func(weights ...string) *dataset.Table {
		var rows, numbers []string
		for i := range weights {
			rows, numbers = append(rows, fmt.Sprint("r", i)), append(numbers, fmt.Sprint(i))
		}
		return newTable(t, dataset.Texts("id", rows), dataset.Texts("x", numbers), dataset.Texts("w", weights), dataset.Texts("y", numbers))
	}
	valid := table("1", "0", "2.5")
	for want, c := range map[string]struct {
		t *dataset.Table
		r dataset.Rules
	}{
		`column "id": is named both as a target and as dropped`:                           {valid, dataset.Rules{Targets: []string{"id"}, Drop: []string{"id"}}},
		`column "w": is named both as the weight and as dropped`:                          {valid, dataset.Rules{Targets: []string{"y"}, Drop: []string{"w"}, Weight: "w"}},
		`column "y": is named both as a target and as the weight`:                         {valid, dataset.Rules{Targets: []string{"y"}, Weight: "y"}},
		`column "id": is named both as dropped and as categorical`:                        {valid, dataset.Rules{Targets: []string{"y"}, Drop: []string{"id"}, Categorical: []string{"id"}}},
		`column "id": is named twice as dropped`:                                          {valid, dataset.Rules{Targets: []string{"y"}, Drop: []string{"id", "id"}}},
		`has no column "ix"; it has "id", "x", "w", "y"; did you mean "id"?`:              {valid, dataset.Rules{Targets: []string{"y"}, Drop: []string{"ix"}}},
		`has no column "ww"; it has "id", "x", "w", "y"; did you mean "w"?`:               {valid, dataset.Rules{Targets: []string{"y"}, Weight: "ww"}},
		`has no column except the target; at least one feature is needed`:                 {valid, dataset.Rules{Targets: []string{"y"}, Drop: []string{"id", "x", "w"}}},
		`row 2: column "w": "-1" is negative; a weight must be a finite number ≥ 0`:       {table("1", "-1"), dataset.Rules{Targets: []string{"y"}, Drop: []string{"id"}, Weight: "w"}},
		`row 1: column "w": "inf" is not a finite number; a weight must be a finite`:      {table("inf", "1"), dataset.Rules{Targets: []string{"y"}, Drop: []string{"id"}, Weight: "w"}},
		`row 2: column "w": the cell is empty; a weight must be a finite number ≥ 0`:      {table("1", ""), dataset.Rules{Targets: []string{"y"}, Drop: []string{"id"}, Weight: "w"}},
		`row 2: column "w": "many" is not a number; a weight must be a finite number ≥ 0`: {table("1", "many"), dataset.Rules{Targets: []string{"y"}, Drop: []string{"id"}, Weight: "w"}},
		`row 2: column "w": "1e999" is outside the range of float64; a weight must be`:    {table("1", "1e999"), dataset.Rules{Targets: []string{"y"}, Drop: []string{"id"}, Weight: "w"}},
		`column "w": has no weight above 0: give at least one row a weight above 0`:       {table("0", "0"), dataset.Rules{Targets: []string{"y"}, Drop: []string{"id"}, Weight: "w"}},
	} {
		_, err := dataset.Learn(c.t, c.r)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", c.r, err, want)
		}
		path := filepath.Join(t.TempDir(), "t.csv")
		var b strings.Builder
		b.WriteString("id,x,w,y\n")
		for i := range c.t.Rows() {
			for j, name := range c.t.Names() {
				cells, _ := c.t.Texts(name)
				b.WriteString(cells[i] + map[bool]string{true: "\n", false: ","}[j == 3])
			}
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		s, err := dataset.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Learn(t.Context(), c.r)
		if _, want, _ = strings.Cut(want, "column"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("passes: %+v: %v, want %s", c.r, err, want)
		}
	}
}
