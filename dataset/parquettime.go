package dataset

import (
	"encoding/hex"
	"math"
	"time"
)

// A timeUnit is the unit of a date or a time that a Parquet or Arrow file stores as an integer, or 0 for other
// integers.
type timeUnit int

const (
	days      timeUnit = iota + 1
	dayMillis          // a date in milliseconds
	seconds
	millis
	micros
	nanos
)

// storedTime is the type of a column of dates, times of day or timestamps. Its cells are read as texts.
type storedTime struct {
	unit      timeUnit
	timeOfDay bool // the value is a time of day
	utc       bool // the value is in UTC
}

// converted sets t to the type that has the number id in the enumeration ConvertedType of parquet.thrift.
func (t *storedTime) converted(id int64) {
	switch id {
	case 6:
		*t = storedTime{unit: days}
	case 7:
		*t = storedTime{unit: millis, timeOfDay: true}
	case 8:
		*t = storedTime{unit: micros, timeOfDay: true}
	case 9:
		*t = storedTime{unit: millis, utc: true}
	case 10:
		*t = storedTime{unit: micros, utc: true}
	}
}

// readLogical parses a TimeType or a TimestampType.
func (t *storedTime) readLogical(m *thrift, timeOfDay bool) {
	*t = storedTime{timeOfDay: timeOfDay}
	m.fields(func(id int64, kind byte) {
		switch {
		case id == 1:
			t.utc = kind == thriftTrue
		case id == 2 && kind == thriftStruct:
			m.fields(func(id int64, _ byte) {
				if id >= 1 && id <= 3 {
					t.unit = millis + timeUnit(id-1)
				}
			})
		}
	})
}

// text formats a date or time in ISO 8601, with a space between date and time as in pandas.
func (t storedTime) text(v int64) string {
	var date time.Time
	switch t.unit {
	case days:
		if v > math.MaxInt32 || v < math.MinInt32 {
			return ""
		}
		return time.Unix(86400*v, 0).UTC().Format(time.DateOnly)
	case dayMillis:
		return time.UnixMilli(v).UTC().Format(time.DateOnly)
	case seconds:
		date = time.Unix(v, 0)
	case millis:
		date = time.UnixMilli(v)
	case micros:
		date = time.UnixMicro(v)
	default:
		date = time.Unix(0, v)
	}
	const layout = "15:04:05.999999999"
	switch {
	case t.timeOfDay:
		return date.UTC().Format(layout)
	case t.utc:
		return date.UTC().Format(time.DateOnly + " " + layout + "+00:00")
	}
	return date.UTC().Format(time.DateOnly + " " + layout)
}

func (c *parquetColumn) temporal() bool {
	return c.time.unit != 0 && (c.physical == parquetInt32 || c.physical == parquetInt64)
}

// addTimes appends the dates or times of a page.
func (d *pageReader) addTimes(encoding int64, body []byte, n int, indices []uint64, present []bool) error {
	var list []int64
	if fromDictionary(encoding) {
		for _, k := range indices {
			list = append(list, d.ints[k])
		}
	} else {
		supported := false
		if list, supported = d.integers(encoding, body, n); !supported {
			return d.newError("has an encoding that is not supported for integers")
		}
	}
	if len(list) != n {
		return d.newError("the numbers of a page are damaged")
	}
	for i := range max(len(present), n) {
		text := ""
		if present == nil || present[i] {
			text, list = d.column.time.text(list[0]), list[1:]
		}
		if err := d.t.addText(d.to, []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// uuidText formats a UUID as in a CSV file.
func uuidText(b []byte) []byte {
	text := make([]byte, 0, 36)
	for i, field := range [][]byte{b[:4], b[4:6], b[6:8], b[8:10], b[10:]} {
		if i > 0 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, field)
	}
	return text
}
