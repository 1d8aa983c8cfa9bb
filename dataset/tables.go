package dataset

import (
	"context"
	"io"
)

// Tables reads the file once and calls the function use with tables of its rows, in order. Each table has about 1 MiB
// of text, 4 MiB of numbers, or one row group. A column may hold numbers in one table and texts in the next. A file
// without rows gives no call.
//
// Tables returns the first error in the file, the first error of the function use, or the cause of ctx.
func (s *Stream) Tables(ctx context.Context, use func(t *Table) error) error {
	p, err := s.begin(0)
	if err != nil {
		return err
	}
	defer p.close()
	for {
		if ctx.Err() != nil {
			return canceledError(ctx)
		}
		part, err := p.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		t, err := part.table()
		if err != nil {
			return err
		}
		if t.rows == 0 {
			continue
		}
		for _, c := range t.columns {
			c.finish()
		}
		if err := use(t); err != nil {
			return err
		}
	}
}
