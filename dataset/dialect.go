package dataset

import "fmt"

// A Dialect holds the flags of a command about CSV files. The zero value reads files as ReadCSV
// does.
type Dialect struct {
	Delimiter   string   // one character between cells, or "tab"; "": see File.Delimiter
	Decimal     string   // "." or ","; "": see File.Decimal
	Thousands   string   // one character between groups of digits; "": see File.Thousands
	Comment     string   // one character that begins a comment; "" for none
	NAValues    []string // cells that are missing, in addition to DefaultNAValues
	NoDefaultNA bool     // NAValues replaces DefaultNAValues
}

// Check returns an error that names the first invalid flag.
func (d Dialect) Check() error {
	if d.Delimiter != "" && d.Delimiter != "tab" && len(d.Delimiter) > 1 {
		return fmt.Errorf("--delimiter: want one character, such as ; or |, or tab, got %q", d.Delimiter)
	}
	if len(d.Decimal) > 1 || len(d.Thousands) > 1 {
		return fmt.Errorf("--decimal, --thousands: want one character each, got %q and %q", d.Decimal, d.Thousands)
	}
	if rule := newMarks(firstByte(d.Decimal), firstByte(d.Thousands)).check(); rule != "" {
		return fmt.Errorf("--decimal, --thousands: %s", rule)
	}
	if len(d.Comment) > 1 {
		return fmt.Errorf("--comment: want one character, such as #, got %q", d.Comment)
	}
	return nil
}

// Apply returns f with the settings of the flags. It keeps f.NAValues if no flag sets them.
func (d Dialect) Apply(f File) File {
	switch {
	case d.Delimiter == "tab":
		f.Delimiter = '\t'
	case d.Delimiter != "":
		f.Delimiter = d.Delimiter[0]
	}
	if d.Decimal != "" || d.Thousands != "" {
		f.Decimal, f.Thousands = firstByte(d.Decimal), firstByte(d.Thousands)
	}
	if d.Comment != "" {
		f.Comment = d.Comment[0]
	}
	switch {
	case d.NoDefaultNA:
		f.NAValues = append([]string{}, d.NAValues...)
	case d.NAValues != nil:
		f.NAValues = append(DefaultNAValues(), d.NAValues...)
	}
	return f
}

// firstByte returns the first byte of s, or 0 if s is empty.
func firstByte(s string) byte {
	if s == "" {
		return 0
	}
	return s[0]
}
