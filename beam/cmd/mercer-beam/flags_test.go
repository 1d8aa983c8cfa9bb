package main

import (
	"flag"
	"slices"
	"strings"
	"testing"
)

// The flags about CSV files are those of mercer fit.
func TestCSVFlags(t *testing.T) {
	for _, c := range []struct{ args, fault string }{
		{"--delimiter tab --decimal , --thousands . --comment # --na-values -999,gone --na-values x --keep-default-na=false", ""},
		{"--delimiter ;;", `--delimiter: want one character, such as ; or |, or tab, got ";;"`},
		{"--decimal ;", `--decimal, --thousands: the decimal mark ';' cannot be one: use . or ,`},
		{"--comment //", `--comment: want one character, such as #, got "//"`},
	} {
		var o options
		flags := flag.NewFlagSet("mercer-beam", flag.ContinueOnError)
		o.add(flags)
		if err := flags.Parse(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		p, err := o.params(nil)
		if c.fault != "" {
			if err == nil || err.Error() != c.fault {
				t.Errorf("%s: %v, want %s", c.args, err, c.fault)
			}
			continue
		}
		if d := p.Dialect; err != nil || d.Delimiter != "tab" || d.Decimal != "," || d.Thousands != "." || d.Comment != "#" || !d.NoDefaultNA || !slices.Equal(d.NAValues, []string{"-999", "gone", "x"}) {
			t.Errorf("%s: %+v, %v", c.args, d, err)
		}
	}
}
