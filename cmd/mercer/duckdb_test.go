package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/internal/required"
)

// TestPipesOfDuckDB gives the rows of a query of DuckDB to mercer through pipes, as JSON lines and as a stream of
// Arrow, and compares the models with that of the CSV file of the same query. DuckDB reads the predictions.
func TestPipesOfDuckDB(t *testing.T) {
	required.Slow(t, "duckdb", "starts DuckDB")
	const (
		query = `select i, x, case when i % 11 = 0 then null else word end as word, i % 3 = 0 as flag, (i * 7 % 100 / 8)::decimal(9, 3) as price,
	case when i % 13 = 0 then null else x * x - i / 64 end as half, 2 * x + i % 3 + length(word) as y
	from (select i::integer as i, (i * 37 % 101) / 16 as x, ['low', 'a, b', 'ü "q"'][1 + i % 3] as word from range(300) t(i)) order by i`
		lines = "copy (" + query + ") to '/dev/stdout' (format json)"
	)
	folder, path := t.TempDir(), commandFolder(t)
	script := func(name string) string {
		t.Helper()
		path, err := filepath.Abs(filepath.FromSlash(name))
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	duck := func(statements ...string) *exec.Cmd {
		return required.DuckDB(t, script("testdata/duckdb.js"), statements...)
	}
	mercer := func(arguments ...string) *exec.Cmd {
		c := exec.Command(filepath.Join(strings.Split(path, string(os.PathListSeparator))[0], "mercer"), append(arguments, "--quiet")...)
		c.Env = append(os.Environ(), asCommand+"=1")
		return c
	}
	// pipe runs the commands at the same time, connected by pipes, and returns the output of the last command.
	pipe := func(commands ...*exec.Cmd) string {
		t.Helper()
		var out, errs bytes.Buffer
		for k, c := range commands {
			c.Dir, c.Stderr = folder, &errs
			if k == len(commands)-1 {
				c.Stdout = &out
				continue
			}
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			c.Stdout, commands[k+1].Stdin = w, r
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			w.Close()
		}
		firstErr := commands[len(commands)-1].Run()
		for _, c := range commands[:len(commands)-1] {
			if err := c.Wait(); firstErr == nil {
				firstErr = err
			}
		}
		if firstErr != nil {
			t.Fatalf("%v: %v\n%s", commands, firstErr, errs.String())
		}
		return out.String()
	}
	file := func(name string) []byte {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	fit := func(drop, model, table string) *exec.Cmd {
		return mercer("fit", "--kernel", "gaussian(sigma=2)", "--target", "y", "--drop", drop, "--model", model, table)
	}

	pipe(duck("copy (" + query + ") to 't.csv' (header)"))
	pipe(fit("i", "csv.safetensors", "t.csv"))
	pipe(duck(lines), fit("i", "json.safetensors", "-"))
	if !bytes.Equal(file("json.safetensors"), file("csv.safetensors")) {
		t.Error("JSON lines and CSV of one query give different models")
	}
	// A Boolean column is a column of numbers in Arrow, and a column of texts in CSV and JSON.
	pipe(fit("i,flag", "again.safetensors", "t.csv"))
	pipe(required.DuckDBWasm(t, script("../../dataset/testdata/duckdb.js"), ".", query), fit("i,flag", "arrow.safetensors", "-"))
	if !bytes.Equal(file("arrow.safetensors"), file("again.safetensors")) {
		t.Error("a stream of Arrow and CSV of one query give different models")
	}

	want := pipe(mercer("predict", "--model", "csv.safetensors", "t.csv"))
	if got := pipe(duck(lines), mercer("predict", "--model", "json.safetensors", "-")); got != want {
		t.Errorf("predictions of JSON lines:\n%.200s\nof CSV:\n%.200s", got, want)
	}
	pipe(duck(lines), mercer("predict", "--model", "json.safetensors", "--out", "p.jsonl", "-"))
	pipe(duck("copy (select prediction from read_json('p.jsonl')) to 'p.csv' (header)"))
	if got := string(file("p.csv")); got != want {
		t.Errorf("DuckDB read the predictions\n%.200s\nwant\n%.200s", got, want)
	}
	got := pipe(duck(lines), mercer("predict", "--model", "json.safetensors", "-"), duck("select count(*)::integer as n from read_csv('/dev/stdin')"))
	if got != "{\"n\":300}\n" {
		t.Errorf("DuckDB counts the rows of a pipe of predictions: %s", got)
	}
}
