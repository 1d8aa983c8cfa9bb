package dataset

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// A File names a table on a disk, in one of these formats:
//
//	CSV      see ReadCSV
//	LIBSVM   text, a line "label index:value …" for each row
//	NPY, NPZ arrays of numpy, formats 1.0 to 3.0
//	IDX      the format of MNIST: images, and labels in a second file
//	Parquet  flat columns of numbers, booleans (0 and 1) and texts; dates, times and UUIDs
//	         are the texts that a CSV file has; a column of another type is an error where
//	         it is used, and none where Rules.Drop names it
//
// Where a format does not name its columns, the features are x1, x2, … (LIBSVM with the
// index 0: x0, x1, …) and the target is label (LIBSVM, IDX) or y (NPZ). All but NPZ and Parquet, which have
// a compression of their own, may be compressed by gzip or zstd.
type File struct {
	Path  string    // "-" reads Stdin
	Stdin io.Reader // may be nil

	// Opened is the file where it is open already; Path then only names it. It is
	// read from its beginning, wherever its own offset is, and not closed.
	Opened *os.File

	// Arrays names the array of the features and, if there is one, that of the
	// targets of an NPZ file. Without names they are X and y, in either case,
	// or the only array.
	Arrays []string

	// Labels is the file of the labels of an IDX file. Without a name it is
	// looked for in the same folder: labels-idx1 for images-idx3 in the name,
	// compressed or not; a table for which there is none has no label column.
	Labels string

	// Delimiter separates the cells of a CSV file; 0: see ReadCSV. A space stands for
	// any number of spaces and tabs.
	Delimiter byte

	// Comment begins what is no part of a line of a CSV file, outside quotation marks;
	// 0: no character does. Lines of nothing else are skipped, before the header too.
	Comment byte

	// Decimal is the mark before the decimals of the numbers of a CSV file: '.' or ','. 0:
	// the comma where Thousands is '.', or where the cells are separated by semicolons,
	// some of the first numbers have a decimal comma and none a point; otherwise the point.
	Decimal byte

	// Thousands separates groups of three digits in the numbers of a CSV file: one of
	// , . ' _ and the space. 0: none but the apostrophe and the no-break space, which
	// need no name.
	Thousands byte

	// NAValues are the cells of a CSV file that stand for a missing value, in columns
	// of numbers and of texts, besides the empty cell; nil: DefaultNAValues. A number
	// among them stands for all its spellings.
	NAValues []string

	// Keep names columns of CSV and of texts whose cells stay as they are written, for
	// Table.Cells: 007 is not 7. The first column of a CSV file that has no name, the index
	// of pandas and R, is read as a column with the name IndexName if that is among them.
	Keep []string

	// Memory is the number of bytes that the table may take, 0 for any number. A
	// file that takes more is refused before it is read, where it says so itself,
	// and otherwise as soon as it does: what it claims is not believed.
	Memory int64
}

// Read reads a table from a file in any format that File lists. It is
// File{Path: path, Stdin: stdin}.Read().
func Read(path string, stdin io.Reader) (*Table, error) {
	return File{Path: path, Stdin: stdin}.Read()
}

// Read reads the whole file. The format is told by the first bytes; texts that
// are not called .csv or .libsvm (.svm, .svmlight) are told apart by their first
// line. A file that is not what its name says is refused.
//
// Everything that cannot be read is an *Error, with the line, the row or the
// offset of the byte where there is one. The memory taken is in proportion to
// what was read, whatever sizes the file claims to have.
func (f File) Read() (*Table, error) {
	in, err := f.open()
	if err != nil {
		return nil, err
	}
	defer in.close()
	form, err := f.format(in)
	if err != nil {
		return nil, err
	}
	switch form {
	case formNPY:
		return readNPY(in)
	case formNPZ:
		return readNPZ(in, f.Arrays)
	case formIDX:
		return f.readIDX(in)
	case formLIBSVM:
		return readLIBSVM(in)
	case formParquet:
		return readParquet(in)
	}
	return readCSV(in)
}

// form is the format of a file.
type form string

const (
	formCSV     form = "CSV"
	formLIBSVM  form = "LIBSVM"
	formNPY     form = "NPY"
	formNPZ     form = "NPZ"
	formIDX     form = "IDX"
	formParquet form = "Parquet"
)

// extensions are the names that promise a format.
var extensions = map[string]form{
	".csv": formCSV, ".tsv": formCSV, ".libsvm": formLIBSVM, ".svm": formLIBSVM, ".svmlight": formLIBSVM,
	".npy": formNPY, ".npz": formNPZ, ".idx": formIDX, ".parquet": formParquet, ".pq": formParquet,
}

// format is the format of a file, for which all that f says must have a meaning.
func (f File) format(in *input) (form, error) {
	found, err := f.detect(in)
	if err != nil {
		return "", err
	}
	for _, option := range []struct {
		given bool
		of    string
		form  form
	}{
		{len(f.Arrays) > 0, "names of arrays are", formNPZ},
		{f.Labels != "", "a file of labels is", formIDX},
		{f.Delimiter != 0, "a delimiter is", formCSV},
	} {
		if option.given && found != option.form {
			return "", in.t.fault("", fmt.Sprintf("is %s file; %s for %s files only", article(found), option.of, option.form))
		}
	}
	return found, nil
}

// detect tells the format of a file by its first bytes, and by its name where
// it is text.
func (f File) detect(in *input) (form, error) {
	name := strings.ToLower(f.Path)
	named := extensions[filepath.Ext(strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst"))]
	head, err := in.r.Peek(4)
	if err != nil && err != io.EOF {
		return "", in.readFault(err)
	}
	var found form
	switch {
	case bytes.HasPrefix(head, []byte("\x93NUM")):
		found = formNPY
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		found = formNPZ
	case bytes.HasPrefix(head, []byte("PAR1")):
		found = formParquet
	case len(head) == 4 && head[0] == 0 && head[1] == 0 && head[2] >= 8 && head[2] <= 14 && head[3] > 0:
		found = formIDX
	}
	switch {
	case found == "" && (named == formCSV || named == formLIBSVM):
		return named, nil
	case found == "" && named != "":
		return "", in.t.fault("", "is named like "+article(named)+" file but does not begin as one does")
	case found == "" && looksLIBSVM(in.r):
		return formLIBSVM, nil
	case found == "":
		return formCSV, nil
	case named != "" && named != found:
		return "", in.t.fault("", "is named like "+article(named)+" file but begins as "+article(found)+" file does; give it its proper name")
	case in.gzip && (found == formNPZ || found == formParquet):
		return "", in.t.fault("", string(found)+" has a compression of its own; unpack the file first")
	}
	return found, nil
}

// article is the name of a format with a or an before it.
func article(f form) string {
	if slices.Contains([]form{formNPY, formNPZ, formIDX}, f) {
		return "an " + string(f)
	}
	return "a " + string(f)
}

// An input is an open file, or standard input, without its compression.
type input struct {
	t         *Table // names the source in faults
	r         *bufio.Reader
	offset    int64    // of what take takes next
	size      int64    // bytes in all, −1 when that is not known beforehand
	file      *os.File // nil unless the file can be read at any place
	gzip      bool     // or zstd
	zip       bool     // a member of a zip file
	converted bool     // from UTF-16
	part      bool     // CSV: some lines behind their header, which say nothing about the dialect
	opened    io.Closer

	unpacker *zstd.Decoder // nil unless compressed by zstd

	allowance *allowance
	delimiter byte // 0: to be found
	comment   byte // 0: none
}

// open opens the file.
func (f File) open() (*input, error) {
	in := &input{t: &Table{Source: f.Path, keep: f.Keep, reading: newReading(f.NAValues, newMarks(f.Decimal, f.Thousands))}, size: -1, delimiter: f.Delimiter, comment: f.Comment, allowance: newAllowance(f.Memory)}
	in.t.reading.given = f.Decimal != 0 || f.Thousands == '.' || f.Thousands == ','
	if f.Path == "-" {
		in.t.Source = "standard input"
		if f.Stdin == nil {
			return nil, in.t.fault("", "cannot be read: there is none")
		}
		return in, in.start(f.Stdin, false)
	}
	opened := f.Opened
	var r io.Reader = opened
	if opened == nil {
		info, err := os.Stat(f.Path)
		if err != nil {
			return nil, in.t.openFault(err)
		}
		if info.IsDir() {
			return nil, in.t.fault("", "is a directory; the name of a file is needed")
		}
		if opened, err = os.Open(f.Path); err != nil {
			return nil, in.t.openFault(err)
		}
		r, in.opened = opened, opened
	}
	info, err := opened.Stat()
	if err != nil {
		in.close()
		return nil, in.t.openFault(err)
	}
	if info.Mode().IsRegular() {
		in.file, in.size = opened, info.Size()
		if f.Opened != nil {
			r = io.NewSectionReader(opened, 0, info.Size()) // has an offset of its own
		}
	}
	if err := in.start(r, strings.HasSuffix(strings.ToLower(f.Path), ".gz")); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

func (in *input) close() {
	if in.unpacker != nil {
		in.unpacker.Close()
	}
	if in.opened != nil {
		in.opened.Close()
	}
}

// bufferSize is that of the buffers between a file and its reader.
const bufferSize = 1 << 16

// start begins to read, past gzip if there is any, and past UTF-16.
func (in *input) start(r io.Reader, mustBeGzip bool) error {
	if err := in.unpack(r, mustBeGzip); err != nil {
		return err
	}
	return in.decode()
}

// unpack begins to read, past gzip if there is any.
func (in *input) unpack(r io.Reader, mustBeGzip bool) error {
	in.r = bufio.NewReaderSize(r, bufferSize)
	magic, _ := in.r.Peek(2) // an error comes back from the next read
	if bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in.r)
		if err != nil {
			return in.t.readFault(0, err)
		}
		in.r = bufio.NewReaderSize(z, bufferSize)
		in.gzip, in.file, in.size = true, nil, -1
		return nil
	}
	head, _ := in.r.Peek(6)
	switch {
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(in.r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return in.t.readFault(0, err)
		}
		in.r = bufio.NewReaderSize(zstdReader{z}, bufferSize)
		in.gzip, in.file, in.size = true, nil, -1
		in.unpacker = z
		return nil
	case bytes.HasPrefix(head, []byte("BZh")) && len(head) > 3 && head[3] >= '1' && head[3] <= '9':
		return in.t.fault("", "is compressed by bzip2, which is not read: unpack it, or use gzip or zstd")
	case bytes.HasPrefix(head, []byte("\xfd7zXZ\x00")):
		return in.t.fault("", "is compressed by xz, which is not read: unpack it, or use gzip or zstd")
	}
	if mustBeGzip && len(magic) > 0 {
		return in.t.fault("", "is named .gz but does not hold gzip data")
	}
	return nil
}

// A zstdReader marks the errors of a decoder.
type zstdReader struct{ decoder *zstd.Decoder }

type zstdError struct{ error }

func (r zstdReader) Read(p []byte) (int, error) {
	n, err := r.decoder.Read(p)
	if err != nil && err != io.EOF {
		err = zstdError{err}
	}
	return n, err
}

// openFault says why a file cannot be opened, without naming it again.
func (t *Table) openFault(err error) *Error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return t.fault("", "no such file")
	}
	return t.fault("", "cannot be opened: "+err.Error())
}
