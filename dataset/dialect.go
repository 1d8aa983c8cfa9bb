package dataset

import "fmt"

// A Dialect is what the flags of a command say about CSV files. The zero value is that
// of ReadCSV.
type Dialect struct {
	Delimiter   string   // one character between cells, or "tab"; "": see File.Delimiter
	Decimal     string   // "." or ","; "": see File.Decimal
	Thousands   string   // one character between groups of digits; "": see File.Thousands
	Comment     string   // one character that begins a comment; "": none does
	NAValues    []string // cells that are missing, besides DefaultNAValues
	NoDefaultNA bool     // not besides them, but instead
}

// Check returns what is wrong with a flag, by its name.
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

// Apply returns a file with what the flags say. NAValues of f stay where no flag is about
// them.
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

// Markers are the cells that stand for a missing value, as an Encoder keeps them.
func (d Dialect) Markers() []string { return newReading(d.Apply(File{}).NAValues, points).list }

// firstByte is the first byte of s, 0 of none.
func firstByte(s string) byte {
	if s == "" {
		return 0
	}
	return s[0]
}
