package dataset

import "io"

// A commentReader leaves out the comments of a CSV file, but not the ends of their
// lines, so that lines keep their numbers.
type commentReader struct {
	r       io.Reader
	mark    byte
	quoted  bool
	comment bool
	inLine  bool // something but spaces was in the line
}

func (c *commentReader) Read(p []byte) (int, error) {
	for {
		n, err := c.r.Read(p)
		kept := p[:0]
		for _, b := range p[:n] {
			switch {
			case b == '\n' && !c.quoted:
				c.comment, c.inLine = false, false
			case c.comment, b == ' ' && !c.inLine && !c.quoted:
				continue
			case b == c.mark && !c.quoted:
				c.comment = true
				continue
			default:
				c.inLine = true
				c.quoted = c.quoted != (b == '"')
			}
			kept = append(kept, b)
		}
		if len(kept) > 0 || err != nil || len(p) == 0 {
			return len(kept), err
		}
	}
}
