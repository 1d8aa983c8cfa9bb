package dataset

import (
	"bytes"
	"math"
	"slices"
)

// An ObjectReader computes the features of a row from the text of a JSON object, without a Table.
type ObjectReader struct {
	inputs map[string]objectInput
	width  int
}

type objectInput struct {
	*Input
	offset int // index of the input's first feature
}

// ObjectReader returns a row reader for e, or nil if an input is neither numbers nor categories.
func (e *Encoder) ObjectReader() *ObjectReader {
	if e == nil {
		return nil
	}
	r := &ObjectReader{inputs: map[string]objectInput{}}
	for i := range e.Inputs {
		in := &e.Inputs[i]
		if in.Number == nil && in.Text == nil || in.Sparse != nil {
			return nil
		}
		r.inputs[in.Name] = objectInput{in, r.width}
		r.width += in.width()
	}
	if slices.ContainsFunc(e.NAValues, func(s string) bool { _, ok := decimal([]byte(s)); return ok }) {
		return nil // a number in NAValues represents a missing cell
	}
	return r
}

// Width returns the number of features.
func (r *ObjectReader) Width() int {
	if r == nil {
		return 0
	}
	return r.width
}

// Read sets x, which has Width elements, to the features of the row in a JSON object. Each column must occur once, with
// no other key. A number must be a JSON number of at most 19 digits, and a category a string without escapes. For any
// other row, Read returns false; use FromRows and Features.
func (r *ObjectReader) Read(x []float64, object []byte) bool {
	b := skipBlanks(object)
	if r == nil || len(b) == 0 || b[0] != '{' {
		return false
	}
	clear(x)
	for _, in := range r.inputs {
		x[in.offset] = math.NaN() // NaN means that the column has not occurred yet
	}
	for count := 0; ; {
		key, rest, ok := plainString(skipBlanks(b[1:]))
		if !ok {
			return false
		}
		in, ok := r.inputs[string(key)]
		if b = skipBlanks(rest); !ok || len(b) == 0 || b[0] != ':' || x[in.offset] == x[in.offset] {
			return false
		}
		b = skipBlanks(b[1:])
		if in.Number != nil {
			v, end, ok := scanDecimal(b, 0)
			if !ok || !jsonNumber(b[:end]) {
				return false
			}
			if v = in.Number.feature(v); v-v != 0 {
				return false
			}
			x[in.offset], b = v, b[end:]
		} else {
			var text []byte
			if text, b, ok = plainString(b); !ok {
				return false
			}
			k, found := slices.BinarySearchFunc(in.Text.Categories, text, func(s string, text []byte) int { return -bytes.Compare(text, []byte(s)) })
			if !found {
				return false
			}
			x[in.offset] = 0
			x[in.offset+k] = 1
		}
		count++
		if b = skipBlanks(b); len(b) > 0 && b[0] == ',' {
			continue
		}
		return len(b) > 0 && b[0] == '}' && len(skipBlanks(b[1:])) == 0 && count == len(r.inputs)
	}
}

// skipBlanks returns b without its leading white space.
func skipBlanks(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\n' || b[0] == '\r' || b[0] == '\t') {
		b = b[1:]
	}
	return b
}

// plainString returns the contents of the JSON string at the beginning of b, and the bytes after it. ok is false
// for a string with an escape or a control character.
func plainString(b []byte) (text, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		return nil, b, false
	}
	for i := 1; i < len(b); i++ {
		switch {
		case b[i] == '"':
			return b[1:i], b[i+1:], true
		case b[i] == '\\' || b[i] < ' ':
			return nil, b, false
		}
	}
	return nil, b, false
}

// jsonNumber reports whether b is a number in JSON. scanDecimal must have accepted b.
func jsonNumber(b []byte) bool {
	if len(b) > 0 && b[0] == '-' {
		b = b[1:]
	}
	digit := func(i int) bool { return i < len(b) && b[i]-'0' <= 9 }
	point := bytes.IndexByte(b, '.')
	return digit(0) && !(b[0] == '0' && digit(1)) && (point < 0 || digit(point+1))
}
