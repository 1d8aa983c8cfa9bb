package dataset

import (
	"bytes"
	"slices"
	"testing"
)

// slowly reads a text as the method add does, but never calls addFast.
func (s *libsvm) slowly(text []byte) error {
	line := 0
	for record := range bytes.Lines(text) {
		line++
		record, _, _ = bytes.Cut(record, []byte{'#'})
		if record = bytes.TrimSpace(record); len(record) == 0 {
			continue
		}
		if err := s.record(record); err != nil {
			err.Line = line
			return err
		}
		s.rows.Indptr = append(s.rows.Indptr, len(s.rows.Data))
		s.t.rows++
	}
	return nil
}

// FuzzLIBSVMLines checks that the methods addFast and record give the same result.
func FuzzLIBSVMLines(f *testing.F) {
	for _, text := range []string{"1 1:0.5 3:2\n", "-1.5 0:1e-3  7:12345678901234567890 \r\n+2\n", "1 1:1 1:2\n", "1:2 3:4\n", "1 2:3#x\n\n# y\n3\t4:5\r", "1 1:2 \r 3:4\n", "1 1:\n1 :2\n1 1:2:3", "0x1 1:1", "1 999999999:1 1000000000:1"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		const limit = 1 << 20
		a, b := newLIBSVM(&Table{}, limit), newLIBSVM(&Table{}, limit)
		errA, errB := a.add(piece{text, 1}), b.slowly(text)
		if (errA == nil) != (errB == nil) || errA != nil && errA.Error() != errB.Error() {
			t.Fatalf("%q: %v, want %v", text, errA, errB)
		}
		if errA != nil {
			return
		}
		if a.first != b.first || a.last != b.last || a.t.rows != b.t.rows || !slices.Equal(a.rows.Indptr, b.rows.Indptr) || !slices.Equal(a.rows.Indices, b.rows.Indices) || !slices.Equal(a.rows.Data, b.rows.Data) {
			t.Fatalf("%q: %+v, want %+v", text, a.rows, b.rows)
		}
		for i := range a.t.rows {
			if a.label.cell(i) != b.label.cell(i) {
				t.Fatalf("%q: label %d is %q, want %q", text, i, a.label.cell(i), b.label.cell(i))
			}
		}
	})
}
