package dataset_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/required"
)

// tableWith returns a CSV file. Its column x has n different numbers and, below them, the given cell.
func tableWith(n int, cell string) string {
	var b strings.Builder
	b.WriteString("x,y\n")
	for i := range n {
		fmt.Fprintf(&b, "%d.25,%d\n", i, i%2)
	}
	fmt.Fprintf(&b, "\"%s\",1\n", cell)
	return b.String()
}

// TestSpellingsOfOneMeaning compares a cell in an unambiguous spelling with the value of Python's float. The marks
// are from data.table #6604 and datatable #771.
func TestSpellingsOfOneMeaning(t *testing.T) {
	for _, c := range []struct {
		f    dataset.File
		cell string
		want float64
	}{
		{cell: "−5", want: -5}, {cell: "–0.5", want: -0.5}, {cell: "－7", want: -7},
		{cell: "1.5D+03", want: 1500}, {cell: "-2.5d-1", want: -0.25}, {cell: "1D+05", want: 1e5}, {cell: "0.15D2", want: 15},
		{cell: "\u00a05\u00a0", want: 5}, {cell: "\u202f12.5", want: 12.5}, {cell: "5\u200b", want: 5}, {cell: "\u200e42", want: 42},
		{cell: "1\u00a0000", want: 1000}, {cell: "1\u202f234\u202f567.5", want: 1234567.5}, {cell: "1\u2009000", want: 1000},
		{cell: "1'000", want: 1000}, {cell: "1’234’567.25", want: 1234567.25}, {cell: "-1'000", want: -1000},
		{cell: "١٢", want: 12}, {cell: "३.५", want: 3.5}, {cell: "１２．５", want: 12.5}, {cell: "١٫٥", want: 1.5},

		{f: dataset.File{Dialect: dataset.Dialect{Decimal: ","}}, cell: "3,14", want: 3.14}, {f: dataset.File{Dialect: dataset.Dialect{Decimal: ","}}, cell: "-,5", want: -0.5},
		{f: dataset.File{Dialect: dataset.Dialect{Decimal: ","}}, cell: "1,5e3", want: 1500}, {f: dataset.File{Dialect: dataset.Dialect{Decimal: ","}}, cell: "1,000", want: 1},
		{f: dataset.File{Dialect: dataset.Dialect{Decimal: ","}}, cell: "1’000,5", want: 1000.5}, {f: dataset.File{Dialect: dataset.Dialect{Decimal: ","}}, cell: "0,12345678901234567890123456789012345", want: 0.12345678901234567890123456789012345},
		{f: dataset.File{Dialect: dataset.Dialect{Thousands: ","}}, cell: "1,000", want: 1000}, {f: dataset.File{Dialect: dataset.Dialect{Thousands: ","}}, cell: "-1,234,567.5", want: -1234567.5}, {f: dataset.File{Dialect: dataset.Dialect{Thousands: ","}}, cell: "12,34,567", want: 1234567},
		{f: dataset.File{Dialect: dataset.Dialect{Decimal: ",", Thousands: "."}}, cell: "1.234.567,5", want: 1234567.5},
		{f: dataset.File{Dialect: dataset.Dialect{Thousands: "."}}, cell: "1.234,5", want: 1234.5}, // from this cell, the decimal comma is detected
		{f: dataset.File{Dialect: dataset.Dialect{Thousands: " "}}, cell: "1 234 567.5", want: 1234567.5},
		{f: dataset.File{Dialect: dataset.Dialect{Thousands: "_"}}, cell: "1_000", want: 1000},
	} {
		for _, n := range []int{3, dataset.MaxCategories + 5} {
			text := tableWith(n, c.cell)
			if c.f.Dialect.Decimal == "," || c.f.Dialect.Thousands == "." {
				head, rest, _ := strings.Cut(text, "\n")
				rows, last, _ := strings.Cut(rest, "\""+c.cell)
				text = head + "\n" + strings.ReplaceAll(rows, ".25", "") + "\"" + c.cell + last
			}
			c.f.Path = file(t, "t.csv", []byte(text))
			table, err := c.f.Read()
			if err != nil {
				t.Fatal(err)
			}
			if x, err := table.Numbers("x"); err != nil || x[n] != c.want {
				t.Errorf("%q with %q and %q: %v, want %v", c.cell, c.f.Dialect.Decimal, c.f.Dialect.Thousands, err, c.want)
			}
			checkStream(t, c.f, dataset.Rules{Targets: []string{"y"}}, 500)
			e, _, y := stream(t, c.f, dataset.Rules{Targets: []string{"x"}}, 3000)
			if got := y.At(n, 0); got != c.want {
				t.Errorf("%q as a target: %v, want %v", c.cell, got, c.want)
			}
			// The stored encoder must read a table as the training table was read.
			var decoded dataset.Encoder
			b, _ := json.Marshal(e)
			if err := json.Unmarshal(b, &decoded); err != nil || decoded.Check() != nil {
				t.Fatal(err, decoded.Check())
			}
			reread, err := dataset.File{Path: c.f.Path, Dialect: decoded.TrainingDialect(dataset.Dialect{})}.Read()
			if err != nil {
				t.Fatal(err)
			}
			if y, err := decoded.Targets(reread); err != nil || y.At(n, 0) != c.want {
				t.Errorf("%q by a model: %v", c.cell, err)
			}
		}
	}
}

// TestSpellingsAreRefused checks the error for the first number in an unsupported spelling, among numbers, among
// texts and alone in a column (polars #18797, datatable #771, data.table #6604).
func TestSpellingsAreRefused(t *testing.T) {
	const percent, currency, sign = "is a number with a percent sign: write the number alone", "is a number with a currency sign: write the number alone", "is a number whose sign does not come first: write a negative number as -1.5"
	advice := func(s string) string { return "is a number in another spelling: give " + s }
	for _, c := range required.Subset(11, []struct {
		f          dataset.File
		cell, rule string
	}{
		{cell: "12%", rule: percent}, {cell: "12.5 %", rule: percent}, {cell: "-3,5%", rule: percent}, {cell: "٪12", rule: percent}, {cell: "7‰", rule: percent},
		{cell: "$12", rule: currency}, {cell: "12 €", rule: currency}, {cell: "€1.234,50", rule: currency}, {cell: "-£5", rule: currency}, {cell: "12 EUR", rule: currency},
		{cell: "USD 5", rule: currency}, {cell: "R$ 5,50", rule: currency}, {cell: "¥1,000", rule: currency}, {cell: "5 kr.", rule: currency}, {cell: "₹12,34,567", rule: currency},
		{cell: "(5)", rule: sign}, {cell: "(1,234.50)", rule: sign}, {cell: "12.50-", rule: sign}, {cell: "- 5", rule: sign},
		{cell: "1,000", rule: advice("the thousands mark ',' to read 1000 or the decimal mark ',' to read 1.000")},
		{cell: "3,14", rule: advice("the decimal mark ',' to read 3.14")}, {cell: "0,500", rule: advice("the decimal mark ',' to read 0.500")},
		{cell: "1,234,567", rule: advice("the thousands mark ',' to read 1234567")}, {cell: "12,34,567", rule: advice("the thousands mark ',' to read 1234567")},
		{cell: "1.234.567", rule: advice("the thousands mark '.' to read 1234567")}, {cell: "-1.234,5", rule: advice("the thousands mark '.' to read -1234.5")},
		{cell: "1 000", rule: advice("the thousands mark ' ' to read 1000")}, {cell: "1 000,5", rule: advice("the decimal mark ',' and the thousands mark ' ' to read 1000.5")},
		{cell: "1,5D+03", rule: advice("the decimal mark ',' to read 1.5e+03")},
		{f: dataset.File{Dialect: dataset.Dialect{Decimal: ","}}, cell: "1.5", rule: advice("the decimal mark '.' to read 1.5")},
		{f: dataset.File{Dialect: dataset.Dialect{Decimal: ","}}, cell: "1.234", rule: advice("the thousands mark '.' to read 1234 or the decimal mark '.' to read 1.234")},
		{f: dataset.File{Dialect: dataset.Dialect{Thousands: ","}}, cell: "1,5", rule: advice("the decimal mark ',' to read 1.5")},
	}) {
		for name, cells := range map[string][]string{
			"number":  {"1", "2", c.cell, "3"},
			"text":    {"red", "blue", c.cell, "red"},
			"alone":   {c.cell, c.cell, c.cell, c.cell},
			"numbers": append(integers(dataset.MaxCategories+5), c.cell),
		} {
			text := "x,y\n"
			for i, cell := range cells {
				text += fmt.Sprintf("\"%s\",%d\n", cell, i%2)
			}
			first := slices.Index(cells, c.cell) + 2
			c.f.Path = file(t, "t.csv", []byte(text))
			table, err := c.f.Read()
			if err != nil {
				t.Fatal(err)
			}
			s, err := c.f.Open()
			if err != nil {
				t.Fatal(err)
			}
			check := func(rules dataset.Rules, column, end string) {
				t.Helper()
				want := fmt.Sprintf("%s:%d: column %q: %q %s%s", c.f.Path, first, column, c.cell, c.rule, end)
				_, err := dataset.Learn(table, rules)
				wantError(t, err, want)
				_, err = s.Learn(context.Background(), rules)
				wantError(t, err, want)
			}
			categorical := ", or name the column as categorical"
			if name == "numbers" {
				categorical = ""
			}
			check(dataset.Rules{Targets: []string{"y"}}, "x", categorical)
			if name != "text" {
				check(dataset.Rules{Targets: []string{"x"}}, "x", "")
			}
			if table.OnlyTexts("x") {
				t.Errorf("%s: a column of %q is one of texts", name, c.cell)
			}
			if name != "numbers" {
				check(dataset.Rules{Targets: []string{"x"}, Labels: true}, "x", "; if it is a class, set Labels")
				// The user may declare the column categorical, or a target of classes.
				e := learn(t, table, dataset.Rules{Targets: []string{"y"}, Categorical: []string{"x"}})
				if name == "alone" && !slices.Equal(e.FeatureNames(), []string{"x=" + c.cell}) {
					t.Errorf("%q", e.FeatureNames())
				}
				checkStream(t, c.f, dataset.Rules{Targets: []string{"y"}, Categorical: []string{"x"}}, 3)
				checkStream(t, c.f, dataset.Rules{Targets: []string{"x"}, Labels: true, AnyLabels: true}, 3)
			}
		}
	}
	// The user of JSON rows cannot declare a decimal mark, so that the error proposes another spelling.
	rows, err := dataset.FromRows("", json.RawMessage(`[{"x": "1"}, {"x": "-1,5"}, {"x": "1,000"}]`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = rows.Numbers("x")
	wantError(t, err, `dataset: row 2: column "x": "-1,5" is a number in another spelling: write -1.5`)
	_, err = rows.Select([]int{2}).Numbers("x")
	wantError(t, err, `dataset: row 3: column "x": "1,000" is a number in another spelling: write 1000 or 1.000`)
	array := file(t, "x.npy", npyOf("<U3", "False", "2,", '0', '.', '5', '1', ',', '5'))
	texts, err := dataset.Read(array, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = dataset.Learn(texts, dataset.Rules{})
	wantError(t, err, array+`: row 2: column "x1": "1,5" is a number in another spelling: write 1.5, or name the column as categorical`)
	constructed, err := dataset.NewTable("", dataset.Texts("x", []string{"5", "$4"}), dataset.Numbers("y", []float64{1, 2}))
	if err != nil {
		t.Fatal(err)
	}
	_, err = dataset.Learn(constructed, dataset.Rules{Targets: []string{"y"}})
	wantError(t, err, `dataset: row 2: column "x": "$4" `+currency+", or name the column as categorical")
}

func integers(n int) (list []string) {
	for i := range n {
		list = append(list, strconv.Itoa(i))
	}
	return list
}

// TestCodesStayCategories checks that codes with digits are categories and classes, not numbers.
func TestCodesStayCategories(t *testing.T) {
	for _, codes := range [][]string{
		{"A1", "B2"}, {"1-2", "2-3"}, {"12a", "12b"}, {"2024-01-05", "2024-01-06"}, {"10:30", "11:45"}, {"1.2.3", "10.20.3"}, {"3+", "4+"}, {"5-", "4-"},
		{"<5", "5-10"}, {"1/2", "2/3"}, {"192.168.100.200", "10.100.200.100"}, {"1D5", "2D7"}, {"1,2,3", "2,3"[:1] + "a"}, {"#5", "#6"}, {"12 cm", "13 cm"}, {"EUR5", "Rs12"},
		{"(555) 123-4567", "(555) 765-4321"}, {"05.01.2024", "06.01.2024"}, {"0x1f", "0x2f"}, {"1_000", "2_000"}, {"12 34", "1 2"}, {"%", "$"}, {"5'11\"\"", "6'1\"\""}, {"a,5", "b,6"},
	} {
		text := "x,y\n"
		for i := range 20 {
			text += fmt.Sprintf("\"%s\",%d\n", codes[i%2], i)
		}
		f := dataset.File{Path: file(t, "t.csv", []byte(text))}
		e, _, _ := stream(t, f, dataset.Rules{Targets: []string{"y"}}, 10)
		if n := len(e.FeatureNames()); n != 2 {
			t.Errorf("%q make %d features: %q", codes, n, e.FeatureNames())
		}
		checkStream(t, f, dataset.Rules{Targets: []string{"y"}}, 7)
		checkStream(t, f, dataset.Rules{Targets: []string{"x"}, Labels: true}, 7)
	}
	// A number that begins with zeros is a number, not a code.
	table := read(t, "x,y\n00501,1\n10001,2\n")
	if x, err := table.Numbers("x"); err != nil || !slices.Equal(x, []float64{501, 10001}) {
		t.Error(x, err)
	}
}

// TestSpellingsOfOneClass checks that 1'000 and 1000 are the same class, and that NAValues also matches −999, written
// with a Unicode minus sign.
func TestSpellingsOfOneClass(t *testing.T) {
	f := dataset.File{Path: file(t, "t.csv", []byte("x,y\n1,−1\n2,-1\n3,\"1'000\"\n4,1000\n−999,-1\n")), Dialect: dataset.Dialect{NAValues: []string{"-999"}, NoDefaultNA: true}}
	checkStream(t, f, dataset.Rules{Targets: []string{"y"}, Labels: true}, 2)
	table, err := f.Read()
	if err != nil {
		t.Fatal(err)
	}
	e := learn(t, table, dataset.Rules{Targets: []string{"y"}, Labels: true})
	if !slices.Equal(e.Classes(), []string{"-1", "1000"}) || !slices.Equal(indices(t, e, table), []float64{0, 0, 1, 1, 0}) {
		t.Error(e.Classes(), indices(t, e, table))
	}
	if x := features(t, e, table); x.At(4, 0) != 2.5 { // the median of 1 to 4 replaces the missing cell
		t.Error(mat.Formatted(x))
	}
}

// TestDecimalCommaIsDetected checks that in files with semicolons the decimal comma is detected if some of the
// first numbers have a comma and none has a point (Excel, read.csv2).
func TestDecimalCommaIsDetected(t *testing.T) {
	const notice = "the decimal mark is taken to be a comma, as in "
	for _, c := range []struct {
		text   string
		want   []float64 // the features of x; nil means an error
		notice string
	}{
		{"x;y\n0,5;1\n1,5;2\n", []float64{0.5, 1.5}, `"0,5"`},
		{"x;y\n1,000;1\n2,50;2\n", []float64{1, 2.5}, `"2,50"`},
		{"x;d;y\n-0,5;05.01.2024;1\n7;06.01.2024;2\n", []float64{-0.5, 7}, `"-0,5"`},
		{"x;y\n0.5;1\n1.5;2\n", []float64{0.5, 1.5}, ""},
		{"x;y\n1,000;1\n2,000;2\n", nil, ""},
		{"x;z;y\n0,5;1.5;1\n1,5;2.5;2\n", nil, ""},
		{"x;y\n\"1.234,5\";1\n1,5;2\n", nil, `"1.234,5"`}, // an error, because the cell also has a thousands separator
		{"x,y\n\"0,5\",1\n\"1,5\",2\n", nil, ""},
	} {
		f := dataset.File{Path: file(t, "t.csv", []byte(c.text))}
		table, err := f.Read()
		if err != nil {
			t.Fatal(err)
		}
		s, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		x, err := table.Numbers("x")
		if !slices.Equal(x, c.want) && c.want != nil || (err == nil) != (c.want != nil) {
			t.Errorf("%q: %v %v", c.text, x, err)
		}
		for _, notices := range [][]string{table.ReadWarnings(), s.ReadWarnings()} {
			if got := strings.Join(notices, ""); (got != "") != (c.notice != "") || !strings.HasPrefix(strings.TrimPrefix(got, notice), c.notice) {
				t.Errorf("%q: notices %q", c.text, notices)
			}
		}
		if c.want == nil {
			continue
		}
		checkStream(t, f, dataset.Rules{Targets: []string{"y"}}, 1)
		// The encoder stores the detected decimal mark, which then also applies to files without semicolons.
		e := learn(t, table, dataset.Rules{Targets: []string{"y"}})
		if (e.Decimal == ",") != (c.notice != "") {
			t.Errorf("%q: the encoder has the mark %q", c.text, e.Decimal)
		}
	}
	// A decimal mark given by the user overrides the detection.
	f := dataset.File{Path: file(t, "t.csv", []byte("x;y\n0,5;1\n1,5;2\n")), Dialect: dataset.Dialect{Decimal: "."}}
	table, err := f.Read()
	if err != nil {
		t.Fatal(err)
	}
	_, err = table.Numbers("x")
	wantError(t, err, f.Path+`:2: column "x": "0,5" is a number in another spelling: give the decimal mark ',' to read 0.5`)
	e := learn(t, table, dataset.Rules{Targets: []string{"y"}, Categorical: []string{"x"}})
	if e.Decimal != "." || e.TrainingDialect(dataset.Dialect{}).Decimal != "." {
		t.Errorf("the encoder has the mark %q", e.Decimal)
	}
}

// TestMarks checks that invalid marks give an error.
func TestMarks(t *testing.T) {
	for _, c := range []struct {
		d    dataset.Dialect
		want string
	}{
		{dataset.Dialect{Decimal: ";"}, `--decimal, --thousands: the character ';' cannot be a decimal mark: use . or ,`},
		{dataset.Dialect{Decimal: ",", Thousands: ","}, `--decimal, --thousands: the character ',' is both the decimal mark and the thousands mark`},
		{dataset.Dialect{Thousands: "x"}, `--decimal, --thousands: the character 'x' cannot be a thousands mark: use , . ' _ or a space`},
		{dataset.Dialect{Thousands: ",,"}, `--decimal, --thousands: want one character each, got "" and ",,"`},
		{dataset.Dialect{Decimal: ",", Thousands: " "}, ""},
		{dataset.Dialect{Thousands: "."}, ""},
	} {
		if err := c.d.Check(); fmt.Sprint(err) != c.want && (err != nil || c.want != "") {
			t.Errorf("%+v: %v, want %s", c.d, err, c.want)
		}
	}
	_, err := dataset.File{Path: "-", Stdin: strings.NewReader("x\n1\n"), Dialect: dataset.Dialect{Decimal: "x"}}.Read()
	wantError(t, err, "standard input: the character 'x' cannot be a decimal mark: use . or ,")
}

// TestDecimalCommaOfManyNumbers compares a long column of numbers with decimal commas with the same column with
// decimal points.
func TestDecimalCommaOfManyNumbers(t *testing.T) {
	var commas, points strings.Builder
	commas.WriteString("x;y\n")
	points.WriteString("x;y\n")
	for i := range 60_000 { // so many rows that the file has two pieces
		v := strconv.FormatFloat(math.Sqrt(float64(i)), 'g', -1, 64)
		points.WriteString(v + ";1\n")
		commas.WriteString(strings.ReplaceAll(v, ".", ",") + ";1\n")
	}
	f := dataset.File{Path: file(t, "c.csv", []byte(commas.String()))}
	table, err := f.Read()
	if err != nil {
		t.Fatal(err)
	}
	got, err := table.Numbers("x")
	if err != nil {
		t.Fatal(err)
	}
	want, err := mustRead(t, "p.csv", points.String()).Numbers("x")
	if err != nil || !slices.Equal(got, want) {
		t.Error("other numbers", err)
	}
	checkStream(t, f, dataset.Rules{Targets: []string{"y"}, Standardize: true}, 1000)
}
