package dataset

import (
	"bufio"
	"io"
)

// A cleaner reads a CSV file and removes characters that encoding/csv does not support. It does not
// change the numbers of lines.
type cleaner struct {
	r              *bufio.Reader
	char           byte // the character that begins a comment; 0 if there are no comments
	crLines        bool // a CR without LF ends a line
	collapseBlanks bool // adjacent spaces and tabs become one tab, or nothing at the beginning or end of a line

	quoted, comment, inLine bool
	blank                   bool // spaces or tabs precede the next character of the line
	afterCR                 bool // the last byte was a CR that ended a line
}

// Read implements io.Reader. It does not remove the line end after a comment.
func (c *cleaner) Read(p []byte) (n int, err error) {
	for n < len(p) && (n == 0 || c.r.Buffered() > 0) {
		b, err := c.r.ReadByte()
		if err != nil {
			return n, deferEOF(n, err)
		}
		afterCR := c.afterCR
		c.afterCR = false
		switch {
		case c.crLines && b == '\r' && !c.quoted:
			c.afterCR, b = true, '\n'
		case afterCR && b == '\n':
			continue
		}
		switch {
		case b == '\n' && !c.quoted:
			c.comment, c.inLine, c.blank = false, false, false
		case c.comment:
			continue
		case b == ' ' && !c.inLine && !c.quoted:
			continue
		case c.collapseBlanks && (b == ' ' || b == '\t') && !c.quoted:
			c.blank = c.inLine
			continue
		case c.char > 0 && b == c.char && !c.quoted:
			c.comment = true
			continue
		case c.collapseBlanks && b == '\r' && !c.quoted:
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

// deferEOF returns err, or nil for io.EOF after at least one byte: the next call of Read returns io.EOF.
func deferEOF(n int, err error) error {
	if n > 0 && err == io.EOF {
		return nil
	}
	return err
}
