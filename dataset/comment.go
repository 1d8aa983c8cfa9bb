package dataset

import (
	"bufio"
	"io"
)

// A cleaner reads a CSV file and removes characters that encoding/csv does not support. It does not
// change line numbers.
type cleaner struct {
	r       *bufio.Reader
	mark    byte // the character that begins a comment; 0 if there are no comments
	returns bool // whether a CR without LF also ends a line
	blanks  bool // whether a run of spaces and tabs becomes one tab, and is removed at the beginning or end of a line

	quoted, comment, inLine bool
	blank                   bool // whether a blank precedes the next character of the line
	returned                bool // whether the last byte was CR
}

// Read implements io.Reader. It removes comments but not the line ends after them.
func (c *cleaner) Read(p []byte) (n int, err error) {
	for n < len(p) && (n == 0 || c.r.Buffered() > 0) {
		b, err := c.r.ReadByte()
		if err != nil {
			return n, ended(n, err)
		}
		returned := c.returned
		c.returned = false
		switch {
		case c.returns && b == '\r' && !c.quoted:
			c.returned, b = true, '\n'
		case returned && b == '\n':
			continue
		}
		switch {
		case b == '\n' && !c.quoted:
			c.comment, c.inLine, c.blank = false, false, false
		case c.comment:
			continue
		case b == ' ' && !c.inLine && !c.quoted:
			continue
		case c.blanks && (b == ' ' || b == '\t') && !c.quoted:
			c.blank = c.inLine
			continue
		case c.mark > 0 && b == c.mark && !c.quoted:
			c.comment = true
			continue
		case c.blanks && b == '\r' && !c.quoted:
			c.blank = false
		case c.blank:
			c.blank = false
			p[n] = '\t'
			n++
			c.r.UnreadByte()
			continue
		default:
			c.inLine = true
			c.quoted = c.quoted != (b == '"')
		}
		p[n] = b
		n++
	}
	return n, nil
}

// ended returns the error that Read returns with n bytes: nil instead of io.EOF if n > 0, so that
// the next Read returns io.EOF.
func ended(n int, err error) error {
	if n > 0 && err == io.EOF {
		return nil
	}
	return err
}
