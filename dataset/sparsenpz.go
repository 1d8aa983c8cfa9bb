package dataset

import (
	"archive/zip"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/internal/count"
)

// A sparse matrix of SciPy (scipy.sparse.save_npz) is a zip file of arrays: "format" is the text csr, csc or coo,
// "shape" contains the numbers of rows and columns, "data" the values, and "indices" and "indptr", or "row" and
// "col", the positions of the values.

// isSparseNPZ reports whether the arrays of a zip file form a sparse matrix of SciPy.
func isSparseNPZ(files []*zip.File) bool {
	has := func(name string) bool {
		return slices.ContainsFunc(files, func(f *zip.File) bool { return f.Name == name+".npy" })
	}
	return has("format") && has("shape") && has("data")
}

// readSparseNPZ reads features from a sparse matrix, and targets from the array y if there is one.
func readSparseNPZ(in *input, files []*zip.File) error {
	if err := readSparseMatrix(in, files); err != nil {
		return err
	}
	i := slices.IndexFunc(files, func(f *zip.File) bool { return strings.EqualFold(arrayName(f), "y") })
	if i < 0 {
		in.t.note = "; no array y of targets was found in it"
		return nil
	}
	y, err := in.member(files[i])
	if err != nil {
		return err
	}
	defer y.close()
	h, err := y.npyHeader()
	if err != nil {
		return err
	}
	if h.rows != int64(in.t.rows) {
		return in.t.newError("", fmt.Sprintf("the matrix has %s, array %s has %d", count.Of(in.t.rows, "row"), quote(arrayName(files[i])), h.rows))
	}
	return y.addArray(in.t, h, "y")
}

func readSparseMatrix(in *input, files []*zip.File) error {
	member := func(name string) (*input, error) {
		i := slices.IndexFunc(files, func(f *zip.File) bool { return f.Name == name+".npy" })
		if i < 0 {
			return nil, in.t.newError("", "has no array "+quote(name)+", which a sparse matrix of SciPy has")
		}
		return in.member(files[i])
	}
	layout, err := sparseFormat(member)
	if err != nil {
		return err
	}
	var shape []int64
	if err := forEachInteger(member, "shape", 2, math.MaxInt64, func(n int64) { shape = append(shape, n) }); err != nil {
		return err
	}
	if rule := checkSparseShape(shape[0], shape[1]); rule != "" {
		return in.t.newError("", rule)
	}
	rows, columns := int(shape[0]), int(shape[1])
	in.t.rows = rows
	values, err := sparseValues(member)
	if err != nil {
		return err
	}
	switch layout {
	case "coo":
		var e triples
		if e.rows, err = readIndices(member, "row", rows, len(values)); err == nil {
			e.columns, err = readIndices(member, "col", columns, len(values))
		}
		if err != nil {
			return err
		}
		e.values = values
		return in.t.setTriples(e, columns, in.allowance)
	case "csr", "csc":
		m := host.CSR[float64]{Rows: rows, Cols: columns, Data: values}
		if layout == "csc" {
			if rule := checkRows(rows, len(values)); rule != "" {
				return in.t.newError("", rule)
			}
			m.Rows, m.Cols = columns, rows
		}
		if m.Indptr, err = readPointers(member, m.Rows, len(values)); err != nil {
			return err
		}
		if m.Indices, err = readIndices(member, "indices", m.Cols, len(values)); err != nil {
			return err
		}
		if layout == "csc" {
			m = m.Transposed()
		}
		return in.t.setMatrix(m, in.allowance)
	}
	return in.t.newError("", "holds a sparse matrix of the format "+quote(layout)+"; csr, csc and coo are supported: save a.tocsr()")
}

// sparseFormat returns the text of the array "format", which has rank 0.
func sparseFormat(member func(string) (*input, error)) (string, error) {
	in, err := member("format")
	if err != nil {
		return "", err
	}
	defer in.close()
	h, err := in.npyScalar()
	if err != nil {
		return "", err
	}
	if h.char == 0 || h.rank != 0 || h.width > 64 {
		return "", in.t.newError("", "is not the name of a format, such as csr")
	}
	text, err := in.readBytes(int64(h.width), "the name of the format")
	if err != nil {
		return "", err
	}
	return strings.ToValidUTF8(strings.ReplaceAll(string(text), "\x00", ""), "\ufffd"), in.end()
}

// readIndices reads the array with the given name and length. Its elements must be indices from 0 to limit − 1.
func readIndices(member func(string) (*input, error), name string, limit, length int) ([]int32, error) {
	list := make([]int32, 0, length)
	err := forEachInteger(member, name, length, int64(limit)-1, func(n int64) { list = append(list, int32(n)) })
	return list, err
}

// readPointers reads the array "indptr": rows + 1 nondecreasing elements from 0 to the number of values.
func readPointers(member func(string) (*input, error), rows, values int) ([]int, error) {
	var list []int
	err := forEachInteger(member, "indptr", rows+1, int64(values), func(n int64) { list = append(list, int(n)) })
	if err != nil {
		return nil, err
	}
	if list[0] != 0 || list[rows] != values || !slices.IsSorted(list) {
		in, err := member("indptr")
		if err != nil {
			return nil, err
		}
		defer in.close()
		return nil, in.t.newError("", fmt.Sprintf("must rise from 0 to %d, the number of values", values))
	}
	return list, nil
}

// forEachInteger calls the function use for each element of an array of rank 1, whose elements must be integers from 0
// to maxValue. The array must have the given length; a negative length allows any.
func forEachInteger(member func(string) (*input, error), name string, length int, maxValue int64, use func(n int64)) error {
	in, err := member(name)
	if err != nil {
		return err
	}
	defer in.close()
	h, err := in.npyHeader()
	if err != nil {
		return err
	}
	switch {
	case h.rank != 1 || h.char != 0 || h.kind == f16 || h.kind == f32 || h.kind == f64:
		return in.t.newError("", "must be integers in one dimension")
	case length >= 0 && h.rows != int64(length):
		return in.t.newError("", fmt.Sprintf("has %s, not %d", count.Of(h.rows, "element"), length))
	}
	m, err := in.npyCells(h)
	if err != nil {
		return err
	}
	in.allowance.release(int64(len(m.data))) // the array itself is not kept
	for i := range int(h.rows) {
		v := m.number(i, 0)
		if v < 0 || v > float64(maxValue) {
			e := in.t.newError("", fmt.Sprintf("must be from 0 to %d", maxValue))
			e.Row, e.Value = i+1, m.text(i, 0)
			return e
		}
		use(int64(min(v, 1<<62)))
	}
	return in.end()
}

// sparseValues reads the array "data".
func sparseValues(member func(string) (*input, error)) ([]float64, error) {
	in, err := member("data")
	if err != nil {
		return nil, err
	}
	defer in.close()
	h, err := in.npyHeader()
	if err != nil {
		return nil, err
	}
	if h.rank != 1 || h.char != 0 {
		return nil, in.t.newError("", "must be numbers in one dimension")
	}
	m, err := in.npyCells(h)
	if err != nil {
		return nil, err
	}
	in.allowance.release(int64(len(m.data))) // the array itself is not kept
	if !in.allowance.fits(8 * h.rows) {
		return nil, in.t.newError("", in.allowance.rule())
	}
	values := make([]float64, h.rows)
	m.read(values, 0, 0)
	return values, in.end()
}

// noSparseLabels is the error text for a file of labels if the table's format does not support it.
const noSparseLabels = "does not take a file of labels, which is for IDX files and for sparse matrices in NPZ and Matrix Market files"

// readSparseLabels adds a column label to a sparse matrix. The file f.Labels must have one column, or a column label.
func (f File) readSparseLabels(t *Table) error {
	if f.Labels == "" {
		return nil
	}
	if t.features == nil {
		return t.newError("", noSparseLabels)
	}
	labels, err := File{Path: f.Labels, Dialect: f.Dialect, Memory: f.Memory}.Read()
	if err != nil {
		return err
	}
	c := labels.find(labelName)
	if c == nil && labels.width()+len(labels.columns) == 1 {
		c = labels.allColumns()[0]
	}
	switch {
	case c == nil:
		return labels.noColumn("column", labelName, labels.Names())
	case c.unreadable != "":
		return labels.columnError(c)
	case labels.rows != t.rows:
		return labels.newError("", fmt.Sprintf("has %s of labels, but the features have %d", count.Of(labels.rows, "row"), t.rows))
	}
	c.name = labelName
	t.columns = append(t.columns, c)
	return nil
}
