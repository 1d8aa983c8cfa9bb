package dataset_test

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/dataset"
)

// indices returns the class index of each row of a table.
func indices(t *testing.T, e *dataset.Encoder, table *dataset.Table) []float64 {
	t.Helper()
	y, err := e.Targets(table)
	if err != nil {
		t.Fatal(err)
	}
	return mat.Col(nil, 0, y)
}

// TestClasses checks the order of classes, and that each row has the class of its label in any spelling.
func TestClasses(t *testing.T) {
	for _, c := range []struct {
		cells   string
		classes []string
		indices []float64
	}{
		{"b a b c", []string{"a", "b", "c"}, []float64{1, 0, 1, 2}},
		{"10 9 -1 9", []string{"-1", "9", "10"}, []float64{2, 1, 0, 1}},
		{"+1 -1 -1 +1", []string{"-1", "+1"}, []float64{1, 0, 0, 1}},
		{"1.0 2 1 2e0", []string{"1", "2"}, []float64{0, 1, 0, 1}},
		{"10 9 x", []string{"10", "9", "x"}, []float64{0, 1, 2}},
		{"1 1.0 x", []string{"1", "1.0", "x"}, []float64{0, 1, 2}},
		{"true false true", []string{"false", "true"}, []float64{1, 0, 1}},
		{"Ä Z z", []string{"Z", "z", "Ä"}, []float64{2, 0, 1}},
		{"only only", []string{"only"}, []float64{0, 0}},
	} {
		table := read(t, "x,y\n1,"+strings.ReplaceAll(c.cells, " ", "\n1,")+"\n")
		e := learn(t, table, dataset.Rules{Targets: []string{"y"}, Labels: true})
		if got := e.Classes(); !slices.Equal(got, c.classes) {
			t.Errorf("%s: classes are %q, want %q", c.cells, got, c.classes)
		}
		if got := indices(t, e, table); !slices.Equal(got, c.indices) {
			t.Errorf("%s: indices are %v, want %v", c.cells, got, c.indices)
		}
		throughJSON(t, e)
	}
}

// TestClassesOfNumbers checks that the same labels give the same classes in a column of many numbers, in a table
// made in Go and in a file.
func TestClassesOfNumbers(t *testing.T) {
	constructed, err := dataset.NewTable("made", dataset.Numbers("x", []float64{1, 2, 3}), dataset.Numbers("y", []float64{3, -1, 3}))
	if err != nil {
		t.Fatal(err)
	}
	e := learn(t, constructed, dataset.Rules{Targets: []string{"y"}, Labels: true})
	if got := e.Classes(); !slices.Equal(got, []string{"-1", "3"}) {
		t.Errorf("classes are %q", got)
	}
	if got := indices(t, e, read(t, "y,x\n3.0,1\n-1,2\n+3,2\n")); !slices.Equal(got, []float64{1, 0, 1}) {
		t.Errorf("indices are %v", got)
	}
}

// TestClassesAreExact checks that different labels are different classes even if they have the same float64 value,
// in every format, read at once and in passes.
func TestClassesAreExact(t *testing.T) {
	const a, b, c = int64(1 << 60), int64(1<<60 + 1), int64(-1<<53 - 1)
	classes := []string{"-9007199254740993", "1152921504606846976", "1152921504606846977"}
	want := []float64{2, 1, 0, 1, 2}
	y := []int64{b, a, c, a, b}
	x := npyOf("<f8", "False", "5,", 1.0, 2, 3, 4, 5)
	var csv, libsvm strings.Builder
	csv.WriteString("x1,y\n")
	for i, v := range y {
		fmt.Fprintf(&csv, "%d,%d\n", i, v)
		fmt.Fprintf(&libsvm, "%d 1:%d\n", v, i)
	}
	unsigned := []string{"18446744073709551614", "18446744073709551615"}
	files := []struct {
		path, target string
		classes      []string
		want         []float64
	}{
		{file(t, "a.csv", []byte(csv.String())), "y", classes, want},
		{file(t, "a.libsvm", []byte(libsvm.String())), "label", classes, want},
		{file(t, "a.npz", npz(t, zip.Store, "X.npy", x, "y.npy", npyOf("<i8", "False", "5,", y...))), "y", classes, want},
		{file(t, "big.npz", npz(t, zip.Store, "X.npy", x, "y.npy", npyOf(">i8", "False", "5,", y...))), "y", classes, want},
		{"testdata/parquet/go-labels.parquet", "y", classes, want},
		{"testdata/parquet/go-labels.parquet", "u", unsigned, []float64{1, 0, 1, 0, 1}},
	}
	for _, f := range files {
		rules := dataset.Rules{Targets: []string{f.target}, Labels: true}
		table, err := dataset.Read(f.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		e := learn(t, table, rules)
		s, err := dataset.Open(f.path)
		if err != nil {
			t.Fatal(err)
		}
		streamed, err := s.Learn(t.Context(), rules)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range []*dataset.Encoder{e, streamed} {
			if got := e.Classes(); !slices.Equal(got, f.classes) {
				t.Errorf("%s: classes are %q, want %q", f.path, got, f.classes)
			}
			if got := indices(t, e, table); !slices.Equal(got, f.want) {
				t.Errorf("%s: indices are %v, want %v", f.path, got, f.want)
			}
		}
		var blocks []float64
		err = s.Blocks(t.Context(), e, 2, func(_, y *mat.Dense) error {
			blocks = append(blocks, y.RawMatrix().Data...)
			return nil
		})
		if err != nil || !slices.Equal(blocks, f.want) {
			t.Errorf("%s: indices of blocks are %v, %v, want %v", f.path, blocks, err, f.want)
		}
		if f.target != "y" {
			continue
		}
		for _, other := range files {
			if other.target == "y" {
				table, err := dataset.Read(other.path, nil)
				if err != nil {
					t.Fatal(err)
				}
				if got := indices(t, e, table); !slices.Equal(got, want) {
					t.Errorf("classes of %s in %s: indices are %v, want %v", f.path, other.path, got, want)
				}
			}
		}
	}
	// All spellings of a number are the same class, but a number that is very close is another class.
	table := read(t, "x,y\n1,1152921504606846976.0\n2,1152921504606846977\n3,+11529215046068469760e-1\n4,0\n5,-0.0\n")
	e := learn(t, table, dataset.Rules{Targets: []string{"y"}, Labels: true})
	if got := e.Classes(); !slices.Equal(got, []string{"0", "1152921504606846976.0", "1152921504606846977"}) {
		t.Errorf("classes are %q", got)
	}
	if got := indices(t, e, table); !slices.Equal(got, []float64{1, 2, 1, 0, 0}) {
		t.Errorf("indices are %v", got)
	}
	// In a column of more than MaxCategories numbers, the texts of the numbers are not stored.
	var many strings.Builder
	many.WriteString("x1,y\n")
	for i := range dataset.MaxCategories + 1 {
		fmt.Fprintf(&many, "0,%d\n", i+1<<60)
	}
	_, err := learn(t, read(t, csv.String()), dataset.Rules{Targets: []string{"y"}, Labels: true}).Targets(read(t, many.String()))
	if err == nil || !strings.Contains(err.Error(), "is too large to be compared exactly in a column of more than 1000 distinct numbers") {
		t.Error(err)
	}
}

func TestClassFaults(t *testing.T) {
	labels := dataset.Rules{Targets: []string{"y"}, Labels: true}
	var many, thousands strings.Builder
	for i := range 50 {
		fmt.Fprintf(&many, "1,%d.5\n", i)
	}
	thousands.WriteString(numbersBelow(2 * dataset.MaxCategories))
	for _, c := range []struct {
		text  string
		rules dataset.Rules
		want  string
	}{
		{"x,y\n1,a\n2,\n", labels, `standard input:3: column "y": the cell is empty; a target needs a class: give it one or drop the row`},
		{"x,y\n1,a\n2,NA\n", labels, `standard input:3: column "y": "NA" stands for a missing cell; a target needs a class: give it one or drop the row`},
		{"x,y\n1,3\n2,NA\n", labels, `standard input:3: column "y": "NA" stands for a missing cell; a target needs a class: give it one or drop the row`},
		{"x,y\n1,3\n2,inf\n", labels, `standard input:3: column "y": "inf" is not a finite number, as the other labels are`},
		{"x,y\n" + many.String(), labels, `standard input: column "y": has values that are not integers, such as "0.5": a target of numbers needs a learner for regression; if they are classes, set Labels`},
		{"x,y\n" + strings.Repeat("1,2\n1,0.25\n", 100), labels, `standard input: column "y": has values that are not integers, such as "0.25": a target of numbers needs a learner for regression; if they are classes, set Labels`},
		{"x,y\n" + strings.ReplaceAll(many.String(), ".5", "."), labels, `standard input: column "y": has 50 distinct values in 50 rows: too many to be classes; a target of numbers needs a learner for regression; if they are classes, set Labels`},
		{"x,y\n" + strings.Repeat(strings.ReplaceAll(many.String(), ".5", ".0"), 9), labels, `standard input: column "y": has 50 distinct values in 450 rows: too many to be classes; a target of numbers needs a learner for regression; if they are classes, set Labels`},
		{"x,y\n" + strings.ReplaceAll(many.String(), ".5", "a"), labels, `standard input: column "y": has 50 distinct values in 50 rows: too many to be classes; a target of numbers needs a learner for regression; if they are classes, set Labels`},
		{"x,y\n" + thousands.String(), labels, `standard input: column "y": has more than 1000 distinct values: too many to be classes; a target of numbers needs a learner for regression`},
		{"x,y\n1,a\n", dataset.Rules{Targets: []string{"x", "y"}, Labels: true}, `standard input: classification needs exactly one target column, not 2`},
		{"x,y\n1,a\n", dataset.Rules{Labels: true}, `standard input: classification needs exactly one target column, not 0`},
		{"x,why\n1,a\n", labels, `standard input: has no target column "y"; it has "x", "why"`},
	} {
		_, err := dataset.Learn(read(t, c.text), c.rules)
		wantError(t, err, c.want)
	}
	// Many classes are accepted if each class has enough rows, or if AnyLabels is set.
	for _, c := range []struct {
		text  string
		rules dataset.Rules
	}{
		{"x,y\n" + strings.Repeat(strings.ReplaceAll(many.String(), ".5", ""), 10), labels},
		{"x,y\n" + strings.Repeat(strings.ReplaceAll(many.String(), ".5", "a"), 2), labels},
		{"x,y\n" + many.String(), dataset.Rules{Targets: []string{"y"}, Labels: true, AnyLabels: true}},
	} {
		if n := len(learn(t, read(t, c.text), c.rules).Classes()); n != 50 {
			t.Errorf("%d classes, want 50", n)
		}
	}
	numbered := learn(t, read(t, "x,y\n1,0\n2,1\n"), labels)
	texts := learn(t, read(t, "x,y\n1,ham\n2,spam\n"), labels)
	for _, c := range []struct {
		e          *dataset.Encoder
		text, want string
	}{
		{numbered, "x,y\n1,0\n1,7\n", `standard input:3: column "y": "7" is an unknown class; known are "0", "1"`},
		{numbered, "x,y\n1,0\n1,NA\n", `standard input:3: column "y": "NA" stands for a missing cell; a target needs a class: give it one or drop the row`},
		{numbered, "x,y\n" + numbersBelow(2*dataset.MaxCategories), `standard input:2: column "y": "0.5" is an unknown class; known are "0", "1"`},
		{texts, "x,y\n1,ham\n1,Spam\n", `standard input:3: column "y": "Spam" is an unknown class; known are "ham", "spam"; did you mean "spam"?`},
		{texts, "x,y\n1,ham\n1,\n", `standard input:3: column "y": the cell is empty; a target needs a class: give it one or drop the row`},
		{texts, "x\n1\n", `standard input: has no target column "y"; it has "x"`},
	} {
		_, err := c.e.Targets(read(t, c.text))
		wantError(t, err, c.want)
	}
}

// TestScoredTargets checks that unknown classes follow the learned classes, in the order of their rows, and that a
// cell that cannot be a class gives an error.
func TestScoredTargets(t *testing.T) {
	labels := dataset.Rules{Targets: []string{"y"}, Labels: true}
	texts := learn(t, read(t, "x,y\n1,b\n2,a\n"), labels)
	numbered := learn(t, read(t, "x,y\n1,0\n2,1\n"), labels)
	for _, c := range []struct {
		e       *dataset.Encoder
		text    string
		y       []float64
		classes []string
	}{
		{texts, "x,y\n1,a\n1,b\n", []float64{0, 1}, []string{"a", "b"}},
		{texts, "x,y\n1,d\n1,b\n1,c\n1,d\n", []float64{2, 1, 3, 2}, []string{"a", "b", "d", "c"}},
		{numbered, "x,y\n1,7\n1,1\n1,7.0\n", []float64{2, 1, 2}, []string{"0", "1", "7"}},
		{numbered, "x,y\n1,x\n1,1\n1,x\n", []float64{2, 1, 2}, []string{"0", "1", "x"}},
	} {
		y, classes, err := c.e.ScoredTargets(read(t, c.text))
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if got := mat.Col(nil, 0, y); !slices.Equal(got, c.y) || !slices.Equal(classes, c.classes) {
			t.Errorf("%q: %v of %q, want %v of %q", c.text, got, classes, c.y, c.classes)
		}
		if len(c.e.Classes()) != 2 {
			t.Errorf("%q: the encoder has %q now", c.text, c.e.Classes())
		}
	}
	_, _, err := texts.ScoredTargets(read(t, "x,y\n1,a\n1,\n"))
	wantError(t, err, `standard input:3: column "y": the cell is empty; a target needs a class: give it one or drop the row`)
	regression := learn(t, read(t, "x,y\n1,2.5\n2,3.5\n"), dataset.Rules{Targets: []string{"y"}})
	if y, classes, err := regression.ScoredTargets(read(t, "x,y\n1,4.5\n")); err != nil || classes != nil || y.At(0, 0) != 4.5 {
		t.Error(y, classes, err)
	}
}

// TestClassesOfSplit checks that held-out rows do not add classes.
func TestClassesOfSplit(t *testing.T) {
	train, test := read(t, "x,y\n1,a\n2,b\n3,7\n4,a\n5,b\n6,a\n").Split(0.2, 3)
	e := learn(t, train, dataset.Rules{Targets: []string{"y"}, Labels: true})
	heldOut, err := test.Texts("y")
	if err != nil || len(heldOut) != 1 {
		t.Fatal(heldOut, err)
	}
	texts, err := train.Texts("y")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(texts)
	if want := slices.Compact(texts); !slices.Equal(e.Classes(), want) {
		t.Errorf("classes are %q, want %q", e.Classes(), want)
	}
}

// TestTexts checks that Texts returns the cells of a column of texts or trees unchanged.
func TestTexts(t *testing.T) {
	table := read(t, "id,text,y\n1,\"free, now\",spam\n2,,ham\n3, NA ,ham\n4,12,ham\n")
	e := learn(t, table, dataset.Rules{Targets: []string{"y"}, Labels: true, Text: "text"})
	got, err := e.Texts(table)
	if err != nil || !slices.Equal(got, []string{"free, now", "", "NA", "12"}) {
		t.Errorf("texts are %q, %v", got, err)
	}
	if names := e.FeatureNames(); e.Raw() != dataset.RawText || !slices.Equal(names, []string{"text"}) {
		t.Errorf("a %q of %q", e.Raw(), names)
	}
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var decoded dataset.Encoder
	if err := json.Unmarshal(data, &decoded); err != nil || !cmp.Equal(e, &decoded) || decoded.Check() != nil {
		t.Errorf("changed by JSON: %v, %v\n%s", err, decoded.Check(), data)
	}
	_, err = e.Features(table)
	wantError(t, err, `standard input: column "text": was learned as a column of texts, not numbers`)
	_, err = e.Texts(read(t, "txt\na\n"))
	wantError(t, err, `standard input: has no text column "text"; it has "txt"; did you mean "txt"?`)
	_, err = e.Texts(read(t, "text\n"))
	wantError(t, err, `standard input: has no rows below its header`)
	_, err = e.Texts(read(t, "x,text\n"+numbersBelow(2*dataset.MaxCategories)))
	wantError(t, err, `standard input: column "text": holds numbers, not texts`)
	number := learn(t, table, dataset.Rules{Targets: []string{"y"}, Labels: true, Text: "id"})
	if got, err := number.Texts(table); err != nil || !slices.Equal(got, []string{"1", "2", "3", "4"}) {
		t.Errorf("texts are %q, %v", got, err)
	}
	plain := learn(t, read(t, "x,y\n1,2\n"), dataset.Rules{Targets: []string{"y"}})
	_, err = plain.Texts(table)
	wantError(t, err, `standard input: the features are numbers: no column of texts or trees was named when they were learned`)

	for _, c := range []struct {
		rules dataset.Rules
		want  string
	}{
		{dataset.Rules{Text: "txt"}, `standard input: has no text column "txt"; it has "id", "text", "y"; did you mean "text"?`},
		{dataset.Rules{Text: "text", Tree: "id"}, `standard input: the input is a single column: name either "text" of texts or "id" of trees, not both`},
		{dataset.Rules{Targets: []string{"y"}, Labels: true, Text: "y"}, `standard input: column "y": is named both as a target and as the text`},
		{dataset.Rules{Text: "text", RefuseMissing: true}, `standard input:3: column "text": the cell is empty; missing cells are refused: give it a value or drop the row`},
		{dataset.Rules{Tree: "text"}, `standard input:3: column "text": the cell is empty; a tree is needed, such as (S (NP she) (VP ran))`},
	} {
		_, err := dataset.Learn(table, c.rules)
		wantError(t, err, c.want)
	}
}

// TestCheckLabels checks that Check returns an error for classes and inputs that Learn cannot return.
func TestCheckLabels(t *testing.T) {
	number := dataset.Input{Name: "x", Number: &dataset.Number{Scale: 1}}
	y := []string{"y"}
	for _, c := range []struct {
		e    dataset.Encoder
		want string
	}{
		{dataset.Encoder{Inputs: []dataset.Input{number}, Outputs: y, Labels: []string{"9", "10"}}, ""},
		{dataset.Encoder{Inputs: []dataset.Input{number}, Outputs: y, Labels: []string{"10", "9", "x"}}, ""},
		{dataset.Encoder{Inputs: []dataset.Input{number}, Labels: []string{"a"}}, `dataset: encoder: must have exactly one target if it has classes, has 0 targets`},
		{dataset.Encoder{Inputs: []dataset.Input{number}, Outputs: y, Labels: []string{}}, `dataset: encoder: must have 1 to 1000 classes, has 0`},
		{dataset.Encoder{Inputs: []dataset.Input{number}, Outputs: y, Labels: []string{"10", "9"}}, `dataset: encoder: classes must be sorted and distinct, but "10" precedes "9"`},
		{dataset.Encoder{Inputs: []dataset.Input{number}, Outputs: y, Labels: []string{"1", "1.0"}}, `dataset: encoder: classes must be sorted and distinct, but "1" precedes "1.0"`},
		{dataset.Encoder{Inputs: []dataset.Input{number}, Outputs: y, Labels: []string{"a", ""}}, `dataset: encoder: "" is not a class`},
		{dataset.Encoder{Inputs: []dataset.Input{{Name: "t", Raw: "sound"}}}, `dataset: encoder: column "t": the type of its cells is "sound"; it must be text or tree`},
		{dataset.Encoder{Inputs: []dataset.Input{{Name: "t", Raw: "text", Number: number.Number}}}, `dataset: encoder: column "t": must be either a number or a text`},
		{dataset.Encoder{Inputs: []dataset.Input{{Name: "t", Raw: "text"}, number}}, `dataset: encoder: column "t": a text must be the only input`},
	} {
		err := c.e.Check()
		if got := fmt.Sprint(err); c.want == "" && err != nil || c.want != "" && got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// TestScoredBlocksAreScoredTargets checks that unknown classes get the same indices and labels whether a file is read
// at once or in parts.
func TestScoredBlocksAreScoredTargets(t *testing.T) {
	const rows = 40000
	pad := strings.Repeat("0", 80) // with these zeros the file has 4 parts of 1 MiB
	table := func(label func(i int) string) string {
		var b strings.Builder
		b.WriteString("x,y\n")
		for i := range rows {
			fmt.Fprintf(&b, "%s%d,%s\n", pad, i, label(i))
		}
		return b.String()
	}
	rare := []string{"", "7", "new", "7.0", "8", "other", "8.00", "new"}
	mixed := func(classes ...string) func(int) string {
		return func(i int) string {
			if i%1000 == 999 { // the first new class differs between the parts
				if label := rare[i*3/rows+i/1000%5]; label != "" {
					return label
				}
			}
			return classes[i%len(classes)]
		}
	}
	for name, c := range map[string]struct{ train, text string }{
		"texts":   {"x,y\n1,b\n2,a\n", table(mixed("a", "b"))},
		"numbers": {"x,y\n1,0\n2,1\n", table(mixed("0", "1.0"))},
		"none":    {"x,y\n1,b\n2,a\n", table(func(i int) string { return []string{"a", "b"}[i%2] })},
		"most":    {"x,y\n1,b\n2,a\n", table(func(i int) string { return fmt.Sprintf("c%d", i%(dataset.MaxCategories-2)) })},
		"many":    {"x,y\n1,b\n2,a\n", table(func(i int) string { return fmt.Sprintf("c%d", i/40) })},
		"numeric": {"x,y\n1,0.5\n2,1\n", table(func(i int) string { return fmt.Sprint(i) })},
	} {
		e := learn(t, read(t, c.train), dataset.Rules{Targets: []string{"y"}, Labels: name != "numeric"})
		path := file(t, "a.csv", []byte(c.text))
		table, err := dataset.Read(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		want, classes, wantErr := e.ScoredTargets(table)
		s, err := dataset.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		var y []float64
		got, err := s.ScoredBlocks(t.Context(), e, 777, func(_, part *mat.Dense, _ []float64, _ []uint64) error {
			y = append(y, part.RawMatrix().Data...)
			return nil
		})
		if wantErr != nil || name == "many" {
			wantError(t, wantErr, path+`: column "y": has more than 1000 classes, including the classes of the model`)
			wantError(t, err, wantErr.Error())
			continue
		}
		if err != nil || !slices.Equal(got, classes) || !slices.Equal(y, want.RawMatrix().Data) {
			t.Errorf("%s: classes %.80q, %v, want %.80q; equal indices: %v", name, got, err, classes, slices.Equal(y, want.RawMatrix().Data))
		}
		if name == "texts" && len(classes) < 5 {
			t.Errorf("the table has the classes %q only", classes)
		}
	}
}
