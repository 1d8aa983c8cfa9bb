package kernels

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A token is a word of a kernel's text.
type token struct {
	kind   tokenKind
	text   string
	offset int // byte offset at which the token begins
}

type tokenKind uint8

const (
	endToken    tokenKind = iota
	nameToken             // a token of letters, digits and _ that begins with a letter
	numberToken           // a token that begins with a digit or a point
	signToken             // any other character
)

// String returns the token in quotation marks, for messages, shortened if long.
func (t token) String() string {
	const limit = 40
	if t.kind == endToken {
		return "the end"
	}
	s := t.text
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit]) + "…"
	}
	return strconv.Quote(s)
}

// advance reads the next token.
func (p *parser) advance() {
	remaining := strings.TrimLeftFunc(p.text[p.end:], unicode.IsSpace)
	offset := len(p.text) - len(remaining)
	kind, size := scan(remaining)
	p.next = token{kind, remaining[:size], offset}
	p.end = offset + size
}

// scan returns the kind and the length of the token at the beginning of s.
func scan(s string) (tokenKind, int) {
	if s == "" {
		return endToken, 0
	}
	c, size := utf8.DecodeRuneInString(s)
	switch {
	case unicode.IsLetter(c):
		if end := strings.IndexFunc(s, func(c rune) bool { return !inName(c) }); end >= 0 {
			return nameToken, end
		}
		return nameToken, len(s)
	case isNumeric(c):
		return numberToken, scanNumber(s)
	}
	return signToken, size
}

// scanNumber returns the length of the number at the beginning of s. The number includes all following digits,
// points, letters and exponent signs, so that 1.2.3 is one token.
func scanNumber(s string) int {
	for i, c := range s {
		exponent := (c == '+' || c == '-') && i > 0 && (s[i-1] == 'e' || s[i-1] == 'E')
		if c != '.' && !exponent && !inName(c) {
			return i
		}
	}
	return len(s)
}

func isNumeric(c rune) bool { return '0' <= c && c <= '9' || c == '.' }

func inName(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) || c == '_' }

// parseNumber returns the value of a decimal number, ±Inf if it is outside the
// range of float64, and NaN if s is not a number.
func parseNumber(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if strings.ContainsAny(s, "xX_") || err != nil && err.(*strconv.NumError).Err != strconv.ErrRange {
		return math.NaN()
	}
	return v
}
