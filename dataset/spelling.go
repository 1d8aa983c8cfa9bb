package dataset

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The function parseCell accepts numbers in plain spelling: ASCII digits, a decimal point and an exponent with e.
// Unambiguous other spellings are also accepted: a Unicode minus sign or Unicode digits, invisible characters, a
// Fortran exponent (1.5D+03), and digits grouped by apostrophes or no-break spaces. A number in any other spelling
// has the kind otherSpelling and is an error, unless the user declares the column categorical.

// marks holds the characters that may occur between the digits of a number.
type marks struct {
	decimal   byte // '.' or ','
	thousands byte // separates groups of digits, besides the apostrophe and the no-break space; 0 means none
	fixed     bool // the user cannot change the marks
}

// pointMarks holds the marks of plain numbers, for tables that are not CSV files.
var pointMarks = marks{decimal: '.', fixed: true}

// newMarks returns the given marks. A mark that is 0 has its default.
func newMarks(decimal, thousands byte) marks {
	if decimal == 0 {
		decimal = '.'
		if thousands == '.' {
			decimal = ','
		}
	}
	return marks{decimal: decimal, thousands: thousands}
}

// check returns the rule that the marks violate, or "".
func (m marks) check() string {
	switch {
	case m.decimal != '.' && m.decimal != ',':
		return fmt.Sprintf("the character %q cannot be a decimal mark: use . or ,", m.decimal)
	case m.thousands == m.decimal:
		return fmt.Sprintf("the character %q is both the decimal mark and the thousands mark", m.decimal)
	case m.thousands != 0 && strings.IndexByte(".,' _", m.thousands) < 0:
		return fmt.Sprintf("the character %q cannot be a thousands mark: use , . ' _ or a space", m.thousands)
	}
	return ""
}

// noBreak stands for a no-break or thin space in the result of the function ascii.
const noBreak = '\x01'

// ascii replaces each character that has an ASCII equivalent in numbers: a currency sign by $, a percent sign by %,
// and a non-ASCII space by noBreak. ok is false if the cell cannot be a number.
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
		case r == '−', r >= 0x2010 && r <= 0x2015, r == 0xfe63: // minus sign, hyphens and dashes
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
			if letters++; letters > 4 { // a currency and an exponent have together at most 4 letters
				return "", false
			}
		case r <= ' ' && r != ' ', r == utf8.RuneError:
			return "", false
		}
		b.WriteRune(r)
	}
	return b.String(), digits > 0
}

// digitOf returns the value of a decimal digit of any script.
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

// numeral matches a number in any spelling. Its groups are parenthesis, sign, unit, sign, space,
// digits with marks, exponent, unit, sign, parenthesis.
var numeral = func() *regexp.Regexp {
	const (
		space = `[ \x01]*`
		sign  = `[A-Z]{0,3}\$|%`
		name  = `(?:AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HUF|INR|JPY|KRW|MXN|NOK|PLN|RUB|SEK|TRY|USD|ZAR|kr|zł|Kč|Fr|Rs)`
		body  = `([0-9.,](?:[0-9.,'_ \x01]*[0-9.,])?)`
	)
	prefix, suffix := `(`+sign+`|`+name+`[. \x01]|)`, `(`+sign+`|[ \x01]`+name+`\.?|)`
	return regexp.MustCompile(`^(\(?)` + space + `([-+]?` + space + `)` + prefix + space + `([-+]?)(` + space + `)` + body + `([eEdD][-+]?[0-9]+|)` + space + suffix + space + `(-?)` + space + `(\)?)$`)
}()

// parseSpelling parses a trimmed cell as a number with the marks m. normalized is the number in plain spelling. If the
// spelling is unsupported, normalized is "" and rule says what to do. Both are "" if the cell is not a number.
func (m marks) parseSpelling(s string) (normalized, rule string) {
	s, ok := ascii(s)
	if !ok {
		return "", ""
	}
	p := numeral.FindStringSubmatch(s)
	if p == nil {
		return "", ""
	}
	open, first, prefix, second, gap, body, exponent, suffix, last, closing := p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10]
	signs := 0
	for _, sign := range []string{open, first, second, last} {
		if sign = strings.Trim(sign, " \x01"); sign != "" {
			signs++
		}
	}
	if signs > 1 || (open == "") != (closing == "") || prefix != "" && suffix != "" {
		return "", ""
	}
	if e := strings.IndexAny(exponent, "dD"); e >= 0 {
		if !strings.ContainsAny(body, ".,") && !strings.ContainsAny(exponent, "+-") {
			return "", "" // the cell is a code such as 1D5
		}
		exponent = "e" + exponent[1:]
	}
	if last != "" && !strings.ContainsAny(body, ".,") {
		return "", "" // the cell is a grade such as 3-
	}
	digits, ok := m.digits(body)
	switch unit := strings.TrimSpace(prefix + suffix); {
	case !ok && !slices.ContainsFunc(spellings, func(other marks) bool { _, ok := other.digits(body); return ok }):
		return "", ""
	case unit == "%":
		return "", "is a number with a percent sign: write the number alone"
	case unit != "":
		return "", "is a number with a currency sign: write the number alone"
	case open != "" || last != "" || len(first) > 1 || signs > 0 && gap != "":
		return "", "is a number whose sign does not come first: write a negative number as -1.5"
	case !ok:
		return "", m.advice(strings.TrimPrefix(first+second, "+"), body, exponent)
	}
	return strings.TrimPrefix(first+second, "+") + digits + exponent, ""
}

// spellings lists the pairs of marks that advice may propose, in this order.
var spellings = []marks{newMarks('.', ','), newMarks(',', 0), newMarks(',', '.'), newMarks('.', 0), newMarks('.', ' '), newMarks(',', ' ')}

// markNames maps a mark to the value of a parameter that advice proposes.
var markNames = map[byte]string{'.': "point", ',': "comma", ' ': "space"}

// advice returns an error text that proposes a decimal mark and a thousands mark with which a cell is a number. body is
// the part of the cell that consists of digits and marks.
func (m marks) advice(sign, body, exponent string) string {
	var best, numbers []string
	fewest := 3
	for _, other := range spellings {
		digits, ok := other.digits(body)
		if !ok || other.thousands != 0 && strings.IndexByte(body, other.thousands) < 0 {
			continue // the body is not a number with these marks, or does not contain the thousands mark
		}
		var change []string
		if other.decimal != m.decimal && other.thousands != '.' { // the thousands mark '.' needs no advice about the decimal comma, which it implies
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

// digits converts digits with marks to a plain number without sign and exponent.
func (m marks) digits(body string) (string, bool) {
	const digitChars = "0123456789"
	integer, fraction, point := strings.Cut(body, string(m.decimal))
	if i := strings.IndexFunc(integer, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		sep := integer[i]
		groups := strings.Split(integer, string(sep))
		if sep != m.thousands && sep != '\'' && sep != noBreak || integer[0] == '0' || !areGroups(groups, sep) {
			return "", false
		}
		integer = strings.Join(groups, "")
	}
	if integer+fraction == "" || strings.Trim(integer, digitChars) != "" || strings.Trim(fraction, digitChars) != "" {
		return "", false
	}
	if point {
		integer += "." + fraction
	}
	return integer, true
}

// areGroups reports whether a number may have these groups of digits. All groups except the first have three
// digits; with commas, as in India, all except the first and the last may have two. Four groups with points may be
// an IP address and are rejected.
func areGroups(groups []string, sep byte) bool {
	last := len(groups) - 1
	if n := len(groups[0]); n < 1 || n > 3 || len(groups[last]) != 3 {
		return false
	}
	for _, g := range groups[1:last] {
		if len(g) != 3 && !(sep == ',' && len(g) == 2 && len(groups[1]) == 2) {
			return false
		}
	}
	return !(sep == '.' && last == 3 && !slices.ContainsFunc(groups, func(g string) bool { return len(g) == 3 && g > "255" }))
}
