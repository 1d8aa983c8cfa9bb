package dataset_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/dataset"
)

func learn(t *testing.T, table *dataset.Table, r dataset.Rules) *dataset.Encoder {
	t.Helper()
	e, err := dataset.Learn(table, r)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func features(t *testing.T, e *dataset.Encoder, table *dataset.Table) *mat.Dense {
	t.Helper()
	x, err := e.Features(table)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

const mixed = `size,color,wide,y
1,red,true,10
,blue,false,20
4,,true,30
2,blue,true,40
`

// TestEncode checks all parts of the encoding on a small table.
func TestEncode(t *testing.T) {
	table := read(t, mixed)
	e := learn(t, table, dataset.Rules{Targets: []string{"y"}})
	if want := []string{"size", "color=blue", "color=red", "wide=false", "wide=true"}; !slices.Equal(e.FeatureNames(), want) {
		t.Errorf("features are %q, want %q", e.FeatureNames(), want)
	}
	if !slices.Equal(e.TargetNames(), []string{"y"}) {
		t.Errorf("targets are %q", e.TargetNames())
	}
	want := mat.NewDense(4, 5, []float64{
		1, 0, 1, 0, 1,
		2, 1, 0, 1, 0, // the missing size becomes the median of 1, 2 and 4
		4, 1, 0, 0, 1, // the missing color becomes blue, the most frequent color
		2, 1, 0, 0, 1,
	})
	if x := features(t, e, table); !mat.Equal(x, want) {
		t.Errorf("features:\n%v\nwant\n%v", mat.Formatted(x), mat.Formatted(want))
	}
	y, err := e.Targets(table)
	if err != nil || !mat.Equal(y, mat.NewDense(4, 1, []float64{10, 20, 30, 40})) {
		t.Errorf("targets: %v, %v", y, err)
	}
}

// TestEncodeOtherOrder checks a later table with columns in another order, more columns, or no target.
func TestEncodeOtherOrder(t *testing.T) {
	table := read(t, mixed)
	e := learn(t, table, dataset.Rules{Targets: []string{"y"}, Standardize: true})
	reordered := read(t, "note,wide,color,size\nnan,true,red,1\nx,false,blue,\n1e999,true,,4\n,true,blue,2\n")
	if a, b := features(t, e, table), features(t, e, reordered); !mat.Equal(a, b) {
		t.Errorf("the order of columns changed the features:\n%v\n%v", mat.Formatted(a), mat.Formatted(b))
	}
	_, err := e.Targets(reordered)
	wantError(t, err, `standard input: has no target column "y"; it has "note", "wide", "color", "size"`)
}

// TestTwoTargets checks that two targets have the order of Rules.Targets, not that of the table.
func TestTwoTargets(t *testing.T) {
	table := read(t, "a,b,c\n1,2,3\n4,5,6\n")
	e := learn(t, table, dataset.Rules{Targets: []string{"c", "a"}})
	y, err := e.Targets(table)
	if err != nil || !mat.Equal(y, mat.NewDense(2, 2, []float64{3, 1, 6, 4})) {
		t.Errorf("targets: %v, %v", y, err)
	}
	if x := features(t, e, table); !mat.Equal(x, mat.NewDense(2, 1, []float64{2, 5})) {
		t.Errorf("features: %v", mat.Formatted(x))
	}
	unsupervised := learn(t, table, dataset.Rules{})
	if _, err := unsupervised.Targets(table); err == nil || len(unsupervised.FeatureNames()) != 3 {
		t.Errorf("without a target: features %q, Targets error %v", unsupervised.FeatureNames(), err)
	}
}

// TestFillTie checks that the most frequent text replaces a missing text, and of equally frequent texts the first.
func TestFillTie(t *testing.T) {
	for _, text := range []string{"c\nb\na\nb\na\nc\n\"\"\n", "c\na\nb\nb\na\nc\n\"\"\n"} {
		e := learn(t, read(t, text), dataset.Rules{})
		if got := e.Inputs[0].Text.Fill; got != "a" {
			t.Errorf("%q: fill is %q, want a", text, got)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{3}, 3}, {[]float64{4, 1}, 2.5}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5},
		{[]float64{math.NaN(), 5, math.NaN(), 7, 6}, 6},
		{[]float64{math.MaxFloat64, math.MaxFloat64}, math.MaxFloat64},
		{[]float64{5e-324, 5e-324}, 5e-324},
	} {
		table, err := dataset.NewTable("", dataset.Numbers("x", c.values))
		if err != nil {
			t.Fatal(err)
		}
		if got := learn(t, table, dataset.Rules{}).Inputs[0].Number.Fill; got != c.want {
			t.Errorf("median of %v is %v, want %v", c.values, got, c.want)
		}
	}
}

// TestStandardize compares the mean and the standard deviation with values computed with 200 bits, for offsets up
// to 1e9 times the spread and for squares that overflow or underflow.
func TestStandardize(t *testing.T) {
	const seed = 11
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	const n = 1000
	for _, c := range []struct{ offset, spread float64 }{
		{0, 1}, {1e6, 1}, {-1e6, 1e-3}, {1e9, 1}, {1e300, 1e299}, {0, 1e-300},
	} {
		values := make([]float64, n)
		for i := range values {
			values[i] = c.offset + c.spread*r.NormFloat64()
		}
		table, err := dataset.NewTable("", dataset.Numbers("x", values))
		if err != nil {
			t.Fatal(err)
		}
		e := learn(t, table, dataset.Rules{Standardize: true})
		mean, sd := exactMoments(values)
		const u = 0x1p-53
		got := e.Inputs[0].Number
		// The mean of the first pass is off by at most n·u times the largest value. The second pass adds the mean of
		// the deviations from it, whose error is at most n·u times a deviation.
		largest := math.Abs(c.offset) + 6*c.spread
		meanTol := 2*u*largest + n*u*(n*u*largest+c.spread)
		if d := math.Abs(got.Mean - mean); d > meanTol {
			t.Errorf("offset %v: mean is off by %g, allowed %g", c.offset, d, meanTol)
		}
		// An error δ of the mean adds δ² to the variance. The squares and their sum have n + 4 rounding errors.
		sdTol := sd * ((n+4)*u + meanTol*meanTol/(sd*sd))
		if d := math.Abs(got.Scale - sd); d > sdTol {
			t.Errorf("offset %v: sd is off by %g, allowed %g", c.offset, d, sdTol)
		}
		x := features(t, e, table)
		for i, v := range values {
			if want := (v - got.Mean) / got.Scale; x.At(i, 0) != want {
				t.Fatalf("offset %v: row %d is %v, want %v", c.offset, i, x.At(i, 0), want)
			}
		}
	}
}

// exactMoments returns the mean and the standard deviation with divisor n.
func exactMoments(values []float64) (mean, sd float64) {
	num := func(v float64) *big.Float { return new(big.Float).SetPrec(200).SetFloat64(v) }
	n := num(float64(len(values)))
	m, s := num(0), num(0)
	for _, v := range values {
		m.Add(m, num(v))
	}
	m.Quo(m, n)
	for _, v := range values {
		d := num(v)
		d.Sub(d, m)
		s.Add(s, d.Mul(d, d))
	}
	s.Sqrt(s.Quo(s, n))
	mean, _ = m.Float64()
	sd, _ = s.Float64()
	return mean, sd
}

// TestStandardizeDetails checks that missing cells are replaced before the moments are computed, as in a
// scikit-learn pipeline, and that a constant column becomes zeros.
func TestStandardizeDetails(t *testing.T) {
	table := read(t, "a,b,c\n1,0.1,x\n,0.1,y\n3,0.1,x\n")
	e := learn(t, table, dataset.Rules{Standardize: true})
	a, b := e.Inputs[0].Number, e.Inputs[1].Number
	if a.Fill != 2 || a.Mean != 2 || a.Scale != math.Sqrt(2.0/3) {
		t.Errorf("a: %+v, want fill 2, mean 2, scale √(2/3)", *a)
	}
	if b.Mean != 0.1 || b.Scale != 1 {
		t.Errorf("b: %+v, want mean 0.1 and scale 1", *b)
	}
	x := features(t, e, table)
	if want := []float64{0, 0, 0, 1}; !slices.Equal(x.RawRowView(1), want) {
		t.Errorf("row 2 is %v, want %v", x.RawRowView(1), want)
	}
	if want := []float64{-1 / a.Scale, 0, 1, 0}; !slices.Equal(x.RawRowView(0), want) {
		t.Errorf("row 1 is %v, want %v", x.RawRowView(0), want)
	}
}

// TestLearnFromRows checks that Learn uses only the rows of the given table, not the test rows of a split.
func TestLearnFromRows(t *testing.T) {
	table := read(t, "a,c\n1,u\n2,v\n3,w\nbad,z\n")
	for seed := range uint64(50) {
		train, test := table.Split(0.25, seed)
		if bad, _ := test.Texts("a"); !slices.Contains(bad, "bad") {
			continue
		}
		e := learn(t, train, dataset.Rules{})
		if want := []string{"a", "c=u", "c=v", "c=w"}; !slices.Equal(e.FeatureNames(), want) {
			t.Errorf("features %q, want %q", e.FeatureNames(), want)
		}
		_, err := e.Features(test)
		wantError(t, err, `standard input:5: column "a": "bad" is not a number; correct it, or name it as a marker of missing values`)
		return
	}
	t.Fatal("no split put the last row into the test")
}

// TestLearnFaults checks the one-line error for each table from which Learn cannot learn.
func TestLearnFaults(t *testing.T) {
	repeat := func(n int, f func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(f(i) + "\n")
		}
		return b.String()
	}
	y := dataset.Rules{Targets: []string{"y"}}
	for _, c := range []struct {
		name, text string
		rules      dataset.Rules
		want       string
	}{
		{"no rows", "a,y\n", y, ": has no rows below its header"},
		{"no target", "a,Y1,z\n1,2,3\n", y, `: has no target column "y"; it has "a", "Y1", "z"; did you mean "Y1"?`},
		{"target twice", "a,y\n1,2\n", dataset.Rules{Targets: []string{"y", "y"}}, `: column "y": is named twice as a target`},
		{"empty target", "a,y\n1,2\n1,\n", y, `:3: column "y": the cell is empty; a target needs a value: give it one or drop the row`},
		{"NA target", "a,y\n1,2\n1,NA\n", y, `:3: column "y": "NA" stands for a missing cell; a target needs a value: give it one or drop the row`},
		{"text target", "a,y\n1,setosa\n", y, `:2: column "y": "setosa" is not a number, as a target must be`},
		{"nan target", "a,y\n1,2\n1,nan\n", y, `:3: column "y": "nan" stands for a missing cell; a target needs a value: give it one or drop the row`},
		{"no features", "y\n1\n", y, ": has no column except the target; at least one feature is needed"},
		{"no header", "1,2\n3,4\n", y, `: has no target column "y"; it has "1", "2"; the first line is taken for the names of the columns: put a line of names above these numbers`},
		{"thousands", "a,y\n\"1,000\",1\n\"12,345.6\",2\n7,3\n", y, `:2: column "a": "1,000" is a number in another spelling: give the thousands mark ',' to read 1000 or the decimal mark ',' to read 1.000, or name the column as categorical`},
		{"decimal commas", "a,y\n" + manyCommas(30), y, `:2: column "a": "0,5" is a number in another spelling: give the decimal mark ',' to read 0.5, or name the column as categorical`},
		{"no values", "a,y\n,1\nNA,2\n", y, `:0: column "a": has no values; drop the column`},
		{"infinite", "a,y\n1,1\ninf,2\n", y, `:3: column "a": "inf" is not a finite number`},
		{"inf", "a,y\n1,1\n-inf,2\n", y, `:3: column "a": "-inf" is not a finite number`},
		{"range", "a,y\n1,1\n1e400,2\n", y, `:3: column "a": "1e400" is outside the range of float64`},
		{"one bad cell", "a,y\n" + repeat(500, func(i int) string { return fmt.Sprintf("%d,1", i%50) }) + "abc,1\n", y,
			`:502: column "a": "abc" is not a number, but 500 of the 501 cells of the column are; correct it, name it as a marker of missing values, or name the column as categorical`},
		{"late bad cell", "a,y\n" + numbersBelow(5000) + "abc,1\n", y, `:5002: column "a": "abc" is not a number; correct it, or name it as a marker of missing values`},
		{"names", "a,y\n" + repeat(30, func(i int) string { return fmt.Sprintf("name%d,1", i) }), y,
			`:0: column "a": has 30 distinct texts, such as "name0", in 30 rows: too many to be categories; drop the column or make tf-idf features of its texts`},
		{"many names", "a,y\n" + repeat(5000, func(i int) string { return fmt.Sprintf("name%d,1", i%1001) }), y,
			`:0: column "a": has more than 1000 distinct texts, such as "name0": too many to be categories; drop the column or make tf-idf features of its texts`},
		{"refused", "a,y\n1,1\n,2\n", dataset.Rules{Targets: []string{"y"}, RefuseMissing: true}, `:3: column "a": the cell is empty; missing cells are refused: give it a value or drop the row`},
		{"refused NA", "a,y\n1,1\nNA,2\n", dataset.Rules{Targets: []string{"y"}, RefuseMissing: true}, `:3: column "a": "NA" stands for a missing cell; missing cells are refused: give it a value or drop the row`},
		{"refused text", "a,y\nu,1\n,2\n", dataset.Rules{Targets: []string{"y"}, RefuseMissing: true}, `:3: column "a": the cell is empty; missing cells are refused: give it a value or drop the row`},
		{"too large", "a,y\n1.7e308,1\n-1.7e308,2\n-1.7e308,2\n", dataset.Rules{Targets: []string{"y"}, Standardize: true}, `:0: column "a": has numbers too large to standardize; rescale the column`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := dataset.Learn(read(t, c.text), c.rules)
			wantError(t, err, "standard input"+strings.TrimPrefix(c.want, ":0"))
		})
	}
}

// TestManyCategories checks that a column may have MaxCategories categories, and that NA is not one of them.
func TestManyCategories(t *testing.T) {
	var b strings.Builder
	b.WriteString("a\nNA\n")
	for i := range 2000 {
		fmt.Fprintf(&b, "c%03d\n", i%1000)
	}
	e := learn(t, read(t, b.String()), dataset.Rules{})
	if n := len(e.FeatureNames()); n != 1000 || e.FeatureNames()[0] != "a=c000" {
		t.Errorf("%d features, the first %q; want 1000 and a=c000", n, e.FeatureNames()[0])
	}
}

// TestFeaturesFaults checks the one-line error for each fault of a later table.
func TestFeaturesFaults(t *testing.T) {
	e := learn(t, read(t, "length,sex,y\n1,male,1\n2,female,2\n3,male,3\n"), dataset.Rules{Targets: []string{"y"}, Standardize: true})
	e.RefuseUnknown = true
	strict := learn(t, read(t, "length,sex\n1,male\n2,female\n"), dataset.Rules{RefuseMissing: true})
	tooMany := "length,sex\n" + numbersBelow(2*dataset.MaxCategories)
	for _, c := range []struct {
		name string
		e    *dataset.Encoder
		text string
		want string
	}{
		{"no rows", e, "length,sex\n", ": has no rows below its header"},
		{"no column", e, "lenght,sex\n1,male\n", `: has no feature column "length"; it has "lenght", "sex"; did you mean "lenght"?`},
		{"other case", e, "length,Sex\n1,male\n", `: has no feature column "sex"; it has "length", "Sex"; did you mean "Sex"?`},
		{"not a number", e, "sex,length\nmale,1\nmale,long\n", `:3: column "length": "long" is not a number; correct it, or name it as a marker of missing values`},
		{"infinite", e, "sex,length\nmale,inf\n", `:2: column "length": "inf" is not a finite number`},
		{"category", e, "sex,length\nmale,1\nmael,1\n", `:3: column "sex": "mael" is an unknown category; known are "female", "male"; did you mean "male"?`},
		{"number for text", e, "sex,length\n1,1\n", `:2: column "sex": "1" is an unknown category; known are "female", "male"`},
		{"numbers for text", e, tooMany, `: column "sex": holds numbers, but the training column holds texts: "female", "male"`},
		{"first by line", e, "length,sex\n1,other\nlong,male\n", `:2: column "sex": "other" is an unknown category; known are "female", "male"`},
		{"range", e, "length,sex\n1.7e308,male\n", `:2: column "length": "1.7e308" overflows float64 when standardized with mean 2 and scale 0.816496580927726`},
		{"refused", strict, "length,sex\n1,male\n1,\n", `:3: column "sex": the cell is empty; missing cells are refused: give it a value or drop the row`},
		{"refused NA", strict, "length,sex\nNA,male\n", `:2: column "length": "NA" stands for a missing cell; missing cells are refused: give it a value or drop the row`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.e.Features(read(t, c.text))
			wantError(t, err, "standard input"+c.want)
		})
	}
}

// TestUnknownCategoriesAreZeros checks that all features of a column are zero for a category that did not occur in
// training, and that the category is counted, in a table read at once and in passes.
func TestUnknownCategoriesAreZeros(t *testing.T) {
	e := learn(t, read(t, "a,b,y\nred,p,1\nblue,q,2\nred,q,3\n"), dataset.Rules{Targets: []string{"y"}})
	text := "b,y,a\nq,1,green\np,2,red\nr,3,amber\nq,4,green\nq,5,\n"
	table := read(t, text)
	want := mat.NewDense(5, 4, []float64{ // the features are a=blue, a=red, b=p, b=q
		0, 0, 0, 1,
		0, 1, 1, 0,
		0, 0, 0, 0,
		0, 0, 0, 1,
		0, 1, 0, 1,
	})
	counts := []dataset.Unknown{{Column: "a", Rows: 3, Example: "amber"}, {Column: "b", Rows: 1, Example: "r"}}
	if x := features(t, e, table); !mat.Equal(x, want) {
		t.Errorf("features:\n%v", mat.Formatted(x))
	}
	if diff := cmp.Diff(counts, e.Unknown(table)); diff != "" {
		t.Error(diff)
	}
	if unknown := e.Unknown(table.Select([]int{1, 4})); unknown != nil {
		t.Errorf("rows of known categories: %v", unknown)
	}
	path := file(t, "a.csv", []byte("b,y,a\n"+strings.Repeat(strings.TrimPrefix(text, "b,y,a\n"), 200_000)))
	s, err := dataset.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	err = s.Blocks(t.Context(), e, 5000, func(x, y *mat.Dense) error {
		n, _ := x.Dims()
		for i := range n {
			if !mat.Equal(x.Slice(i, i+1, 0, 4), want.Slice((rows+i)%5, (rows+i)%5+1, 0, 4)) {
				t.Fatalf("row %d is %v", rows+i, x.RawRowView(i))
			}
		}
		rows += n
		return nil
	})
	if err != nil || rows != 1_000_000 {
		t.Fatal(rows, err)
	}
	counts[0].Rows, counts[1].Rows = 600_000, 200_000
	if diff := cmp.Diff(counts, s.Unknown()); diff != "" {
		t.Error(diff)
	}
}

// TestNumbersAsCategories checks that a number in a column of texts remains a category.
func TestNumbersAsCategories(t *testing.T) {
	e := learn(t, read(t, "stay\n01\n2\n3+\n"), dataset.Rules{})
	x := features(t, e, read(t, "stay\n2\n01\n"))
	if !mat.Equal(x, mat.NewDense(2, 3, []float64{0, 1, 0, 1, 0, 0})) {
		t.Errorf("features:\n%v", mat.Formatted(x))
	}
	e.RefuseUnknown = true
	_, err := e.Features(read(t, "stay\n1\n"))
	wantError(t, err, `standard input:2: column "stay": "1" is an unknown category; known are "01", "2", "3+"; did you mean "01"?`)
}

// manyCommas returns n rows of different quoted numbers with decimal commas.
func manyCommas(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "\"%d,5\",%d\n", i, i)
	}
	return b.String()
}
