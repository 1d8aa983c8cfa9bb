// Package message makes errors with advice, and formats the text of an error as one line of a terminal or a log.
package message

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limit is the maximum number of characters of a text. With the name of the program before the
// text, a line has at most 500 characters.
const Limit = 480

// Line returns the text of an error on one line of at most Limit characters.
func Line(err error) string { return Fit(Flat(err)) }

// Flat returns the text of an error on one line. It joins errors that errors.Join writes on separate lines.
func Flat(err error) string { return Text(err, Plain) }

// Text returns the same text as Flat, with a front end's names for parameters.
func Text(err error, name func(parameter string) string) string {
	text := err.Error()
	if e, ok := err.(Advised); ok {
		text = e.Message(name)
	}
	if _, ok := err.(*limited); ok {
		return text
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			text = strings.Replace(text, inner.Error(), Text(inner, name), 1)
		}
	case interface{ Unwrap() []error }:
		list := e.Unwrap()
		texts, messages := make([]string, len(list)), make([]string, len(list))
		for i, err := range list {
			texts[i], messages[i] = err.Error(), Text(err, name)
		}
		if text == strings.Join(texts, "\n") {
			return strings.Join(messages, "; ")
		}
		for i := range list {
			text = strings.Replace(text, texts[i], messages[i], 1)
		}
	}
	return text
}

// Fit escapes unprintable characters as Go does, such as \x1b, and shortens a text of more than Limit characters:
// it first shortens long words, such as paths, and then removes the middle of the text.
func Fit(text string) string {
	text = Printable(text)
	if utf8.RuneCountInString(text) <= Limit {
		return text
	}
	const word = 100
	words := strings.Split(text, " ")
	for i, w := range words {
		words[i] = shorten(w, word)
	}
	return shorten(strings.Join(words, " "), Limit)
}

// shorten replaces the middle of a text of more than n characters by an ellipsis.
func shorten(text string, n int) string {
	r := []rune(text)
	if len(r) <= n {
		return text
	}
	head := n * 2 / 3
	return string(r[:head]) + "…" + string(r[len(r)-(n-1-head):])
}

// Printable returns a text with escapes for line ends, invalid UTF-8, and all other characters
// that are not printable according to strconv.IsPrint.
func Printable(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(`\x` + strconv.FormatUint(uint64(text[0])|0x100, 16)[1:])
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[size:]
	}
	return b.String()
}
