package dataset

import (
	"archive/zip"
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mercer-go/mercer/internal/count"
)

// readNPZ reads features and targets from a zip file of arrays, as numpy.savez writes it.
func readNPZ(in *input, arrays []string) (*Table, error) {
	files, err := in.zipFiles()
	if err != nil {
		return nil, err
	}
	if len(arrays) == 0 && isSparseNPZ(files) {
		return in.t, readSparseNPZ(in, files)
	}
	features, targets, err := in.chooseArrays(files, arrays)
	if err != nil {
		return nil, err
	}
	t := in.t
	x, err := in.member(features)
	if err != nil {
		return nil, err
	}
	defer x.close()
	xHeader, err := x.npyHeader()
	if err != nil {
		return nil, err
	}
	t.rows = int(xHeader.rows)
	if targets == nil {
		t.note = "; no array of targets was found in it"
		return t, x.addArray(t, xHeader, "")
	}
	y, err := in.member(targets)
	if err != nil {
		return nil, err
	}
	defer y.close()
	yHeader, err := y.npyHeader()
	if err != nil {
		return nil, err
	}
	if xHeader.rows != yHeader.rows { // find this error before reading the arrays
		return nil, t.newError("", fmt.Sprintf("array %s has %s, array %s has %d", quote(arrayName(features)), count.Of(xHeader.rows, "row"), quote(arrayName(targets)), yHeader.rows))
	}
	if err := x.addArray(t, xHeader, ""); err != nil {
		return nil, err
	}
	return t, y.addArray(t, yHeader, "y")
}

// zipFiles returns the members of the zip file that are arrays.
func (in *input) zipFiles() (files []*zip.File, err error) {
	var readerAt io.ReaderAt = in.file
	size := in.size
	if in.file == nil {
		data, err := in.readAll()
		if err != nil {
			return nil, err
		}
		readerAt, size = bytes.NewReader(data), int64(len(data))
	}
	z, err := zip.NewReader(readerAt, size)
	if err != nil {
		return nil, in.t.newError("", "the zip data is damaged: "+trimZipPrefix(err))
	}
	for _, file := range z.File {
		if strings.HasSuffix(file.Name, ".npy") {
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		return nil, in.t.newError("", "holds no arrays: no member is named .npy")
	}
	return files, nil
}

// trimZipPrefix returns the text of err without the prefix "zip: ".
func trimZipPrefix(err error) string { return strings.TrimPrefix(err.Error(), "zip: ") }

func arrayName(f *zip.File) string { return strings.TrimSuffix(f.Name, ".npy") }

// chooseArrays selects the feature array and the target array, which is nil if there is none.
func (in *input) chooseArrays(files []*zip.File, names []string) (features, targets *zip.File, err error) {
	var arrayNames []string
	for _, f := range files {
		arrayNames = append(arrayNames, arrayName(f))
	}
	find := func(equal func(string) bool) *zip.File {
		if i := slices.IndexFunc(arrayNames, equal); i >= 0 {
			return files[i]
		}
		return nil
	}
	if len(names) == 0 {
		features = find(func(s string) bool { return strings.EqualFold(s, "x") })
		targets = find(func(s string) bool { return strings.EqualFold(s, "y") })
		switch {
		case features != nil:
			return features, targets, nil
		case len(files) == 1 && targets == nil:
			return files[0], nil, nil
		}
		return nil, nil, in.t.newError("", fmt.Sprintf("holds the arrays %s; name the feature array and the target array", list(arrayNames)))
	}
	if len(names) > 2 {
		return nil, nil, in.t.newError("", fmt.Sprintf("%d arrays are named; name at most two: the feature array and the target array", len(names)))
	}
	selected := make([]*zip.File, 2)
	for i, name := range names {
		if selected[i] = find(func(s string) bool { return s == name }); selected[i] == nil {
			return nil, nil, in.t.newError("", fmt.Sprintf("has no array %s; it has %s%s", quote(name), list(arrayNames), nearest(name, arrayNames)))
		}
	}
	return selected[0], selected[1], nil
}

// member opens an array as an input. Its errors name the file and the array.
func (in *input) member(f *zip.File) (*input, error) {
	t := &Table{Source: in.t.Source + ": array " + quote(arrayName(f))}
	r, err := f.Open()
	if err != nil {
		return nil, t.newError("", "the zip data is damaged: "+trimZipPrefix(err))
	}
	member := &input{t: t, r: bufio.NewReaderSize(r, bufferSize), size: -1, zip: true, closer: r, allowance: in.allowance}
	if f.Method == zip.Store && in.size >= 0 && f.UncompressedSize64 <= uint64(in.size) {
		member.size = int64(f.UncompressedSize64)
		if offset, err := f.DataOffset(); err == nil && in.file != nil && f.CompressedSize64 == f.UncompressedSize64 {
			member.readerAt, member.expectedSum = io.NewSectionReader(in.file, offset, member.size), f.CRC32
		}
	}
	return member, nil
}
