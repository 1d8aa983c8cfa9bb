package serve

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"html/template"
	"path/filepath"
	"strings"

	"github.com/mercer-go/mercer"
	"github.com/mercer-go/mercer/dataset"
)

//go:embed page.html
var pageText string

//go:embed docs.html
var docsText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

var docsTemplate = template.Must(template.New("docs").Funcs(template.FuncMap{
	"paths": func() []string { return paths },
	"upper": strings.ToUpper,
	"word": func(v any) (string, error) { // returns v as JSON, quoted for a shell
		text, err := json.Marshal(v)
		return "'" + strings.ReplaceAll(string(text), "'", `'\''`) + "'", err
	},
}).Parse(docsText))

// maxFields is the largest number of columns for which the page has one input field per column.
const maxFields = 200

// field is the page's input field for a column of the model.
type field struct {
	Name    string   `json:"name"`
	Number  bool     `json:"number"`
	Example string   `json:"-"` // the value that replaces a missing cell
	Choices []string `json:"-"` // the categories of a column of texts
}

// option is the page's check box for an optional result.
type option struct{ Query, Label string }

// queryOptions lists all optional results, in the order of their check boxes.
var queryOptions = []struct {
	option
	want RequestOptions
}{
	{option{"interval=0.9", "interval with probability 0.9"}, RequestOptions{PredictOptions: mercer.PredictOptions{Level: 0.9}}},
	{option{"std", "standard deviation"}, RequestOptions{PredictOptions: mercer.PredictOptions{Std: true}}},
	{option{"bound", "proven bound of the error"}, RequestOptions{PredictOptions: mercer.PredictOptions{Bound: true}}},
	{option{"proba", "probabilities"}, RequestOptions{Proba: true}},
}

// options returns the optional results that the model can compute.
func (m *served) options() (list []option) {
	for _, w := range queryOptions {
		if m.Check(w.want) == nil {
			list = append(list, w.option)
		}
	}
	return list
}

// fields returns the input fields for the columns of the model.
func (m *served) fields() []field {
	kinds := map[string]dataset.Input{}
	for _, in := range m.Model.Encoder().Inputs {
		kinds[in.Name] = in
	}
	list := make([]field, len(m.columns))
	for i, name := range m.columns {
		in := kinds[name]
		list[i] = field{Name: name, Number: in.Number != nil || in.Text == nil && in.TFIDF == nil && in.Raw == ""}
		switch {
		case in.Number != nil:
			list[i].Example = number(in.Number.Fill)
		case in.Text != nil:
			list[i].Example, list[i].Choices = in.Text.Fill, in.Text.Categories
		}
	}
	return list
}

// example returns an example of a row for the model, as JSON.
func example(fields []field) []byte {
	row := map[string]any{}
	for _, f := range fields[:min(len(fields), maxFields)] {
		switch {
		case !f.Number:
			row[f.Name] = f.Example
		case f.Example == "":
			row[f.Name] = 0
		default:
			row[f.Name] = json.RawMessage(f.Example)
		}
	}
	text, _ := json.Marshal(row) // encoding texts and numbers cannot fail
	return text
}

func makePage(path string, m *served) ([]byte, error) {
	fields := m.fields()
	data := struct {
		Name, Learner string
		Fields        []field // empty if there are more than maxFields columns
		Columns       int
		Options       []option
		Example       string
	}{filepath.Base(path), m.Model.Model().Learner(), fields, len(fields), m.options(), string(example(fields))}
	if len(fields) > maxFields {
		data.Fields = nil
	}
	var buf bytes.Buffer
	err := pageTemplate.Execute(&buf, data)
	return buf.Bytes(), err
}

// describe returns the OpenAPI 3.1 description of the paths (spec.openapis.org/oas/v3.1.0).
func (s *Server) describe(m *served) ([]byte, error) {
	type object = map[string]any
	fields := m.fields()
	columns := object{}
	for _, f := range fields[:min(len(fields), maxFields)] {
		kind := object{"type": []string{"string", "null"}}
		switch {
		case f.Number:
			kind = object{"type": []string{"number", "string", "null"}}
		case len(f.Choices) > 0 && len(f.Choices) <= maxFields:
			kind["examples"] = f.Choices
		}
		columns[f.Name] = kind
	}
	numbers := object{"type": "object", "additionalProperties": object{"type": "number"}}
	texts := object{"type": "array", "items": object{"type": "string"}}
	answer := object{"type": "object", "properties": object{
		"class": object{"type": "string"}, "probabilities": numbers, "set": texts, "values": numbers, "lower": numbers, "upper": numbers, "std": numbers, "bound": numbers,
		"unknown": object{"type": "object", "additionalProperties": object{"type": "string"}}, "missing": texts, "quoted": texts, "unused": texts,
	}}
	ref := func(name string) object { return object{"$ref": "#/components/schemas/" + name} }
	content := func(kind string, schema object) object { return object{kind: object{"schema": schema}} }
	errorResponse := func(text string) object {
		return object{"description": text, "content": content("application/json", ref("error"))}
	}
	getOperation := func(text, kind string, extra object) object {
		responses := object{"200": object{"description": text, "content": content(kind, object{})}}
		for code, r := range extra {
			responses[code] = r
		}
		return object{"get": object{"summary": text, "responses": responses}}
	}
	parameters := []object{}
	for _, w := range queryOptions {
		if m.Check(w.want) != nil {
			continue
		}
		name, schema := w.Query, object{"type": "boolean"}
		if w.want.Level > 0 {
			name, schema = "interval", object{"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "examples": []float64{w.want.Level}}
		}
		parameters = append(parameters, object{"name": name, "in": "query", "description": w.Label, "schema": schema})
	}
	csv := object{"schema": object{"type": "string"}}
	row := object{"oneOf": []object{ref("row"), {"type": "array", "items": object{"type": []string{"number", "string", "boolean", "null"}}, "minItems": len(fields), "maxItems": len(fields)}}}
	return json.Marshal(object{
		"openapi": "3.1.0",
		"info":    object{"title": "Mercer: " + filepath.Base(s.Path), "version": "1", "description": "Predictions of a model of " + m.Model.Model().Learner() + "."},
		"paths": object{
			"/predict": object{"post": object{
				"summary": "Predict the target of each row", "parameters": parameters,
				"requestBody": object{"required": true, "content": object{
					"application/json":     object{"schema": object{"oneOf": []object{ref("row"), {"type": "array", "items": row, "minItems": 1, "maxItems": s.MaxRows}}}, "example": json.RawMessage(example(fields))},
					"application/x-ndjson": csv, "text/csv": csv,
				}},
				"responses": object{
					"200": object{"description": "One prediction for each row, in the format of the request", "content": object{
						"application/json": object{"schema": object{"oneOf": []object{ref("prediction"), {"type": "array", "items": ref("prediction")}}}}, "application/x-ndjson": csv, "text/csv": csv,
					}},
					"400": errorResponse("The rows or the query are not valid"), "408": errorResponse("The body did not arrive in time"), "413": errorResponse("The body or the number of rows is too large"),
					"415": errorResponse("The Content-Type is not known"), "429": errorResponse("Too many requests are running"), "500": errorResponse("An error inside the server"), "503": errorResponse("The prediction took too long, or the memory did not suffice"),
				},
			}},
			"/model":   getOperation("What the model consists of", "application/json", nil),
			"/health":  getOperation("Requests are accepted", "application/json", object{"503": errorResponse("The server is stopping")}),
			"/metrics": getOperation("Counters in the text format of Prometheus", "text/plain", nil),
		},
		"components": object{"schemas": object{
			"row":        object{"type": "object", "properties": columns},
			"prediction": answer,
			"error":      object{"type": "object", "required": []string{"error"}, "properties": object{"error": object{"type": "string"}}},
		}},
	})
}

// makeDocs returns a page that shows the OpenAPI description to people.
func makeDocs(openAPI []byte) ([]byte, error) {
	var api map[string]any
	if err := json.Unmarshal(openAPI, &api); err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	err := docsTemplate.Execute(&buf, api)
	return buf.Bytes(), err
}
