package dataset

import (
	"cmp"
	"strings"
)

// An exactNumber is a finite decimal number without rounding: ±0.d₁d₂… · 10^point. The first and
// the last digit are not 0, and the number 0 has no digits.
type exactNumber struct {
	negative bool
	digits   string
	point    int
}

// exactOf parses a text that parseCell accepts as a number.
func exactOf(s string) (x exactNumber) {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		x.negative = s[0] == '-'
		s = s[1:]
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		x.point = exponentOf(s[i+1:])
		s = s[:i]
	}
	integer, fraction, _ := strings.Cut(s, ".")
	digits := integer + fraction
	x.digits = strings.TrimLeft(digits, "0")
	x.point += len(integer) - (len(digits) - len(x.digits))
	x.digits = strings.TrimRight(x.digits, "0")
	if x.digits == "" {
		return exactNumber{}
	}
	return x
}

// exponentOf parses an exponent. It clamps an exponent outside the range of float64.
func exponentOf(s string) int {
	const bound = 1 << 27 // 10·bound must fit in an int of 32 bits
	negative := strings.HasPrefix(s, "-")
	e := 0
	for _, c := range strings.TrimLeft(s, "+-") {
		e = min(10*e+int(c-'0'), bound)
	}
	if negative {
		return -e
	}
	return e
}

// integer reports whether x has no fraction.
func (x exactNumber) integer() bool { return x.point >= len(x.digits) }

// compare returns −1, 0 or 1 if x is less than, equal to or greater than y.
func (x exactNumber) compare(y exactNumber) int {
	if x.sign() != y.sign() {
		return cmp.Compare(x.sign(), y.sign())
	}
	return x.sign() * cmp.Or(cmp.Compare(x.point, y.point), strings.Compare(x.digits, y.digits))
}

func (x exactNumber) sign() int {
	switch {
	case x.digits == "":
		return 0
	case x.negative:
		return -1
	}
	return 1
}
