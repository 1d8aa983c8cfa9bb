package dataset_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/dataset"
)

// A parquetField is a column for writeParquet, without missing cells: a SchemaElement in parquet.thrift and its
// values in the encoding PLAIN.
type parquetField struct {
	name     string
	physical int64
	width    int64            // size in bytes of values of fixed size
	convert  int64            // ConvertedType + 1, or 0 for none
	logical  func(w *compact) // writes the LogicalType
	children []parquetField   // the columns of a nested group
	values   []byte
}

// compact writes values in the compact protocol of Thrift.
type compact struct {
	b    []byte
	last []int64
}

func (w *compact) field(id int64, kind byte) {
	top := &w.last[len(w.last)-1]
	w.b = append(w.b, byte(id-*top)<<4|kind)
	*top = id
}

func (w *compact) integer(id, v int64, kind byte) {
	w.field(id, kind)
	w.b = binary.AppendUvarint(w.b, uint64(v<<1^v>>63))
}

func (w *compact) text(id int64, s string) {
	w.field(id, 8)
	w.b = append(binary.AppendUvarint(w.b, uint64(len(s))), s...)
}

// structure writes a struct, whose fields f writes. It is the value of field id, or an element of a list if id is
// 0.
func (w *compact) structure(id int64, f func()) {
	if id > 0 {
		w.field(id, 12)
	}
	w.last = append(w.last, 0)
	f()
	w.b = append(w.b, 0)
	w.last = w.last[:len(w.last)-1]
}

func (w *compact) list(id int64, n int, f func(i int)) {
	w.field(id, 9)
	w.b = append(w.b, 0xfc)
	w.b = binary.AppendUvarint(w.b, uint64(n))
	for i := range n {
		w.structure(0, func() { f(i) })
	}
}

// writeParquet writes a file with one group of rows and returns its path.
func writeParquet(t *testing.T, rows int, fields ...parquetField) string {
	t.Helper()
	data := []byte("PAR1")
	type chunk struct {
		field      parquetField
		begin, len int64
	}
	var chunks []chunk
	var elements []parquetField
	var walk func(fields []parquetField)
	walk = func(fields []parquetField) {
		for _, f := range fields {
			elements = append(elements, f)
			if f.children != nil {
				walk(f.children)
				continue
			}
			h := &compact{last: []int64{0}}
			h.integer(1, 0, 5) // DATA_PAGE
			h.integer(2, int64(len(f.values)), 5)
			h.integer(3, int64(len(f.values)), 5)
			h.structure(5, func() {
				h.integer(1, int64(rows), 5)
				h.integer(2, 0, 5) // PLAIN
				h.integer(3, 3, 5)
				h.integer(4, 3, 5)
			})
			begin := int64(len(data))
			data = append(append(append(data, h.b...), 0), f.values...)
			chunks = append(chunks, chunk{f, begin, int64(len(data)) - begin})
		}
	}
	walk(fields)
	m := &compact{last: []int64{0}}
	m.integer(1, 1, 5)
	m.list(2, 1+len(elements), func(i int) {
		if i == 0 {
			m.text(4, "root")
			m.integer(5, int64(len(fields)), 5)
			return
		}
		f := elements[i-1]
		if f.children == nil {
			m.integer(1, f.physical, 5)
		}
		if f.width > 0 {
			m.integer(2, f.width, 5)
		}
		m.integer(3, 0, 5) // REQUIRED
		m.text(4, f.name)
		if f.children != nil {
			m.integer(5, int64(len(f.children)), 5)
		}
		if f.convert > 0 {
			m.integer(6, f.convert-1, 5)
		}
		if f.logical != nil {
			m.structure(10, func() { f.logical(m) })
		}
	})
	m.integer(3, int64(rows), 6)
	m.list(4, 1, func(int) {
		m.list(1, len(chunks), func(i int) {
			c := chunks[i]
			m.integer(2, c.begin, 6)
			m.structure(3, func() {
				m.integer(1, c.field.physical, 5)
				m.integer(4, 0, 5)
				m.integer(5, int64(rows), 6)
				m.integer(6, c.len, 6)
				m.integer(7, c.len, 6)
				m.integer(9, c.begin, 6)
			})
		})
		m.integer(2, int64(len(data)), 6)
		m.integer(3, int64(rows), 6)
	})
	m.b = append(m.b, 0)
	data = append(data, m.b...)
	data = append(binary.LittleEndian.AppendUint32(data, uint32(len(m.b))), "PAR1"...)
	path := filepath.Join(t.TempDir(), "t.parquet")
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func int32s(values ...int32) []byte {
	b, _ := binary.Append(nil, binary.LittleEndian, values)
	return b
}

func int64s(values ...int64) []byte {
	b, _ := binary.Append(nil, binary.LittleEndian, values)
	return b
}

// timeType returns a function that writes a TimeType or a TimestampType.
func timeType(member int64, utc bool, unit int64) func(w *compact) {
	return func(w *compact) {
		w.structure(member, func() {
			w.field(1, map[bool]byte{true: 1, false: 2}[utc])
			w.structure(2, func() { w.structure(unit, func() {}) })
		})
	}
}

// TestParquetDates checks that dates, times and UUIDs are read as the texts of the same table in a CSV file
// (parquet-format, LogicalTypes.md).
func TestParquetDates(t *testing.T) {
	date := func(w *compact) { w.structure(6, func() {}) }
	uuid := func(w *compact) { w.structure(14, func() {}) }
	path := writeParquet(t, 3,
		parquetField{name: "date", physical: 1, logical: date, values: int32s(0, 19727, -1)},
		parquetField{name: "old date", physical: 1, convert: 7, values: int32s(0, 19727, -719162)},
		parquetField{name: "old millis", physical: 2, convert: 10, values: int64s(0, 86400000, 1500)},
		parquetField{name: "old micros", physical: 2, convert: 11, values: int64s(0, 86400000000, -1)},
		parquetField{name: "millis", physical: 2, logical: timeType(8, false, 1), values: int64s(0, 86399999, -86400000)},
		parquetField{name: "micros", physical: 2, logical: timeType(8, true, 2), values: int64s(0, 1704412800000000, 1)},
		parquetField{name: "nanos", physical: 2, logical: timeType(8, false, 3), values: int64s(0, 1704412800123456789, 1)},
		parquetField{name: "clock", physical: 1, logical: timeType(7, false, 1), values: int32s(0, 45296000, 86399999)},
		parquetField{name: "clock of nanos", physical: 2, logical: timeType(7, true, 3), values: int64s(0, 45296000000001, 1000)},
		parquetField{name: "id", physical: 7, width: 16, logical: uuid, values: []byte("\x12\x34\x56\x78\x9a\xbc\xde\xf0\x12\x34\x56\x78\x9a\xbc\xde\xf0" + strings.Repeat("\x00", 16) + strings.Repeat("\xff", 16))},
		parquetField{name: "n", physical: 2, values: int64s(1, 2, 4)},
	)
	want := map[string][]string{
		"date":           {"1970-01-01", "2024-01-05", "1969-12-31"},
		"old date":       {"1970-01-01", "2024-01-05", "0001-01-01"},
		"old millis":     {"1970-01-01 00:00:00+00:00", "1970-01-02 00:00:00+00:00", "1970-01-01 00:00:01.5+00:00"},
		"old micros":     {"1970-01-01 00:00:00+00:00", "1970-01-02 00:00:00+00:00", "1969-12-31 23:59:59.999999+00:00"},
		"millis":         {"1970-01-01 00:00:00", "1970-01-01 23:59:59.999", "1969-12-31 00:00:00"},
		"micros":         {"1970-01-01 00:00:00+00:00", "2024-01-05 00:00:00+00:00", "1970-01-01 00:00:00.000001+00:00"},
		"nanos":          {"1970-01-01 00:00:00", "2024-01-05 00:00:00.123456789", "1970-01-01 00:00:00.000000001"},
		"clock":          {"00:00:00", "12:34:56", "23:59:59.999"},
		"clock of nanos": {"00:00:00", "12:34:56.000000001", "00:00:00.000001"},
		"id":             {"12345678-9abc-def0-1234-56789abcdef0", "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"},
		"n":              {"1", "2", "4"},
	}
	table, err := dataset.Read(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, cells := range want {
		if got, err := table.Cells(name); err != nil || !slices.Equal(got, cells) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, cells)
		}
	}
	s, err := dataset.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if cells, err := s.Cells(t.Context(), []string{"date", "id"}); err != nil || !slices.Equal(cells[0], want["date"]) || !slices.Equal(cells[1], want["id"]) {
		t.Errorf("in passes: %q, %v", cells, err)
	}
}

// TestParquetAndCSVAlike checks that a table gives the same encoder, or the same error for too many dates, from a
// Parquet file as from a CSV file.
func TestParquetAndCSVAlike(t *testing.T) {
	for _, n := range []int{12, 40} {
		var csv strings.Builder
		var dates []int32
		var numbers []int64
		csv.WriteString("day,x,y\n")
		for i := range n {
			day := int32(19723 + i%10)
			if n == 40 {
				day = int32(19723 + i)
			}
			dates, numbers = append(dates, day), append(numbers, int64(i*7%11))
			dayNumber := day - 19723 + 1 // number of the day from 1 January 2024 on; numbers above 31 are days of February
			month := 1
			if dayNumber > 31 {
				dayNumber, month = dayNumber-31, 2
			}
			fmt.Fprintf(&csv, "2024-%02d-%02d,%d,%d\n", month, dayNumber, i*7%11, i*7%11)
		}
		parquet := writeParquet(t, n, parquetField{name: "day", physical: 1, convert: 7, values: int32s(dates...)},
			parquetField{name: "x", physical: 2, values: int64s(numbers...)}, parquetField{name: "y", physical: 2, values: int64s(numbers...)})
		path := filepath.Join(t.TempDir(), "t.csv")
		if err := os.WriteFile(path, []byte(csv.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		rules := dataset.Rules{Targets: []string{"y"}}
		learn := func(path string, r dataset.Rules) (string, *dataset.Encoder) {
			table, err := dataset.Read(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			e, err := dataset.Learn(table, r)
			if err != nil {
				_, text, _ := strings.Cut(err.Error(), "column")
				return text, nil
			}
			return strings.Join(e.FeatureNames(), " "), e
		}
		fromCSV, _ := learn(path, rules)
		fromParquet, _ := learn(parquet, rules)
		if fromCSV != fromParquet || n == 40 && !strings.HasSuffix(fromCSV, "too many to be categories; drop the column or make tf-idf features of its texts") {
			t.Errorf("n = %d: %s\nof Parquet: %s", n, fromCSV, fromParquet)
		}
		rules.Drop = []string{"day"}
		if names, _ := learn(parquet, rules); names != "x" {
			t.Errorf("dropped: %s", names)
		}
	}
}

// TestParquetColumnsThatCannotBeRead checks that columns of INT96, of intervals and of groups give an error only if
// they are used.
func TestParquetColumnsThatCannotBeRead(t *testing.T) {
	for _, c := range []struct {
		field parquetField
		want  string
	}{
		{parquetField{name: "bad", physical: 3, values: make([]byte, 36)}, `column "bad": has the deprecated timestamp type INT96; write it as TIMESTAMP or as a number, or drop the column`},
		{parquetField{name: "bad", physical: 7, width: 12, convert: 22, values: make([]byte, 36)}, `column "bad": holds byte arrays that are neither texts nor numbers; write them as numbers, or drop the column`},
		{parquetField{name: "bad", children: []parquetField{{name: "u", physical: 2, values: int64s(1, 2, 3)}, {name: "v", children: []parquetField{{name: "w", physical: 1, values: int32s(1, 2, 3)}}}}},
			`column "bad": is nested; only flat columns can be read, or drop the column`},
	} {
		path := writeParquet(t, 3, parquetField{name: "x", physical: 2, values: int64s(4, 5, 7)}, c.field, parquetField{name: "y", physical: 1, values: int32s(1, 0, 3)})
		table, err := dataset.Read(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := dataset.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []dataset.Rules{{Targets: []string{"y"}}, {Targets: []string{"bad"}, Drop: []string{"x"}}, {Targets: []string{"y"}, Weight: "bad"}} {
			_, err := dataset.Learn(table, r)
			_, err2 := s.Learn(t.Context(), r)
			for _, err := range []error{err, err2} {
				if err == nil || !strings.HasSuffix(err.Error(), c.want) {
					t.Errorf("%+v: %v, want %s", r, err, c.want)
				}
			}
		}
		if _, err := table.Cells("bad"); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("cells: %v", err)
		}
		e, err := dataset.Learn(table, dataset.Rules{Targets: []string{"y"}, Drop: []string{"bad"}})
		if err != nil {
			t.Fatal(err)
		}
		x, err := e.Features(table.Select([]int{2, 0}))
		if err != nil || x.At(0, 0) != 7 || x.At(1, 0) != 4 {
			t.Errorf("%v, %v", x, err)
		}
		if y, err := e.Targets(table); err != nil || y.At(2, 0) != 3 {
			t.Errorf("%v, %v", y, err)
		}
		if e, err = s.Learn(t.Context(), dataset.Rules{Targets: []string{"y"}, Drop: []string{"bad"}}); err != nil || len(e.Inputs) != 1 {
			t.Errorf("in passes: %v", err)
		}
		e.RowWarnings(table)
	}
}
