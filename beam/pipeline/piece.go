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

// Piece is a file, or a part of a CSV file that begins and ends with a line.
type Piece struct {
	Path     string
	From, To int64  // bytes; To is 0 for a whole file
	Header   []byte // of a part: the line with the names
}

// group is the group of fanout in which the sums of the piece are merged.
func (p Piece) group(fanout int) int {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s:%d", p.Path, p.From)
	return int(h.Sum64() % uint64(fanout))
}

// before orders pieces by their places.
func (p Piece) before(o Piece) bool { return p.Path < o.Path || p.Path == o.Path && p.From < o.From }

// pieces expands the globs and cuts the files. Each file is taken once, whatever
// number of globs it matches.
func pieces(ctx context.Context, p Params, emit func(Piece)) error {
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
		if err := cut(ctx, p, path, emit); err != nil {
			return fmt.Errorf("pipeline: %s: %w", path, err)
		}
	}
	return nil
}

// cut emits the pieces of one file.
func cut(ctx context.Context, p Params, path string, emit func(Piece)) error {
	whole := Piece{Path: path}
	if p.WholeFiles || !isPlainCSV(path) {
		emit(whole)
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
	at, ok := f.(io.ReadSeeker)
	if !ok {
		emit(whole)
		return nil
	}
	size, err := at.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if size <= p.PieceBytes {
		emit(whole)
		return nil
	}
	if _, err := at.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r := bufio.NewReader(at)
	if magic, _ := r.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) { // gzip by another name
		emit(whole)
		return nil
	}
	header, err := r.ReadBytes('\n')
	if err != nil {
		emit(whole) // one line: let the reader say what is wrong
		return nil
	}
	for from := int64(len(header)); from < size; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		to, err := lineEnd(at, from+p.PieceBytes, size)
		if err != nil {
			return err
		}
		emit(Piece{Path: path, From: from, To: to, Header: header})
		from = to
	}
	return nil
}

// isPlainCSV tells whether a file of that name may be cut at line ends.
func isPlainCSV(path string) bool { return strings.ToLower(filepath.Ext(path)) == ".csv" }

// lineEnd returns where the line ends that has the byte before at.
func lineEnd(f io.ReadSeeker, at, size int64) (int64, error) {
	if at >= size {
		return size, nil
	}
	if _, err := f.Seek(at-1, io.SeekStart); err != nil {
		return 0, err
	}
	at--
	buf := make([]byte, 1<<12)
	for {
		n, err := f.Read(buf)
		if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 {
			return at + int64(i) + 1, nil
		}
		at += int64(n)
		if errors.Is(err, io.EOF) {
			return size, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// chunk is how much of a part is decoded at once.
const chunk = 4 << 20

// tables calls use with the rows of the piece in their order, as tables whose size
// depends on the piece alone.
func (p Piece) tables(ctx context.Context, use func(t *dataset.Table) error) error {
	var err error
	if p.To > 0 {
		err = p.part(ctx, use)
	} else {
		err = p.file(ctx, use)
	}
	var fault *dataset.Error
	if errors.As(err, &fault) {
		copied := *fault
		copied.Source = p.Path
		if p.To > 0 {
			copied.Source = fmt.Sprintf("the part at byte %d of %s", p.From, p.Path)
		}
		return &copied
	}
	return err
}

// file reads a whole file, of any format.
func (p Piece) file(ctx context.Context, use func(t *dataset.Table) error) error {
	path := p.Path
	if strings.Contains(path, "://") {
		local, err := fetch(ctx, path)
		if err != nil {
			return fmt.Errorf("pipeline: %s: %w", path, err)
		}
		defer os.Remove(local)
		path = local
	}
	s, err := dataset.Open(path)
	if err != nil {
		return err
	}
	return s.Tables(ctx, use)
}

// fetch copies a file to this machine, under a name that ends as it did.
func fetch(ctx context.Context, path string) (string, error) {
	fs, err := filesystem.New(ctx, path)
	if err != nil {
		return "", err
	}
	defer fs.Close()
	in, err := fs.OpenRead(ctx, path)
	if err != nil {
		return "", err
	}
	defer in.Close()
	out, err := os.CreateTemp("", "mercer-beam-*-"+filepath.Base(path))
	if err != nil {
		return "", err
	}
	_, err = io.Copy(out, in)
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err != nil {
		os.Remove(out.Name())
		return "", err
	}
	return out.Name(), nil
}

// part reads a part of a CSV file.
func (p Piece) part(ctx context.Context, use func(t *dataset.Table) error) error {
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
	at, ok := f.(io.Seeker)
	if !ok {
		return fmt.Errorf("pipeline: %s: was cut into parts, but cannot be read from its middle here: set WholeFiles", p.Path)
	}
	if _, err := at.Seek(p.From, io.SeekStart); err != nil {
		return fmt.Errorf("pipeline: %s: %w", p.Path, err)
	}
	r := bufio.NewReaderSize(io.LimitReader(f, p.To-p.From), 1<<16)
	for text := make([]byte, 0, chunk); ; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := io.ReadFull(r, text[:chunk])
		text = text[:n]
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return fmt.Errorf("pipeline: %s: %w", p.Path, err)
		}
		if !ended {
			rest, err := r.ReadBytes('\n')
			if err != nil && !errors.Is(err, io.EOF) {
				return fmt.Errorf("pipeline: %s: %w", p.Path, err)
			}
			text = append(text, rest...)
		}
		if len(text) > 0 {
			t, err := dataset.ReadCSV("-", io.MultiReader(bytes.NewReader(p.Header), bytes.NewReader(text)))
			if err != nil {
				return err
			}
			if t.Rows() > 0 {
				if err := use(t); err != nil {
					return err
				}
			}
		}
		if ended {
			return nil
		}
		text = text[:0]
	}
}
