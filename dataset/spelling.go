package dataset

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A number is spelled plainly as parseCell reads it: ASCII digits, a decimal point, an
// exponent of e. A cell in another spelling is read where it has one meaning only: with
// the minus sign or the digits of Unicode, with invisible characters, with the exponent
// of Fortran (1.5D+03), and with digits grouped by apostrophes or no-break spaces.
// Commas, points and spaces between digits need marks that say what they are. Any other
// cell that is a number but for its spelling is of the kind spelled: a fault in a column
// of numbers, and never a category or a class unless the user declares the column.

// marks are the characters between the digits of a number.
type marks struct {
	decimal   byte // '.' or ','
	thousands byte // separates groups of digits; 0: only an apostrophe or a no-break space does
	fixed     bool // no option names others
}

// points are the marks of plain numbers, in tables that are no CSV files.
var points = marks{decimal: '.', fixed: true}

// newMarks fills in the mark that is 0.
func newMarks(decimal, thousands byte) marks {
	if decimal == 0 {
		decimal = '.'
		if thousands == '.' {
			decimal = ','
		}
	}
	return marks{decimal: decimal, thousands: thousands}
}

// check returns what is wrong with the marks, or "".
func (m marks) check() string {
	switch {
	case m.decimal != '.' && m.decimal != ',':
		return fmt.Sprintf("the decimal mark %q cannot be one: use . or ,", m.decimal)
	case m.thousands == m.decimal:
		return fmt.Sprintf("the mark %q is named both for decimals and for thousands", m.decimal)
	case m.thousands != 0 && strings.IndexByte(".,' _", m.thousands) < 0:
		return fmt.Sprintf("the thousands mark %q cannot be one: use , . ' _ or a space", m.thousands)
	}
	return ""
}

// noBreak stands for a no-break or thin space in the ASCII form of a cell.
const noBreak = '\x01'

// ascii returns a cell with ASCII characters for those that mean the same in a number: $
// for any currency sign, % for any sign of percent, noBreak for spaces that are not
// ASCII. Invisible characters are left out. It is not ok for a cell that cannot be a
// number.
func ascii(s string) (text string, ok bool) {
	var b strings.Builder
	letters, digits := 0, 0
	for _, r := range s {
		switch {
		case '0' <= r && r <= '9':
			digits++
		case unicode.Is(unicode.Nd, r):
			r = '0' + digitOf(r)
			digits++
		case r >= 0xff01 && r <= 0xff5e: // full-width ASCII
			r -= 0xff01 - '!'
		case unicode.Is(unicode.Cf, r):
			continue
		case r == '−', r >= 0x2010 && r <= 0x2015, r == 0xfe63: // minus, hyphens and dashes
			r = '-'
		case r == '’':
			r = '\''
		case r == '٫':
			r = '.'
		case r == '٬':
			r = '\''
		case r == '٪', r == '‰':
			r = '%'
		case unicode.Is(unicode.Sc, r):
			r = '$'
		case r > unicode.MaxASCII && unicode.IsSpace(r):
			r = noBreak
		case unicode.IsLetter(r):
			if letters++; letters > 4 { // of a currency and an exponent
				return "", false
			}
		case r <= ' ' && r != ' ', r == utf8.RuneError:
			return "", false
		}
		b.WriteRune(r)
	}
	return b.String(), digits > 0
}

// digitOf is the value of a decimal digit of any script. Each script has its ten digits
// one after the other.
func digitOf(r rune) rune {
	for _, t := range unicode.Nd.R16 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return (r - rune(t.Lo)) % 10
		}
	}
	for _, t := range unicode.Nd.R32 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return (r - rune(t.Lo)) % 10
		}
	}
	return 0
}

// numeral has the parts of a number in any spelling: parenthesis, sign, unit, sign, space,
// digits with marks, exponent, unit, sign, parenthesis.
var numeral = func() *regexp.Regexp {
	const (
		space = `[ \x01]*`
		sign  = `[A-Z]{0,3}\$|%`
		name  = `(?:AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HUF|INR|JPY|KRW|MXN|NOK|PLN|RUB|SEK|TRY|USD|ZAR|kr|zł|Kč|Fr|Rs)`
		body  = `([0-9.,](?:[0-9.,'_ \x01]*[0-9.,])?)`
	)
	before, after := `(`+sign+`|`+name+`[. \x01]|)`, `(`+sign+`|[ \x01]`+name+`\.?|)`
	return regexp.MustCompile(`^(\(?)` + space + `([-+]?` + space + `)` + before + space + `([-+]?)(` + space + `)` + body + `([eEdD][-+]?[0-9]+|)` + space + after + space + `(-?)` + space + `(\)?)$`)
}()

// spell reads a trimmed cell with the marks. plain is the number in plain spelling; where
// it is empty and rule is not, the cell is a number but for its spelling. Where both are
// empty it is no number.
func (m marks) spell(s string) (plain, rule string) {
	s, ok := ascii(s)
	if !ok {
		return "", ""
	}
	p := numeral.FindStringSubmatch(s)
	if p == nil {
		return "", ""
	}
	open, first, before, second, gap, body, exponent, after, last, closed := p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10]
	signs := 0
	for _, sign := range []string{open, first, second, last} {
		if sign = strings.Trim(sign, " \x01"); sign != "" {
			signs++
		}
	}
	if signs > 1 || (open == "") != (closed == "") || before != "" && after != "" {
		return "", ""
	}
	if e := strings.IndexAny(exponent, "dD"); e >= 0 {
		if !strings.ContainsAny(body, ".,") && !strings.ContainsAny(exponent, "+-") {
			return "", "" // a code such as 1D5
		}
		exponent = "e" + exponent[1:]
	}
	if last != "" && !strings.ContainsAny(body, ".,") {
		return "", "" // a grade such as 3-
	}
	digits, ok := m.digits(body)
	switch unit := strings.TrimSpace(before + after); {
	case !ok && !slices.ContainsFunc(spellings, func(other marks) bool { _, ok := other.digits(body); return ok }):
		return "", ""
	case unit == "%":
		return "", "is a number with a percent sign: write the number alone"
	case unit != "":
		return "", "is a number with a currency sign: write the number alone"
	case open != "" || last != "" || len(first) > 1 || signs > 0 && gap != "":
		return "", "is a number with its sign in another place: write a negative number as -1.5"
	case !ok:
		return "", m.advice(strings.TrimPrefix(first+second, "+"), body, exponent)
	}
	return strings.TrimPrefix(first+second, "+") + digits + exponent, ""
}

// spellings are the marks that files have, in the order in which advice names them.
var spellings = []marks{newMarks('.', ','), newMarks(',', 0), newMarks(',', '.'), newMarks('.', 0), newMarks('.', ' '), newMarks(',', ' ')}

// markNames are the values of parameters in advice.
var markNames = map[byte]string{'.': "point", ',': "comma", ' ': "space"}

// advice names the marks that make a number of digits that the marks of the file do not.
func (m marks) advice(sign, body, exponent string) string {
	var best, numbers []string
	fewest := 3
	for _, other := range spellings {
		digits, ok := other.digits(body)
		if !ok || other.thousands != 0 && strings.IndexByte(body, other.thousands) < 0 {
			continue // or another one does as well
		}
		var change []string
		if other.decimal != m.decimal && other.thousands != '.' { // which implies it
			change = append(change, "$decimal="+markNames[other.decimal])
		}
		if other.thousands != m.thousands && other.thousands != 0 {
			change = append(change, "$thousands="+markNames[other.thousands])
		}
		if len(change) < fewest {
			best, numbers, fewest = nil, nil, len(change)
		}
		if len(change) == fewest {
			numbers = append(numbers, sign+digits+exponent)
			best = append(best, "give "+strings.Join(change, " and ")+" to read "+sign+digits+exponent)
		}
	}
	if m.fixed {
		return "is a number in another spelling: write " + strings.Join(numbers, " or ")
	}
	return "is a number in another spelling: {" + strings.Join(best, "|") + "}"
}

// digits returns digits with marks as a plain number without sign and exponent.
func (m marks) digits(body string) (string, bool) {
	const all = "0123456789"
	whole, fraction, point := strings.Cut(body, string(m.decimal))
	if at := strings.IndexFunc(whole, func(r rune) bool { return r < '0' || r > '9' }); at >= 0 {
		mark := whole[at]
		groups := strings.Split(whole, string(mark))
		if mark != m.thousands && mark != '\'' && mark != noBreak || whole[0] == '0' || !areGroups(groups, mark) {
			return "", false
		}
		whole = strings.Join(groups, "")
	}
	if whole+fraction == "" || strings.Trim(whole, all) != "" || strings.Trim(fraction, all) != "" {
		return "", false
	}
	if point {
		whole += "." + fraction
	}
	return whole, true
}

// areGroups reports whether a number may be written as these groups of digits: all but
// the first of three digits, or with commas all but the first and the last of two, as in
// India. Four groups with points may be an address of the internet instead.
func areGroups(groups []string, mark byte) bool {
	last := len(groups) - 1
	if n := len(groups[0]); n < 1 || n > 3 || len(groups[last]) != 3 {
		return false
	}
	for _, g := range groups[1:last] {
		if len(g) != 3 && !(mark == ',' && len(g) == 2 && len(groups[1]) == 2) {
			return false
		}
	}
	return !(mark == '.' && last == 3 && !slices.ContainsFunc(groups, func(g string) bool { return len(g) == 3 && g > "255" }))
}
