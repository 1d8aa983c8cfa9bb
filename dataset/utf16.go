package dataset

import (
	"bufio"
	"bytes"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// decode makes in.r convert UTF-16 to UTF-8 if the file begins with the byte-order mark of UTF-16.
func (in *input) decode() error {
	prefix, _ := in.r.Peek(4)
	little := bytes.HasPrefix(prefix, []byte{0xff, 0xfe})
	switch {
	case bytes.Equal(prefix, []byte{0xff, 0xfe, 0, 0}), bytes.Equal(prefix, []byte{0, 0, 0xfe, 0xff}):
		return in.t.newError("", "is UTF-32; save it as UTF-8")
	case little, bytes.HasPrefix(prefix, []byte{0xfe, 0xff}):
		in.r.Discard(2)
		in.r = bufio.NewReaderSize(&utf16Reader{r: in.r, bigEndian: !little}, bufferSize)
		in.file, in.size, in.converted = nil, -1, true
	}
	return nil
}

// A utf16Reader converts UTF-16 to UTF-8. Invalid UTF-16 becomes invalid UTF-8.
type utf16Reader struct {
	r         *bufio.Reader
	bigEndian bool
	buffered  []byte // converted bytes that the caller has not read yet
	err       error
}

func (u *utf16Reader) Read(p []byte) (int, error) {
	for len(u.buffered) == 0 {
		if u.err != nil {
			return 0, u.err
		}
		u.buffered = u.buffered[:0]
		for len(u.buffered) < bufferSize && u.err == nil {
			u.rune()
		}
	}
	n := copy(p, u.buffered)
	u.buffered = u.buffered[n:]
	return n, nil
}

// invalid is a byte that never occurs in valid UTF-8.
const invalid = 0xff

// rune converts one character and appends it to u.buffered.
func (u *utf16Reader) rune() {
	r, ok := u.unit()
	if !ok {
		return
	}
	if utf16.IsSurrogate(r) {
		low, ok := u.unit()
		if !ok {
			u.buffered = append(u.buffered, invalid)
			return
		}
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			u.buffered = append(u.buffered, invalid)
			return
		}
	}
	u.buffered = utf8.AppendRune(u.buffered, r)
}

func (u *utf16Reader) unit() (rune, bool) {
	var b [2]byte
	switch n, err := io.ReadFull(u.r, b[:]); {
	case n == 1:
		u.buffered, u.err = append(u.buffered, invalid), io.EOF
		return 0, false
	case err != nil:
		u.err = err
		return 0, false
	}
	if u.bigEndian {
		b[0], b[1] = b[1], b[0]
	}
	return rune(b[1])<<8 | rune(b[0]), true
}
