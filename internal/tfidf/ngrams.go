package tfidf

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// grams computes the n-grams of one document at a time. Its Params have defaults in place of zeros.
type grams struct {
	Params
	text   []byte
	starts []int // starts of the characters or words in text, and the end of text
}

// forEach calls yield with each n-gram of a document. An n-gram may share memory with a longer string.
func (g *grams) forEach(document string, yield func(gram string)) {
	g.text, g.starts = g.text[:0], g.starts[:0]
	if g.KeepCase {
		document = strings.ToValidUTF8(document, "\uFFFD")
	} else {
		document = lower(document)
	}
	switch g.Analyzer {
	case Word:
		g.words(document, yield)
	case Char:
		g.characters(collapse(document), yield)
	case CharWB:
		for _, word := range strings.FieldsFunc(document, isSpace) {
			g.padded(" "+word+" ", yield)
		}
	}
}

// words calls yield with the n-grams of words, joined by spaces. A word is two or more characters of \w in Python.
func (g *grams) words(document string, yield func(gram string)) {
	begin, length := 0, 0
	add := func(end int) {
		if length >= 2 {
			g.starts = append(g.starts, len(g.text))
			g.text = append(append(g.text, document[begin:end]...), ' ')
		}
		length = 0
	}
	for i, r := range document {
		switch {
		case !isWord(r):
			add(i)
		case length == 0:
			begin, length = i, 1
		default:
			length++
		}
	}
	add(len(document))
	g.starts = append(g.starts, len(g.text))
	text := string(g.text)
	for n := g.MinN; n <= g.MaxN; n++ {
		for i := 0; i+n < len(g.starts); i++ {
			yield(text[g.starts[i] : g.starts[i+n]-1])
		}
	}
}

// characters calls yield with the n-grams of characters of a text.
func (g *grams) characters(text string, yield func(gram string)) {
	g.starts = g.starts[:0]
	for i := range text {
		g.starts = append(g.starts, i)
	}
	g.starts = append(g.starts, len(text))
	for n := g.MinN; n <= g.MaxN; n++ {
		for i := 0; i+n < len(g.starts); i++ {
			yield(text[g.starts[i]:g.starts[i+n]])
		}
	}
}

// padded calls yield with the n-grams of characters of word, which begins and ends with a space. If
// word has at most MinN characters, padded calls yield only once, with word.
func (g *grams) padded(word string, yield func(gram string)) {
	length, largest := utf8.RuneCountInString(word), g.MaxN
	if length < g.MinN {
		yield(word)
		return
	}
	g.MaxN = min(largest, length)
	g.characters(word, yield)
	g.MaxN = largest
}

// isWord reports whether r matches \w: whether r is a letter, a Unicode number or an underscore.
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9' || r == '_'
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r)
}

// isSpace reports whether r is white space in Python, which includes four control characters.
func isSpace(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }

// collapse replaces each run of two or more white-space characters by one space.
func collapse(text string) string {
	var b strings.Builder
	run, last := 0, rune(0)
	flush := func() {
		switch {
		case run == 1:
			b.WriteRune(last)
		case run > 1:
			b.WriteByte(' ')
		}
		run = 0
	}
	for _, r := range text {
		if isSpace(r) {
			run, last = run+1, r
			continue
		}
		flush()
		b.WriteRune(r)
	}
	flush()
	return b.String()
}

// lower returns the text in lower case by the full mapping of Unicode, as Python's str.lower does: İ becomes i and
// a combining dot, and Σ at the end of a word becomes ς. Bytes that are not UTF-8 become U+FFFD.
func lower(text string) string {
	if !slices.ContainsFunc([]byte(text), func(c byte) bool { return c >= utf8.RuneSelf }) {
		return strings.ToLower(text)
	}
	var b strings.Builder
	b.Grow(len(text))
	for i, r := range text {
		switch r {
		case 'İ':
			b.WriteString("i\u0307")
		case 'Σ':
			if endsWord(text[:i], text[i+len("Σ"):]) {
				b.WriteRune('ς')
			} else {
				b.WriteRune('σ')
			}
		default:
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

// endsWord reports whether the letter between prefix and suffix satisfies Final_Sigma (Unicode, section 3.13).
func endsWord(prefix, suffix string) bool {
	cased := false
	for len(prefix) > 0 {
		r, size := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-size]
		if !ignorable(r) {
			cased = isCased(r)
			break
		}
	}
	if !cased {
		return false
	}
	for _, r := range suffix {
		if !ignorable(r) {
			return !isCased(r)
		}
	}
	return true
}

func isCased(r rune) bool {
	return unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt, unicode.Other_Uppercase, unicode.Other_Lowercase)
}

// ignorable reports whether r is case-ignorable.
func ignorable(r rune) bool {
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk) || strings.ContainsRune("'.:·\u0387՟״‘’․‧︓﹒﹕＇．：", r)
}
