package dataset

import "testing"

// TestParquetRoom checks that a table has capacity for the rows of the file or of one group, unless the file is too
// small for the number of rows that it states.
func TestParquetRoom(t *testing.T) {
	p := &parquetFile{t: &Table{}, columns: []parquetColumn{{name: "x", physical: parquetDouble}}, rows: 1 << 40, size: 1000}
	for _, test := range []struct {
		rows int64
		want int
	}{{100, 100}, {2000, 2000}, {2001, 0}, {p.rows, 0}} {
		if got := cap(p.newTable(test.rows).columns[0].numbers); got != test.want {
			t.Errorf("%d rows of 8 bytes in a file of 1000: room for %d, want %d", test.rows, got, test.want)
		}
	}
}
