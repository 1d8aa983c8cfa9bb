package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/message"
)

// inputFlags are the flags for reading a table, with properties that some file formats do not record.
type inputFlags struct {
	arrays []string
	keep   []string // columns that predict copies to its output
	labels string

	dialect   dataset.Dialect
	defaultNA bool
	ofModel   *dataset.Encoder // the model's encoder, which stores how the training table was read; nil if the command has no model
	unknown   string           // value of --unknown: "", "ignore" or "error"
}

func (f *inputFlags) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.arrays, "arrays", nil, "`NAMES` of the arrays of features and of targets in an NPZ file (default X,y)")
	flags.StringVar(&f.labels, "labels", "", "`FILE` of the labels of an IDX file (default: found by the name of the images)")
	flags.StringVar(&f.dialect.Delimiter, "delimiter", "", "`CHARACTER` between the cells of a CSV file, or tab; a space stands for any number of spaces and tabs (default: the comma, semicolon, tab or | that is most frequent in the header; spaces if there is none)")
	flags.StringVar(&f.dialect.Decimal, "decimal", "", "decimal `MARK` in a CSV file, . or , (default: the comma in files with semicolons between cells whose first numbers contain commas, otherwise the point)")
	flags.StringVar(&f.dialect.Thousands, "thousands", "", "`MARK` between groups of digits in a CSV file: one of , . ' _ or a space (default: none but ' and the no-break space)")
	flags.StringVar(&f.dialect.Comment, "comment", "", "`CHARACTER` that starts a comment in a CSV file, such as # (default: none)")
	flags.StringSliceVar(&f.dialect.NAValues, "na-values", nil, "`TEXTS` that mark a missing cell in a CSV file, in addition to empty cells and the texts of pandas (NA, NaN, nan, N/A, null, NULL, None, …)")
	flags.BoolVar(&f.defaultNA, "keep-default-na", true, "accept the texts of pandas; with =false only empty cells and --na-values are missing")
	flags.StringVar(&f.unknown, "unknown", "", "texts of a column that were unseen in training: ignore (encode them as zeros, and count them on standard error) or error (default: as the model was fitted, ignore)")
}

func (f *inputFlags) check() error {
	if f.unknown != "" && f.unknown != "ignore" && f.unknown != "error" {
		return usagef("--unknown: want ignore or error, got %q", f.unknown)
	}
	if err := f.dialect.Check(); err != nil {
		return usageError{err}
	}
	return nil
}

// apply returns a copy of an encoder that treats unknown texts in new rows as the flags say.
func (f *inputFlags) apply(e *dataset.Encoder) *dataset.Encoder {
	if f.unknown == "" {
		return e
	}
	applied := *e
	applied.RefuseUnknown = f.unknown == "error"
	return &applied
}

// notice prints a line about the call to stderr, unless --quiet is given. It prints equal lines only once.
func (a *app) notice(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if a.quiet || slices.Contains(a.notices, line) {
		return
	}
	a.notices = append(a.notices, line)
	fmt.Fprintln(a.stderr, line)
}

// reportUnknown prints a line for each column in which rows have a text that did not occur in training, or for tf-idf
// features, a text without any n-gram of the training texts. row is the printed word for a row.
func (a *app) reportUnknown(source, row string, unknown []dataset.Unknown) {
	for _, u := range unknown {
		description := "with texts unseen in training"
		if u.TFIDF {
			description = "without any n-gram of the training texts"
		}
		a.notice("%s: column %.60q: %s %s, such as %.60q, encoded as zeros", source, u.Column, count(u.Rows, row), description, u.Example)
	}
}

// reportOutOfRange prints one line about rows far outside the range of the training table, with the column that has
// the largest number of such rows.
func (a *app) reportOutOfRange(source string, outside []dataset.OutOfRange) {
	worst, columns := dataset.OutOfRange{}, 0
	for _, o := range outside {
		if o.Rows > 0 {
			columns++
		}
		if o.Rows > worst.Rows {
			worst = o
		}
	}
	if columns == 0 {
		return
	}
	text := func(v float64) string { return strconv.FormatFloat(v, 'g', 10, 64) }
	suffix := ""
	if columns > 1 {
		suffix = fmt.Sprintf("; this also applies to %s", count(columns-1, "other column"))
	}
	a.notice("%s: column %.60q: %s outside the training range of %s to %s by more than %d times its width, such as %s%s",
		source, worst.Column, count(worst.Rows, "row"), text(worst.Low), text(worst.High), dataset.OutOfRangeFactor, text(worst.Example), suffix)
}

// table reads the table of a subcommand, in any format.
func (a *app) table(file string, memory *budget) (*dataset.Table, error) {
	if err := a.input.check(); err != nil {
		return nil, err
	}
	t, err := a.file(file).Read()
	if err == nil {
		memory.note(t.ReadBytes())
		a.reportNotices(file, t.OmittedIndex(), t.ReadWarnings())
	}
	return t, err
}

// stream opens a table that is read from its file in blocks.
func (a *app) stream(file string) (*dataset.Stream, error) {
	s, err := a.file(file).Open()
	if err == nil {
		a.reportNotices(file, s.OmittedIndex(), s.ReadWarnings())
	}
	return s, err
}

// reportNotices reports the decisions made in reading a CSV file. When a model is applied, it omits the notice of
// an omitted index column.
func (a *app) reportNotices(source string, leftOutIndex bool, notices []string) {
	if leftOutIndex && a.input.ofModel == nil {
		notices = append(notices, "the first column has no name and is left out, as the index of pandas")
	}
	for _, text := range notices {
		a.notice("%s: %s", source, message.Expand(text, flagOf(a.command)))
	}
}

// file returns the named file, in any format.
func (a *app) file(name string) dataset.File {
	d := a.input.dialect
	d.NoDefaultNA = !a.input.defaultNA
	if a.input.ofModel != nil {
		d = a.input.ofModel.TrainingDialect(d)
	}
	return dataset.File{Path: name, Stdin: a.stdin, Dialect: d, Arrays: a.input.arrays, Labels: a.input.labels, Keep: a.input.keep, Memory: a.memoryLimit()}
}
