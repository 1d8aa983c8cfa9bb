package pipeline

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"

	"github.com/mercer-go/mercer/dataset"
)

// filePiece is a file, or a part of a text file that consists of whole lines.
type filePiece struct {
	Path     string
	Number   int    // index of the piece, counted from 0 in the order of paths and offsets
	From, To int64  // byte offsets in the file; To is 0 for a whole file
	Header   []byte // for a part of a CSV file: the first lines of the file, up to the column names; empty for LIBSVM
	Dialect  dataset.Dialect
}

// group returns the group, out of fanout, in which the sums of the piece are merged.
func (p filePiece) group() int {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s:%d", p.Path, p.From)
	return int(h.Sum64() % uint64(fanout))
}

// pieces expands the globs and splits the files. A file that matches several globs is used once.
func pieces(ctx context.Context, p Params, emit func(filePiece)) error {
	var paths []string
	for _, glob := range p.Inputs {
		fs, err := filesystem.New(ctx, glob)
		if err != nil {
			return fmt.Errorf("pipeline: %s: %w", glob, err)
		}
		list, err := fs.List(ctx, glob)
		fs.Close()
		if err != nil {
			return fmt.Errorf("pipeline: %s: %w", glob, err)
		}
		if len(list) == 0 {
			return fmt.Errorf("pipeline: %s: there is no such file", glob)
		}
		paths = append(paths, list...)
	}
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		if err := splitFile(ctx, p, path, emit); err != nil {
			return fmt.Errorf("pipeline: %s: %w", path, err)
		}
	}
	return nil
}

// splitFile emits the pieces of one file.
func splitFile(ctx context.Context, p Params, path string, emit func(filePiece)) error {
	wholeFile := filePiece{Path: path, Dialect: p.Dialect}
	text := textOf(path)
	if p.WholeFiles || text == "" {
		emit(wholeFile)
		return nil
	}
	fs, err := filesystem.New(ctx, path)
	if err != nil {
		return err
	}
	defer fs.Close()
	f, err := fs.OpenRead(ctx, path)
	if err != nil {
		return err
	}
	defer f.Close()
	seeker, ok := f.(io.ReadSeeker)
	if !ok {
		emit(wholeFile)
		return nil
	}
	size, err := seeker.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if size <= p.PieceBytes {
		emit(wholeFile)
		return nil
	}
	if _, err := seeker.Seek(0, io.SeekStart); err != nil {
		return err
	}
	begin, _ := bufio.NewReaderSize(seeker, headBytes).Peek(headBytes)
	if bytes.HasPrefix(begin, []byte{0x1f, 0x8b}) { // a gzip file whose name does not end in .gz
		emit(wholeFile)
		return nil
	}
	var header []byte
	dialect := p.Dialect
	if text == csvText {
		var ok bool
		if header, dialect, ok = p.Dialect.Header(begin); !ok {
			emit(wholeFile) // the reader will report any error
			return nil
		}
	}
	for from := int64(len(header)); from < size; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		to, err := lineEnd(seeker, from+p.PieceBytes, size)
		if err != nil {
			return err
		}
		emit(filePiece{Path: path, From: from, To: to, Header: header, Dialect: dialect})
		from = to
	}
	return nil
}

// headBytes is the number of bytes at the beginning of a file that are searched for its header.
const headBytes = 1 << 20

const (
	csvText    = "CSV"
	libsvmText = "LIBSVM"
)

// textOf returns the text format that the name of a file indicates if the file may be split at line ends, otherwise "".
func textOf(path string) string {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".csv":
		return csvText
	case ".libsvm", ".svm", ".svmlight":
		return libsvmText
	}
	return ""
}

// lineEnd returns the end of the line that contains the byte before the given offset.
func lineEnd(f io.ReadSeeker, offset, size int64) (int64, error) {
	if offset >= size {
		return size, nil
	}
	if _, err := f.Seek(offset-1, io.SeekStart); err != nil {
		return 0, err
	}
	offset--
	buf := make([]byte, 1<<12)
	for {
		n, err := f.Read(buf)
		if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 {
			return offset + int64(i) + 1, nil
		}
		offset += int64(n)
		if errors.Is(err, io.EOF) {
			return size, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// chunkBytes is the number of bytes of a part that are decoded at once. Decoded LIBSVM rows are larger, because they
// contain the zeros.
func (p filePiece) chunkBytes() int {
	if p.Header == nil {
		return 1 << 20
	}
	return 4 << 20
}

// tables calls the function use with the rows of the piece in order, as a sequence of tables whose sizes depend only on
// the piece. The argument from is the byte offset in the file of line 1 of each table.
func (p filePiece) tables(ctx context.Context, use func(t *dataset.Table, from int64) error) error {
	if p.To > 0 {
		return p.partTables(ctx, use)
	}
	return p.file(ctx, use)
}

func (p filePiece) file(ctx context.Context, use func(t *dataset.Table, from int64) error) error {
	f := dataset.File{Path: p.Path, Dialect: p.Dialect}
	if strings.Contains(p.Path, "://") {
		local, cleanup, err := fetch(ctx, p.Path)
		if err != nil {
			return fmt.Errorf("pipeline: %s: %w", p.Path, err)
		}
		defer cleanup()
		f.Opened = local
	}
	s, err := f.Open()
	if err != nil {
		return err
	}
	return s.Tables(ctx, func(t *dataset.Table) error { return use(t, 0) })
}

// fetch copies a file to this machine. The copy has no name: the system deletes it when it is closed or the process
// ends.
func fetch(ctx context.Context, path string) (localCopy *os.File, cleanup func(), err error) {
	fs, err := filesystem.New(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	defer fs.Close()
	in, err := fs.OpenRead(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	out, err := os.CreateTemp("", "mercer-beam-*")
	if err != nil {
		return nil, nil, err
	}
	mustRemove := os.Remove(out.Name()) != nil // this operating system cannot remove an open file
	cleanup = func() {
		out.Close()
		if mustRemove {
			os.Remove(out.Name())
		}
	}
	if _, err := io.Copy(out, in); err != nil {
		cleanup()
		return nil, nil, err
	}
	return out, cleanup, nil
}

func (p filePiece) partTables(ctx context.Context, use func(t *dataset.Table, from int64) error) error {
	fs, err := filesystem.New(ctx, p.Path)
	if err != nil {
		return fmt.Errorf("pipeline: %s: %w", p.Path, err)
	}
	defer fs.Close()
	f, err := fs.OpenRead(ctx, p.Path)
	if err != nil {
		return fmt.Errorf("pipeline: %s: %w", p.Path, err)
	}
	defer f.Close()
	seeker, ok := f.(io.Seeker)
	if !ok {
		return fmt.Errorf("pipeline: %s: the file was cut into parts, but this file system can read it only from the beginning: set WholeFiles", p.Path)
	}
	if _, err := seeker.Seek(p.From, io.SeekStart); err != nil {
		return fmt.Errorf("pipeline: %s: %w", p.Path, err)
	}
	r := bufio.NewReaderSize(io.LimitReader(f, p.To-p.From), 1<<16)
	from := p.From
	size := p.chunkBytes()
	for text := make([]byte, 0, size); ; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := io.ReadFull(r, text[:size])
		text = text[:n]
		atEnd := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !atEnd {
			return fmt.Errorf("pipeline: %s: %w", p.Path, err)
		}
		if !atEnd {
			line, err := r.ReadBytes('\n')
			if err != nil && !errors.Is(err, io.EOF) {
				return fmt.Errorf("pipeline: %s: %w", p.Path, err)
			}
			text = append(text, line...)
		}
		t, err := p.chunk(text)
		if err == nil && t != nil {
			t.Source = p.Path
			err = use(t, from)
		}
		if err != nil {
			return withFileLine(ctx, err, p.Path, from)
		}
		if atEnd {
			return nil
		}
		from += int64(len(text))
		text = text[:0]
	}
}

// chunk parses text, a range of lines of a part. The table is nil if text contains no row.
func (p filePiece) chunk(text []byte) (t *dataset.Table, err error) {
	switch {
	case p.Header != nil:
		t, err = p.Dialect.ReadLines(p.Header, bytes.NewReader(text))
	case hasRow(text):
		t, err = dataset.ReadLIBSVM("-", bytes.NewReader(text))
	}
	if err != nil || t != nil && t.Rows() == 0 {
		return nil, err
	}
	return t, nil
}

// hasRow reports whether some line of a LIBSVM file is neither empty nor a comment.
func hasRow(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return true
		}
	}
	return false
}

// withFileLine returns err with the line number in the whole file: it adds the number of lines before the byte
// offset from. If these lines cannot be counted, the new message gives the line and the byte.
func withFileLine(ctx context.Context, err error, path string, from int64) error {
	var dataErr *dataset.Error
	if !errors.As(err, &dataErr) {
		return err
	}
	located := *dataErr
	located.Source, located.Offset = path, 0
	if located.Line > 0 && from > 0 {
		if lines, err := linesBefore(ctx, path, from); err == nil {
			located.Line += lines
		} else {
			located.Source, located.Line = fmt.Sprintf("%s, line %d from byte %d on", path, located.Line, from+1), 0
		}
	}
	return &located
}

// linesBefore counts the lines of the file before a byte.
func linesBefore(ctx context.Context, path string, to int64) (int, error) {
	fs, err := filesystem.New(ctx, path)
	if err != nil {
		return 0, err
	}
	defer fs.Close()
	f, err := fs.OpenRead(ctx, path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines, buf := 0, make([]byte, 1<<16)
	for to > 0 {
		n, err := f.Read(buf[:min(int64(len(buf)), to)])
		lines += bytes.Count(buf[:n], []byte{'\n'})
		if to -= int64(n); err != nil && to > 0 {
			return 0, err
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
	}
	return lines, nil
}
