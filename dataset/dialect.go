package dataset

import "fmt"

// A Dialect is what the flags of a command say about CSV files. The zero value is that
// of ReadCSV.
type Dialect struct {
	Delimiter   string   // one character between cells, or "tab"; "": see ReadCSV
	Comment     string   // one character that begins a comment; "": none does
	NAValues    []string // cells that are missing, besides DefaultNAValues
	NoDefaultNA bool     // not besides them, but instead
}

// Check returns what is wrong with a flag, by its name.
func (d Dialect) Check() error {
	if d.Delimiter != "" && d.Delimiter != "tab" && len(d.Delimiter) > 1 {
		return fmt.Errorf("--delimiter: want one character, such as ; or |, or tab, got %q", d.Delimiter)
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
func (d Dialect) Markers() []string { return newNAValues(d.Apply(File{}).NAValues).list }
