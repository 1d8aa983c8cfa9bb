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

// readNPZ reads features and targets from a zip file of arrays, as numpy.savez and savez_compressed
// write it.
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
		return nil, t.fault("", fmt.Sprintf("array %s has %s, array %s has %d", quote(arrayName(features)), count.Of(xHeader.rows, "row"), quote(arrayName(targets)), yHeader.rows))
	}
	if err := x.addArray(t, xHeader, ""); err != nil {
		return nil, err
	}
	return t, y.addArray(t, yHeader, "y")
}

// zipFiles returns the members of the zip file that are arrays.
func (in *input) zipFiles() (files []*zip.File, err error) {
	var at io.ReaderAt = in.file
	size := in.size
	if in.file == nil {
		data, err := in.all()
		if err != nil {
			return nil, err
		}
		at, size = bytes.NewReader(data), int64(len(data))
	}
	z, err := zip.NewReader(at, size)
	if err != nil {
		return nil, in.t.fault("", "the zip data is damaged: "+plain(err))
	}
	for _, file := range z.File {
		if strings.HasSuffix(file.Name, ".npy") {
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		return nil, in.t.fault("", "holds no arrays: no member is named .npy")
	}
	return files, nil
}

// plain returns the text of err without the prefix "zip: ".
func plain(err error) string { return strings.TrimPrefix(err.Error(), "zip: ") }

func arrayName(f *zip.File) string { return strings.TrimSuffix(f.Name, ".npy") }

// chooseArrays selects the feature array and the target array, which is nil if there is none.
func (in *input) chooseArrays(files []*zip.File, names []string) (features, targets *zip.File, err error) {
	var all []string
	for _, f := range files {
		all = append(all, arrayName(f))
	}
	find := func(equal func(string) bool) *zip.File {
		if i := slices.IndexFunc(all, equal); i >= 0 {
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
		return nil, nil, in.t.fault("", fmt.Sprintf("holds the arrays %s; name the feature array and the target array", list(all)))
	}
	if len(names) > 2 {
		return nil, nil, in.t.fault("", fmt.Sprintf("%d arrays are named; name at most two: the feature array and the target array", len(names)))
	}
	found := make([]*zip.File, 2)
	for i, name := range names {
		if found[i] = find(func(s string) bool { return s == name }); found[i] == nil {
			return nil, nil, in.t.fault("", fmt.Sprintf("has no array %s; it has %s%s", quote(name), list(all), nearest(name, all)))
		}
	}
	return found[0], found[1], nil
}

// member opens an array as an input. Its errors name the file and the array.
func (in *input) member(f *zip.File) (*input, error) {
	t := &Table{Source: in.t.Source + ": array " + quote(arrayName(f))}
	r, err := f.Open()
	if err != nil {
		return nil, t.fault("", "the zip data is damaged: "+plain(err))
	}
	member := &input{t: t, r: bufio.NewReaderSize(r, bufferSize), size: -1, zip: true, opened: r, allowance: in.allowance}
	if f.Method == zip.Store && in.size >= 0 && f.UncompressedSize64 <= uint64(in.size) {
		member.size = int64(f.UncompressedSize64)
		if at, err := f.DataOffset(); err == nil && in.file != nil && f.CompressedSize64 == f.UncompressedSize64 {
			member.stored, member.given = io.NewSectionReader(in.file, at, member.size), f.CRC32
		}
	}
	return member, nil
}
