// Package dataset encodes tables of raw cells as matrices, and stores the encoding so that later
// tables are encoded in the same way.
//
//	t, err := dataset.Read("train.csv", nil) // or LIBSVM, NPY, NPZ, IDX, Parquet, Arrow
//	e, err := dataset.Learn(t, dataset.Rules{Targets: []string{"price"}, Standardize: true})
//	x, err := e.Features(t) // rows × features
//	y, err := e.Targets(t)  // rows × targets
//
// A Table holds the columns of a file, or of Go slices, unchanged. An Encoder is learned from a training table. It
// records which columns are numbers and which are texts, the categories of the texts, the values that replace
// missing cells, and the mean and spread of each number. It is stored as JSON with the model, so that later tables
// are encoded in the same way, for any order of their columns.
//
// The cells of a target may be class labels (Rules.Labels). Targets then returns indices of
// classes, and Classes returns their labels. A column of texts or trees may be the only input
// (Rules.Text, Rules.Tree): call Texts in place of Features.
//
// A table that is larger than memory stays in its file: a Stream learns an Encoder in one pass, and
// yields features and targets block by block in later passes.
//
// In a text file, a cell is interpreted as follows:
//
//   - Spaces around a cell are ignored.
//   - An empty cell is missing, and so is a cell listed in Dialect.NAValues, in columns of numbers and of texts.
//   - A number is decimal, with a point, such as -1.5e3. Inf and numbers outside the range of float64 are refused.
//     Unambiguous other spellings are read too; decimal commas and thousands separators need Dialect.Decimal and
//     Dialect.Thousands. A number in any other spelling, such as 12%, is an error.
//   - A column with any other text is a column of texts; true and false are texts. A small number of texts among
//     numbers is an error: see Rules.Categorical. If the first MaxCategories distinct cells of a column are all
//     numbers, a text further down is an error, reported when the column is used.
//
// In a file of binary numbers, NaN is a missing cell and an infinity is an error.
//
// No input causes a panic. An error in the data is an *Error with the file, line, column, cell and rule.
package dataset
