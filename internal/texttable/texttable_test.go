package texttable

import "testing"

// TestFormat checks that columns are aligned for characters of every width, and that no line ends in spaces.
func TestFormat(t *testing.T) {
	for _, test := range []struct {
		name, align string
		rows        [][]string
		want        string
	}{
		{"none", "ll", nil, ""},
		{"sides", "lr", [][]string{{"n", "time"}, {"1000", "2 s"}}, "n     time\n1000   2 s\n"},
		{"no trailing spaces", "ll", [][]string{{"a", "long"}, {"b", ""}}, "a  long\nb\n"},
		{"an empty first column indents", "lr", [][]string{{"", "1"}, {"", "12"}}, "   1\n  12\n"},
		{"short rows", "lll", [][]string{{"a"}, {"bb", "c", "d"}}, "a\nbb  c  d\n"},
		{"symbols are one column wide", "lr", [][]string{{"σ", "–"}, {"ab", "×10"}}, "σ     –\nab  ×10\n"},
		{"two places", "lr", [][]string{{"核", "1"}, {"abc", "12"}}, "核    1\nabc  12\n"},
		{"a combining accent takes none", "ll", [][]string{{"e\u0301", "x"}, {"ab", "y"}}, "e\u0301   x\nab  y\n"},
		{"escapes and line ends", "ll", [][]string{{"\x1b[31m", "x"}, {"a\nb", "y"}}, "\\x1b[31m  x\na\\nb      y\n"},
	} {
		if got := Format(test.align, test.rows); got != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, got, test.want)
		}
	}
}

// TestFormatLeavesRows checks that Format does not change its argument.
func TestFormatLeavesRows(t *testing.T) {
	rows := [][]string{{"\x1b", "a"}}
	Format("lr", rows)
	if rows[0][0] != "\x1b" {
		t.Errorf("got %q", rows[0][0])
	}
}
