package pipeline

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/message"
)

// oneRuleCases returns columns of numbers with some other cells, and columns with many distinct texts. want is a
// part of the error, or "" if the column is accepted.
func oneRuleCases() []oneRuleCase {
	number := func(i int) string { return fmt.Sprint((i * 37) % 41) }
	oneOdd := func(cell string) func(int) string {
		return func(i int) string {
			if i == 19 {
				return cell
			}
			return number(i)
		}
	}
	everyKth := func(k int, cell string) func(int) string {
		return func(i int) string {
			if i%k == 0 {
				return cell
			}
			return number(i)
		}
	}
	word := func(i int) string { return "w" + strings.Repeat("x", i%7) + fmt.Sprint(i) }
	among := func(texts ...string) func(int) string {
		return func(i int) string { return texts[i%len(texts)] }
	}
	const n = 300
	oddMessage := func(cell string) string {
		return fmt.Sprintf(`:21: column "c": %q is not a number, but 299 of the 300 cells of the column are; correct it`, cell)
	}
	return []oneRuleCase{
		{"abc", n, oneOdd("abc"), oddMessage("abc")},
		{"a question mark", n, oneOdd("?"), oddMessage("?")},
		{"two dashes", n, oneOdd("--"), oddMessage("--")},
		{"unknown", n, oneOdd("unknown"), oddMessage("unknown")},
		{"a house number", n, oneOdd("12a"), oddMessage("12a")},
		{"true", n, oneOdd("true"), oddMessage("true")},
		{"hexadecimal", n, oneOdd("0x1F"), oddMessage("0x1F")},
		{"groups with _", n, oneOdd("1_000"), oddMessage("1_000")},
		{"a tenth of words", n, everyKth(10, "none"), "is not a number, but 270 of the 300 cells"},
		{"a ninth of words", n, everyKth(9, "none"), ""},
		{"half of words", n, everyKth(2, "none"), ""},
		{"half of dashes", n, everyKth(2, "--"), "is not a number, but 150 of the 300"},
		{"infinity", n, oneOdd("inf"), `:21: column "c": "inf" is not a finite number`},
		{"too large", n, oneOdd("1e999"), `:21: column "c": "1e999" is outside the range of float64`},
		{"infinity among categories", n, everyKth(3, "inf"), "is not a finite number"},
		{"infinity and words", n, among("inf", "a", "b"), ""},
		{"markers only", n, among("NA", "", "NULL"), `column "c": has no values`},
		{"empty", n, among(""), `column "c": has no values`},
		{"missing numbers", n, everyKth(4, ""), ""},
		{"markers among numbers", n, everyKth(3, "NaN"), ""},
		{"markers among words", n, among("a", "NA", "b", "", "b"), ""},
		{"integers of few values", n, among("1", "2", "3"), ""},
		{"one number in several spellings", n, among("1", "1.0", "01", "1e0"), ""},
		{"minus zero", n, among("-0", "0"), ""},
		{"large integers", n, among("9007199254740993", "9007199254740992", "-9007199254740995"), ""},
		{"true and false", n, among("true", "false", ""), ""},
		{"codes", n, among("A1", "A2", "1-2"), ""},
		{"a text in each row", n, word, `column "c": has 300 distinct texts, such as "w0", in 300 rows: too many to be categories`},
		{"two rows for each of 25 texts", 50, func(i int) string { return word(i % 25) }, ""},
		{"two rows for most of 26 texts", 51, func(i int) string { return word(i % 26) }, "has 26 distinct texts"},
		{"words among different numbers", n, func(i int) string {
			if i%3 == 0 {
				return word(i)
			}
			return fmt.Sprint(i)
		}, `"w0" is not a number, but 200 of the 300`},
		{"1,000", n, func(i int) string { return fmt.Sprintf(`"%d,000"`, i+1) }, `:2: column "c": "1,000" is a number in another spelling`},
		{"a percent sign", n, oneOdd("12%"), `:21: column "c": "12%"`},
		{"a currency", n, everyKth(2, "$5"), `:2: column "c": "$5"`},
		{"percent signs in words", n, among("a", "12%", "b"), `:3: column "c": "12%"`},
		{"abc before many different numbers", 2500, func(i int) string {
			if i == 19 {
				return "abc"
			}
			return fmt.Sprint(i)
		}, `:21: column "c": "abc" is not a number; correct it`},
		{"abc behind many different numbers", 2500, func(i int) string {
			if i == 2222 {
				return "abc"
			}
			return fmt.Sprint(i)
		}, `:2224: column "c": "abc" is not a number; correct it`},
		{"many different texts", 2500, func(i int) string { return word(i % 1100) }, `column "c": has more than 1000 distinct texts, such as "w0": too many to be categories`},
		{"1000 texts", 2500, func(i int) string { return word(i % 1000) }, ""},
		{"constant", n, among("0.1"), ""},
		{"constant but for missing cells", n, everyKth(1, "0.1"), ""},
		{"constant up to rounding", n, among("0.3", "0.30000000000000004", "0.3"), ""},
		{"1e-200", n, func(i int) string { return fmt.Sprintf("%de-200", i%7) }, ""},
		{"1e-300", n, func(i int) string { return fmt.Sprintf("%de-300", i%7) }, ""},
		{"1e300", n, func(i int) string { return fmt.Sprintf("%de300", i%7) }, ""},
		{"both ends of float64", n, among("1.7e308", "-1.7e308", "1e308", "-1e308"), ""},
		{"1e8 + k", n, func(i int) string { return fmt.Sprint(100000000 + i%10) }, ""},
	}
}

type oneRuleCase struct {
	name string
	rows int
	cell func(i int) string
	want string
}

// TestOneRule checks that a table in memory, a file read in passes, and a pipeline decide the type of a column in
// the same way, or refuse it with the same error. The column is a feature, a target of numbers, or a target of
// classes.
func TestOneRule(t *testing.T) {
	const seed = 27
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, c := range oneRuleCases() {
		text := bytes.NewBufferString("c,id,y\n")
		for i := range c.rows {
			fmt.Fprintf(text, "%s,%d,%d\n", c.cell(i), i, i%3)
		}
		path := filepath.Join(t.TempDir(), "t.csv")
		if err := os.WriteFile(path, text.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		for _, rules := range []dataset.Rules{
			{Targets: []string{"y"}, Standardize: true},
			{Targets: []string{"y"}, RefuseMissing: true},
			{Targets: []string{"c"}},
			{Targets: []string{"c"}, Labels: true, AnyLabels: true},
		} {
			name := fmt.Sprintf("%s, %+v", c.name, rules)
			table, err := dataset.Read(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			want, wantErr := dataset.Learn(table, rules)
			if rules.Standardize && (c.want == "") != (wantErr == nil) || wantErr != nil && rules.Standardize && !strings.Contains(wantErr.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, wantErr, c.want)
			}
			s, err := dataset.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			streamed, err := s.Learn(t.Context(), rules)
			sameRule(t, name+", stream", streamed, err, want, wantErr, 0)
			for _, size := range []int64{0, 1024} {
				p, err := Params{Inputs: []string{path}, Targets: rules.Targets, Classify: rules.Labels, NoStandardize: !rules.Standardize, RefuseMissing: rules.RefuseMissing, Model: "m", PieceBytes: size}.withDefaults()
				if err != nil {
					t.Fatal(err)
				}
				got, err := encoderOf(t, p, r)
				if err != nil && strings.Contains(err.Error(), "has only one class") && len(want.Labels) == 1 {
					continue // the learners refuse a single class, but Learn accepts it
				}
				sameRule(t, fmt.Sprintf("%s, Beam, pieces of %d bytes", name, size), got, err, want, wantErr, 1e-12)
			}
		}
	}
}

// encoderOf returns the encoder that Beam learns from pieces in a random order.
func encoderOf(t *testing.T, p Params, r *rand.Rand) (*dataset.Encoder, error) {
	t.Helper()
	merged := &census{Keep: p.sampleSize()}
	var list []filePiece
	if err := pieces(t.Context(), p, func(piece filePiece) { list = append(list, piece) }); err != nil {
		t.Fatal(err)
	}
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	for _, piece := range list {
		c, err := censusOf(t.Context(), p, piece)
		if err != nil {
			return nil, err
		}
		if err := merged.merge(c); err != nil {
			t.Fatal(err)
		}
	}
	return merged.encoder(t.Context(), p)
}

// sameRule compares two encoders, with a relative tolerance of tol for numbers.
func sameRule(t *testing.T, name string, got *dataset.Encoder, err error, want *dataset.Encoder, wantErr error, tol float64) {
	t.Helper()
	if err != nil || wantErr != nil {
		text := func(err error) string {
			var dataErr *dataset.Error
			if !errors.As(err, &dataErr) {
				return fmt.Sprint(err)
			}
			return message.Text(dataErr, parameter)
		}
		if a, b := text(err), text(wantErr); a != b {
			t.Errorf("%s:\ngot  %s\nwant %s", name, a, b)
		}
		return
	}
	if !slices.Equal(got.FeatureNames(), want.FeatureNames()) || !slices.Equal(got.Labels, want.Labels) {
		t.Errorf("%s: features %q, classes %q; want %q, %q", name, got.FeatureNames(), got.Labels, want.FeatureNames(), want.Labels)
		return
	}
	for j, w := range want.Inputs {
		g := got.Inputs[j]
		if w.Number == nil {
			if g.Text.Fill != w.Text.Fill {
				t.Errorf("%s: %q stands for missing cells, want %q", name, g.Text.Fill, w.Text.Fill)
			}
			continue
		}
		a, b := *g.Number, *w.Number
		if a.Fill != b.Fill || a.Low != b.Low || a.High != b.High || (a.Rounding > 0) != (b.Rounding > 0) ||
			math.Abs(a.Mean-b.Mean) > tol*math.Abs(b.Mean)+tol*b.Scale || math.Abs(a.Scale-b.Scale) > tol*b.Scale {
			t.Errorf("%s: column %d: %+v, want %+v", name, j, a, b)
		}
	}
}
