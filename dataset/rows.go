package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/mercer-go/mercer/internal/count"
)

// FromRows returns a table of the given rows. encoding/json must marshal rows to an array of objects, or to one
// object, whose keys are the column names: a []map[string]any, a slice of structs, a json.RawMessage. Numbers and
// texts are parsed like the cells of a file, and true and false are texts. A null and an absent key are missing
// cells. source is the name of the table in errors, and may be empty.
func FromRows(source string, rows any) (*Table, error) {
	text, ok := rows.(json.RawMessage)
	if !ok {
		var err error
		if text, err = json.Marshal(rows); err != nil {
			return nil, &Error{Source: source, Rule: "cannot be read as JSON: " + err.Error()}
		}
	}
	list, err := decodeRows(text)
	if err != nil {
		return nil, &Error{Source: source, Rule: err.Error()}
	}
	var names []string
	seen := map[string]bool{}
	for _, row := range list {
		for name := range row {
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	columns, quoted := make([]Column, len(names)), make([][]bool, len(names))
	for j, name := range names {
		cells := make([]string, len(list))
		quoted[j] = make([]bool, len(list))
		for i, row := range list {
			if cells[i], err = cellOfJSON(row[name]); err != nil {
				return nil, &Error{Source: source, Row: i + 1, Column: name, Rule: err.Error()}
			}
			_, quoted[j][i] = row[name].(string)
		}
		columns[j] = Texts(name, cells)
	}
	t, err := NewTable(source, columns...)
	if err != nil {
		return nil, err
	}
	for j, c := range t.columns {
		c.quoted = quoted[j]
	}
	return t, nil
}

// decodeRows reads an array of objects, or one object.
func decodeRows(text []byte) (rows []map[string]any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if trimmed := bytes.TrimLeft(text, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		rows = make([]map[string]any, 1)
		err = d.Decode(&rows[0])
	} else {
		err = d.Decode(&rows)
	}
	if err != nil {
		return nil, fmt.Errorf("must be an object or an array of objects: %w", err)
	}
	if d.More() {
		return nil, errors.New("must be one object or one array of objects, with nothing after it")
	}
	if len(rows) == 0 {
		return nil, errors.New("has no rows")
	}
	for i, row := range rows {
		if len(row) == 0 {
			return nil, fmt.Errorf("row %d of %s has no columns", i+1, count.Of(len(rows), "row"))
		}
	}
	return rows, nil
}

// cellOfJSON converts a JSON value to the text of a cell.
func cellOfJSON(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	case bool:
		return strconv.FormatBool(v), nil
	}
	return "", errors.New("must be a number, a text, true, false or null")
}
