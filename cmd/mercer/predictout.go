package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mercer-go/mercer/dataset"
)

// predictExtensions are the extensions of the files that predict writes.
var predictExtensions = []string{".csv", ".csv.gz", ".json", ".jsonl", ".npy", ".npz", ".parquet", ".arrow"}

// predictExtension returns the extension of an output file. Its error lists the valid extensions.
func predictExtension(path string, object bool) (string, error) {
	ext, err := extensionOf("--out", path, predictExtensions...)
	if err == nil && object && ext != ".json" {
		return "", usagef("--json: writes one object, so that --out must end in .json, not in %s", ext)
	}
	return ext, err
}

// predictedColumn is a column of predictions, or a column of the table that --keep names.
type predictedColumn struct {
	name   string
	text   func(i int) string
	number func(i int) float64 // returns the number in row i; nil for a column of texts or a kept column
	kept   bool
}

// jsonNumber matches the numbers of JSON, which have no leading zeros.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// allJSONNumbers reports whether each cell of a column is empty or a valid number in JSON.
func (c predictedColumn) allJSONNumbers(n int) bool {
	for i := 0; i < n && c.kept; i++ {
		if s := c.text(i); s != "" && !jsonNumber.MatchString(s) {
			return false
		}
	}
	return c.kept || c.number != nil
}

// float returns the numbers of a column, and NaN for empty cells. It returns an error for a cell that is not a
// number, or that float64 would round.
func (c predictedColumn) float(n int) ([]float64, error) {
	if !c.allJSONNumbers(n) {
		return nil, fmt.Errorf("column %q holds texts, and .npy is for numbers: use .npz, .parquet, .csv or .json", c.name)
	}
	values := make([]float64, n)
	for i := range values {
		switch s := c.text(i); {
		case c.number != nil:
			values[i] = c.number(i)
		case s == "":
			values[i] = math.NaN()
		default:
			v, err := strconv.ParseFloat(s, 64)
			if integer := !strings.ContainsAny(s, ".eE"); err != nil || integer && strconv.FormatFloat(v, 'f', 0, 64) != s {
				return nil, fmt.Errorf("column %q: row %d: %s cannot be written to .npy as a float64 without rounding: use .npz, .parquet, .csv or .json", c.name, i+1, s)
			}
			values[i] = v
		}
	}
	return values, nil
}

// encode writes the columns in the format that an extension implies.
func (p predictions) encode(ext string) ([]byte, error) {
	var buf bytes.Buffer
	var err error
	switch ext {
	case ".csv.gz":
		w := gzip.NewWriter(&buf)
		if err = p.writeCSV(w); err == nil {
			err = w.Close()
		}
	case ".json":
		err = p.writeRecords(&buf, "[\n", ",\n", "\n]\n")
	case ".jsonl":
		err = p.writeRecords(&buf, "", "\n", "\n")
	case ".npy":
		err = p.writeNPY(&buf)
	case ".npz":
		err = p.writeNPZ(&buf)
	case ".parquet":
		err = p.writeTyped(&buf, dataset.WriteParquet)
	case ".arrow":
		err = p.writeTyped(&buf, dataset.WriteArrow)
	default:
		err = p.writeCSV(&buf)
	}
	return buf.Bytes(), err
}

func (p predictions) writeCSV(to io.Writer) error {
	w := csv.NewWriter(to)
	record := make([]string, len(p.columns))
	for j, c := range p.columns {
		record[j] = c.name
	}
	_ = w.Write(record) // Flush returns an error of Write
	for i := range p.N {
		for j, c := range p.columns {
			record[j] = c.text(i)
		}
		_ = w.Write(record)
	}
	w.Flush()
	return w.Error()
}

// writeRecords writes a JSON object for each row, with the names of the columns as keys, and the texts before,
// between and after the objects.
func (p predictions) writeRecords(buf *bytes.Buffer, before, between, after string) error {
	names, literal := make([][]byte, len(p.columns)), make([]bool, len(p.columns))
	for j, c := range p.columns {
		var err error
		if names[j], err = json.Marshal(c.name); err != nil {
			return err
		}
		literal[j] = c.allJSONNumbers(p.N)
	}
	buf.WriteString(before)
	for i := range p.N {
		if i > 0 {
			buf.WriteString(between)
		}
		buf.WriteByte('{')
		for j, c := range p.columns {
			if j > 0 {
				buf.WriteByte(',')
			}
			buf.Write(names[j])
			buf.WriteByte(':')
			switch s := c.text(i); {
			case s == "" && c.kept:
				buf.WriteString("null")
			case literal[j]:
				buf.WriteString(s)
			default:
				text, err := json.Marshal(s)
				if err != nil {
					return err
				}
				buf.Write(text)
			}
		}
		buf.WriteByte('}')
	}
	buf.WriteString(after)
	return nil
}

// writeNPY writes a matrix of the columns, or a vector for a single column.
func (p predictions) writeNPY(buf *bytes.Buffer) error {
	cols := len(p.columns)
	data := make([]float64, p.N*cols)
	for j, c := range p.columns {
		column, err := c.float(p.N)
		if err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		for i, v := range column {
			data[i*cols+j] = v
		}
	}
	if cols == 1 {
		return dataset.WriteNPY(buf, data, p.N)
	}
	return dataset.WriteNPY(buf, data, p.N, cols)
}

// writeNPZ writes a vector for each column: int64 if it is a --keep column of integers, otherwise float64 or texts.
func (p predictions) writeNPZ(buf *bytes.Buffer) error {
	z := zip.NewWriter(buf)
	for _, c := range p.columns {
		w, err := z.Create(c.name + ".npy")
		if err == nil {
			err = dataset.WriteNPY(w, c.elements(p.N), p.N)
		}
		if err != nil {
			return err
		}
	}
	return z.Close()
}

// writeTyped calls write with the columns, which have the types of writeNPZ.
func (p predictions) writeTyped(buf *bytes.Buffer, write func(w io.Writer, names []string, columns []any) error) error {
	names, columns := make([]string, len(p.columns)), make([]any, len(p.columns))
	for j, c := range p.columns {
		names[j], columns[j] = c.name, c.elements(p.N)
	}
	return write(buf, names, columns)
}

// elements returns a column as a slice for dataset.WriteNPY, WriteParquet and WriteArrow.
func (c predictedColumn) elements(n int) any {
	if c.kept {
		integers := make([]int64, n)
		allIntegers := c.allJSONNumbers(n)
		for i := 0; i < n && allIntegers; i++ {
			var err error
			integers[i], err = strconv.ParseInt(c.text(i), 10, 64)
			allIntegers = err == nil
		}
		if allIntegers {
			return integers
		}
	}
	if values, err := c.float(n); err == nil {
		return values
	}
	texts := make([]string, n)
	for i := range texts {
		texts[i] = c.text(i)
	}
	return texts
}

// insertKept inserts the columns of --keep before the columns of predictions.
func (p *predictions) insertKept(names []string, cells [][]string) error {
	var keptColumns []predictedColumn
	for j, name := range names {
		if slices.ContainsFunc(p.columns, func(c predictedColumn) bool { return c.name == name }) {
			return usagef("--keep: the predictions already have a column %q; leave it out", name)
		}
		keptColumns = append(keptColumns, predictedColumn{name: name, text: func(i int) string { return cells[j][i] }, kept: true})
		if p.Kept == nil {
			p.Kept = map[string][]string{}
		}
		p.Kept[name] = cells[j]
	}
	p.columns = append(keptColumns, p.columns...)
	return nil
}
