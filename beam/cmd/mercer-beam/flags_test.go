package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/beam/pipeline"
)

// TestCSVFlags checks that the flags for CSV files work in the same way as in mercer fit.
func TestCSVFlags(t *testing.T) {
	for _, c := range []struct{ args, wantErr string }{
		{"--delimiter tab --decimal , --thousands . --comment # --na-values -999,gone --na-values x --keep-default-na=false", ""},
		{"--delimiter ;;", `--delimiter: want one character, such as ; or |, or tab, got ";;"`},
		{"--decimal ;", `--decimal, --thousands: the character ';' cannot be a decimal mark: use . or ,`},
		{"--comment //", `--comment: want one character, such as #, got "//"`},
	} {
		var o options
		flags := flag.NewFlagSet("mercer-beam", flag.ContinueOnError)
		o.add(flags)
		if err := flags.Parse(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		p, err := o.params(nil)
		if c.wantErr != "" {
			if err == nil || err.Error() != c.wantErr {
				t.Errorf("%s: %v, want %s", c.args, err, c.wantErr)
			}
			continue
		}
		if d := p.Dialect; err != nil || d.Delimiter != "tab" || d.Decimal != "," || d.Thousands != "." || d.Comment != "#" || !d.NoDefaultNA || !slices.Equal(d.NAValues, []string{"-999", "gone", "x"}) {
			t.Errorf("%s: %+v, %v", c.args, d, err)
		}
	}
}

// TestDropFlag checks that lists of names are parsed as in mercer fit: a name that contains a comma is quoted.
func TestDropFlag(t *testing.T) {
	for _, c := range []struct {
		args    []string
		want    []string
		wantErr string
	}{
		{nil, nil, ""},
		{[]string{"--drop", "id,the day", "--drop", "e"}, []string{"id", "the day", "e"}, ""},
		{[]string{"--drop", `"a, ""b""",c`}, []string{`a, "b"`, "c"}, ""},
		{[]string{"--drop", "a,,b"}, nil, "--drop: the name of a column is empty"},
		{[]string{"--drop", `"a`}, nil, `invalid value "\"a" for flag -drop: parse error on line 1, column 3: extraneous or missing " in quoted-field`},
	} {
		var o options
		flags := flag.NewFlagSet("mercer-beam", flag.ContinueOnError)
		flags.SetOutput(io.Discard)
		o.add(flags)
		err := flags.Parse(c.args)
		var p pipeline.Params
		if err == nil {
			p, err = o.params(nil)
		}
		if c.wantErr != "" || err != nil {
			if fmt.Sprint(err) != c.wantErr {
				t.Errorf("%q: %v, want %q", c.args, err, c.wantErr)
			}
			continue
		}
		if !slices.Equal(p.Drop, c.want) {
			t.Errorf("%q: got %q, want %q", c.args, p.Drop, c.want)
		}
	}
}
