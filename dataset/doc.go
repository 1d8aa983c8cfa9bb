// Package dataset turns tables of raw cells into matrices, and remembers how.
//
//	t, err := dataset.Read("train.csv", nil) // or LIBSVM, NPY, NPZ, IDX, Parquet
//	e, err := dataset.Learn(t, dataset.Rules{Targets: []string{"price"}, Standardize: true})
//	x, err := e.Features(t) // rows × features
//	y, err := e.Targets(t)  // rows × targets
//
// A Table holds the columns of a file, or of Go slices, as they were given. An
// Encoder is learned from a training table: which columns are numbers, which
// are texts and with what categories, what replaces a missing cell, the mean
// and the spread of each number. It is stored with the model as JSON, so that
// later tables are encoded in the same way, whatever the order of their
// columns.
//
// A target may name classes instead (Rules.Labels): Targets then holds their
// indices and Classes their labels. A column of texts or of trees may be the
// whole input (Rules.Text, Rules.Tree): Texts then takes the place of Features.
//
// A table that is larger than the memory stays in its file: a Stream learns an
// Encoder in one pass, and gives features and targets block by block in others.
//
// What a cell means, where the file is of texts:
//
//   - Spaces around a cell do not count.
//   - An empty cell is missing, and so are those of File.NAValues, in columns of
//     numbers and of texts.
//   - A number is decimal, with a point, such as -1.5e3. Inf and numbers
//     outside the range of float64 are refused. Some other spellings have one
//     meaning and are read; decimal commas and groups of thousands need
//     File.Decimal and File.Thousands. Any other cell that is a number but for its
//     spelling, such as 12%, is a fault, and neither a category nor a class.
//   - A column with any other text is a column of texts; true and false are
//     texts. Texts that are few among numbers are a fault: see Rules.Categorical. A text past the first MaxCategories different cells of a column
//     which were all numbers does not change the column: it is a fault, and
//     is reported where the column is used.
//
// Where the file is of numbers, NaN is a missing cell and an infinity a fault.
//
// No input makes this package panic. Faults of the data are reported as
// *Error, which names the file, the line, the column, the cell and the rule.
package dataset
