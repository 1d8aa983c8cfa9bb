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

// A File specifies a file with a table in one of these formats:
//
//	CSV      see ReadCSV
//	LIBSVM   text, a line "label index:value …" for each row
//	NPY, NPZ arrays of numpy, formats 1.0 to 3.0; NPZ also a sparse matrix of scipy.sparse.save_npz: CSR, CSC or COO
//	Matrix Market (.mtx) a sparse matrix in coordinate format: real, integer or pattern, general or symmetric
//	IDX      the format of MNIST: images, and labels in a second file
//	JSON     objects, one after the other (JSON lines) or in an array; the keys are the names of the columns
//	Parquet  flat columns of numbers, booleans (0 and 1) and texts; dates, times and UUIDs are read as texts;
//	         a column of another type is an error only if it is used
//	Arrow    files (Feather of version 2) and streams of Arrow IPC: columns as in Parquet, dictionaries, LZ4, zstd
//
// If a format does not name its columns, the features are x1, x2, … (or x0, x1, … if a LIBSVM file
// has the index 0). The target is label (LIBSVM, IDX) or y (NPZ). NPZ and Parquet have their own
// compression; files of all other formats may be compressed by gzip or zstd.
type File struct {
	Path  string    // "-" reads Stdin
	Stdin io.Reader // may be nil

	// Opened is the file if it is already open. Path is then only its name in messages. The file is
	// read from its beginning, whatever its current offset is, and is not closed.
	Opened *os.File

	// Arrays names the feature array of an NPZ file and, optionally, the target array. By default
	// the arrays are X and y, in upper or lower case, or the feature array is the only array.
	Arrays []string

	// Labels is a file of labels. For a sparse matrix in an NPZ or Matrix Market file, it is a
	// table, in any format, with one column or a column named label. For an IDX file, the default is
	// the file in the same folder whose name has labels-idx1 in place of images-idx3, compressed or
	// not. If there is no such file, the table has no label column.
	Labels string

	Dialect Dialect // how a CSV file is written

	// Keep names columns of CSV files, and text columns of Parquet and Arrow files, whose exact
	// texts Table.Cells returns: 007 does not become 7. If Keep includes "index", a first column of
	// a CSV file without a name, such as the index of pandas or R, gets the name index.
	Keep []string

	// Memory is the maximum size of the table in bytes; 0 means no limit. For a larger file Read returns an error:
	// at once if the header gives the size, and otherwise when the limit is exceeded.
	Memory int64
}

// Read reads a table from a file in any format that File lists: File{Path: path, Stdin: stdin}.Read().
func Read(path string, stdin io.Reader) (*Table, error) {
	return File{Path: path, Stdin: stdin}.Read()
}

// Read reads the whole file. The first bytes determine the format. The format of a text file follows
// from its name if the name ends in .csv, .json (.jsonl, .ndjson) or .libsvm (.svm, .svmlight), and
// otherwise from its first line. Read returns an error if the contents contradict the name.
//
// Every failure is an *Error, which names the line, the row or the byte offset if there is one. The
// allocated memory is proportional to the number of bytes read, whatever sizes the file states.
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
		t, err := readNPZ(in, f.Arrays)
		if err == nil {
			err = f.readSparseLabels(t)
		}
		if err != nil {
			return nil, err
		}
		return t, nil
	case formMarket:
		t, err := readMarket(in)
		if err == nil {
			err = f.readSparseLabels(t)
		}
		if err != nil {
			return nil, err
		}
		return t, nil
	case formIDX:
		return f.readIDX(in)
	case formLIBSVM:
		return readLIBSVM(in)
	case formParquet:
		return readParquet(in)
	case formArrow:
		return readArrow(in)
	case formJSON:
		return readJSON(in)
	}
	return readCSV(in)
}

type form string

const (
	formCSV     form = "CSV"
	formLIBSVM  form = "LIBSVM"
	formNPY     form = "NPY"
	formNPZ     form = "NPZ"
	formIDX     form = "IDX"
	formParquet form = "Parquet"
	formArrow   form = "Arrow"
	formMarket  form = "Matrix Market"
	formJSON    form = "JSON"
)

// extensions maps the extension of a file name to the format that it implies.
var extensions = map[string]form{
	".csv": formCSV, ".tsv": formCSV, ".libsvm": formLIBSVM, ".svm": formLIBSVM, ".svmlight": formLIBSVM,
	".npy": formNPY, ".npz": formNPZ, ".idx": formIDX, ".parquet": formParquet, ".pq": formParquet, ".mtx": formMarket,
	".arrow": formArrow, ".arrows": formArrow, ".feather": formArrow, ".ipc": formArrow,
	".json": formJSON, ".jsonl": formJSON, ".ndjson": formJSON,
}

// format returns the format of a file, or an error if a field of f is set that has no meaning for this format.
func (f File) format(in *input) (form, error) {
	detected, err := f.detect(in)
	if err != nil {
		return "", err
	}
	for _, option := range []struct {
		set         bool
		description string
		form        form
	}{
		{len(f.Arrays) > 0, "names of arrays are", formNPZ},
		{f.Dialect.Delimiter != "" && f.Labels == "", "a delimiter is", formCSV},
	} {
		if option.set && detected != option.form {
			return "", in.t.newError("", fmt.Sprintf("is %s file; %s for %s files only", article(detected), option.description, option.form))
		}
	}
	if f.Labels != "" && !slices.Contains([]form{formIDX, formNPZ, formMarket}, detected) {
		return "", in.t.newError("", "is "+article(detected)+" file and "+noSparseLabels)
	}
	return detected, nil
}

// detect determines the format of a file from its first bytes and, for text, from its name.
func (f File) detect(in *input) (form, error) {
	name := strings.ToLower(f.Path)
	byExtension := extensions[filepath.Ext(strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst"))]
	head, err := in.r.Peek(4)
	if err != nil && err != io.EOF {
		return "", in.readError(err)
	}
	var detected form
	prefix, _ := in.r.Peek(len(marketMark))
	switch {
	case strings.EqualFold(string(prefix), marketMark):
		detected = formMarket
	case bytes.HasPrefix(head, []byte("\x93NUM")):
		detected = formNPY
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		detected = formNPZ
	case bytes.HasPrefix(head, []byte("PAR1")):
		detected = formParquet
	case bytes.HasPrefix(prefix, arrowMark), bytes.Equal(head, arrowContinues):
		detected = formArrow
	case bytes.HasPrefix(head, []byte("FEA1")):
		return "", in.t.newError("", "is a Feather file of version 1, which is not supported; write it as version 2, which is an Arrow file")
	case len(head) == 4 && head[0] == 0 && head[1] == 0 && head[2] >= 8 && head[2] <= 14 && head[3] > 0:
		detected = formIDX
	}
	switch {
	case detected == "" && (byExtension == formCSV || byExtension == formLIBSVM || byExtension == formJSON):
		return byExtension, nil
	case detected == "" && byExtension != "":
		return "", in.t.newError("", "has the name of "+article(byExtension)+" file but not the signature")
	case detected == "" && looksJSON(in.r):
		return formJSON, nil
	case detected == "" && looksLIBSVM(in.r):
		return formLIBSVM, nil
	case detected == "":
		return formCSV, nil
	case byExtension != "" && byExtension != detected:
		return "", in.t.newError("", "has the name of "+article(byExtension)+" file but the first bytes of "+article(detected)+" file; rename it")
	case in.gzip && (detected == formNPZ || detected == formParquet):
		return "", in.t.newError("", string(detected)+" files have their own compression; unpack the file first")
	}
	return detected, nil
}

// article returns the name of a format after "a " or "an ".
func article(f form) string {
	if slices.Contains([]form{formNPY, formNPZ, formIDX, formArrow}, f) {
		return "an " + string(f)
	}
	return "a " + string(f)
}

// An input is an open file or standard input. Its reader decompresses it.
type input struct {
	t           *Table // has the name of the source for errors
	r           *bufio.Reader
	offset      int64       // offset of the next byte that the method readBytes reads
	size        int64       // total size in bytes, −1 if unknown
	file        *os.File    // the file if it supports ReadAt, otherwise nil
	readerAt    io.ReaderAt // reads the bytes 0 to size − 1 in any order; nil if only r can read them
	gzip        bool        // the input is compressed by gzip or zstd
	zip         bool        // the input is a member of a zip file
	expectedSum uint32      // CRC-32 of the member that the zip file states
	sum         uint32      // computed CRC-32 of the first summed bytes of the member
	summed      int64
	converted   bool // the text was converted from UTF-16
	headerRead  bool // CSV: the header was read separately, so that the next lines do not determine the dialect
	closer      io.Closer

	unpacker *zstd.Decoder // nil unless the file is compressed by zstd

	allowance *allowance
	delimiter byte // the delimiter; 0 means that it will be detected
	comment   byte // the character that begins a comment; 0 means no comments
}

// open opens the file and returns it as an input.
func (f File) open() (*input, error) {
	in := &input{t: &Table{Source: f.Path, keep: f.Keep, reading: f.Dialect.reading()}, size: -1, delimiter: f.Dialect.delimiter(), comment: firstByte(f.Dialect.Comment), allowance: newAllowance(f.Memory)}
	if parameter, rule := f.Dialect.violation(); parameter != "" {
		return nil, in.t.newError("", parameter+": "+rule)
	}
	if f.Path == "-" {
		in.t.Source = "standard input"
		if f.Stdin == nil {
			return nil, in.t.newError("", "cannot be read: no standard input was given")
		}
		return in, in.start(f.Stdin, false)
	}
	source := f.Opened
	var r io.Reader = source
	if source == nil {
		info, err := os.Stat(f.Path)
		if err != nil {
			return nil, in.t.openError(err)
		}
		if info.IsDir() {
			return nil, in.t.newError("", "is a directory; give the name of a file")
		}
		if source, err = os.Open(f.Path); err != nil {
			return nil, in.t.openError(err)
		}
		r, in.closer = source, source
	}
	info, err := source.Stat()
	if err != nil {
		in.close()
		return nil, in.t.openError(err)
	}
	if info.Mode().IsRegular() {
		in.file, in.size, in.readerAt = source, info.Size(), source
		if f.Opened != nil {
			r = io.NewSectionReader(source, 0, info.Size()) // reads do not move the offset of f.Opened
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
	if in.closer != nil {
		in.closer.Close()
	}
}

// bufferSize is the size of a buffer between a file and its reader, in bytes.
const bufferSize = 1 << 16

// start sets in.r to a reader that decompresses gzip and zstd, and converts UTF-16 to UTF-8.
func (in *input) start(r io.Reader, mustBeGzip bool) error {
	if err := in.unpack(r, mustBeGzip); err != nil {
		return err
	}
	return in.decode()
}

// unpack sets in.r to a reader that decompresses gzip and zstd.
func (in *input) unpack(r io.Reader, mustBeGzip bool) error {
	in.r = bufio.NewReaderSize(r, bufferSize)
	magic, _ := in.r.Peek(2) // the next read will return the same error
	if bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in.r)
		if err != nil {
			return in.t.readError(0, err)
		}
		in.r = bufio.NewReaderSize(z, bufferSize)
		in.gzip, in.file, in.readerAt, in.size = true, nil, nil, -1
		return nil
	}
	head, _ := in.r.Peek(6)
	switch {
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(in.r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return in.t.readError(0, err)
		}
		in.r = bufio.NewReaderSize(zstdReader{z}, bufferSize)
		in.gzip, in.file, in.readerAt, in.size = true, nil, nil, -1
		in.unpacker = z
		return nil
	case bytes.HasPrefix(head, []byte("BZh")) && len(head) > 3 && head[3] >= '1' && head[3] <= '9':
		return in.t.newError("", "is compressed by bzip2, which is not supported: unpack it, or use gzip or zstd")
	case bytes.HasPrefix(head, []byte("\xfd7zXZ\x00")):
		return in.t.newError("", "is compressed by xz, which is not supported: unpack it, or use gzip or zstd")
	}
	if mustBeGzip && len(magic) > 0 {
		return in.t.newError("", "is named .gz but does not hold gzip data")
	}
	return nil
}

// A zstdReader gives errors of the compressed data the type zstdError.
type zstdReader struct{ decoder *zstd.Decoder }

type zstdError struct{ error }

func (r zstdReader) Read(p []byte) (int, error) {
	n, err := r.decoder.Read(p)
	if err != nil && err != io.EOF {
		err = zstdError{err}
	}
	return n, err
}

// openError returns the reason why a file cannot be opened, without the file's name.
func (t *Table) openError(err error) *Error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return t.newError("", "no such file")
	}
	return t.newError("", "cannot be opened: "+err.Error())
}
