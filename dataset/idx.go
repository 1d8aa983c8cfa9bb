package dataset

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mercer-go/mercer/internal/count"
)

// An IDX file (LeCun, Cortes and Burges, the MNIST database) consists of two zero bytes, a byte for
// the type of the numbers, a byte for the rank, 4 bytes for each dimension, and the numbers, whose
// last index varies fastest. All numbers are big endian.

// idxTypes maps the byte for the type to the type of the numbers.
var idxTypes = map[byte]dtype{8: u8, 9: i8, 0xb: i16, 0xc: i32, 0xd: f32, 0xe: f64}

// idxHeader holds the header of an IDX file.
type idxHeader struct {
	kind          dtype
	rank          int
	rows, columns int64
}

// readIDX reads the array of the file, usually images, and their labels from a second file.
func (f File) readIDX(in *input) (*Table, error) {
	t := in.t
	h, err := in.idxHeader()
	if err != nil {
		return nil, err
	}
	t.rows = int(h.rows)
	var labels *packed
	if h.rank > 1 { // labels are read first, because their file is smaller
		if labels, err = f.idxLabels(t); err != nil {
			return nil, err
		}
	}
	m, err := in.idxRows(h, h.rows)
	if err != nil {
		return nil, err
	}
	if err := in.end(); err != nil {
		return nil, err
	}
	if h.rank == 1 {
		t.addTargets(labelName, m, 1)
		return t, nil
	}
	t.addFeatures(m, int(h.columns))
	if labels != nil {
		t.addTargets(labelName, labels, 1)
	}
	return t, nil
}

func (in *input) idxHeader() (h idxHeader, err error) {
	head, err := in.readBytes(4, "the header")
	if err != nil {
		return h, err
	}
	kind, ok := idxTypes[head[2]]
	if !ok || head[0] != 0 || head[1] != 0 || head[3] == 0 {
		return h, in.t.newError("", fmt.Sprintf("is not an IDX file: it begins with the bytes %x", head))
	}
	sizes, err := in.readBytes(4*int64(head[3]), "the dimensions")
	if err != nil {
		return h, err
	}
	h = idxHeader{kind: kind, rank: int(head[3]), rows: int64(binary.BigEndian.Uint32(sizes)), columns: 1}
	for i := range h.rank - 1 {
		if h.columns *= int64(binary.BigEndian.Uint32(sizes[4*(i+1):])); h.columns > MaxFeatures {
			break
		}
	}
	if rule := checkShape(h.rows, h.columns); rule != "" {
		return h, in.t.newError("", rule)
	}
	return h, nil
}

// idxRows reads the given number of rows from the current position of the file.
func (in *input) idxRows(h idxHeader, rows int64) (*packed, error) {
	width := int(h.columns) * h.kind.size()
	data, err := in.readBytes(rows*int64(width), count.Of(rows, "row"))
	return &packed{data: data, kind: h.kind, bigEndian: true, byRow: width, byIndex: h.kind.size()}, err
}

// noLabels is the end of the error text about a missing column.
const noLabels = "; no file of labels was found in its folder"

// idxLabels reads the labels of the images of t, or returns nil if there are no labels.
func (f File) idxLabels(t *Table) (*packed, error) {
	path := f.Labels
	if path == "" {
		if path = f.findLabels(); path == "" {
			t.note = noLabels
			return nil, nil
		}
	}
	in, err := File{Path: path, Memory: f.Memory}.open()
	if err != nil {
		return nil, err
	}
	defer in.close()
	h, err := in.idxHeader()
	if err != nil {
		return nil, err
	}
	if h.rank != 1 {
		return nil, in.t.newError("", fmt.Sprintf("has %s; a file of labels has one", count.Of(h.rank, "dimension")))
	}
	if h.rows != int64(t.rows) {
		return nil, in.t.newError("", fmt.Sprintf("has %s, %s has %s", count.Of(h.rows, "label"), t.Source, count.Of(t.rows, "row")))
	}
	m, err := in.idxRows(h, h.rows)
	if err != nil {
		return nil, err
	}
	return m, in.end()
}

// findLabels returns the path of the labels' file, such as train-labels-idx1-ubyte.gz or train-labels-idx1-ubyte
// for train-images-idx3-ubyte.gz, or "" if the file does not exist.
func (f File) findLabels() string {
	dir, name := filepath.Split(f.Path)
	labels := strings.Replace(name, "images", "labels", 1)
	if f.Path == "-" || labels == name {
		return ""
	}
	for _, rank := range []string{"idx2", "idx3", "idx4"} {
		labels = strings.Replace(labels, rank, "idx1", 1)
	}
	bare := strings.TrimSuffix(labels, ".gz")
	for _, candidate := range []string{labels, bare, bare + ".gz"} {
		if info, err := os.Stat(dir + candidate); err == nil && info.Mode().IsRegular() {
			return dir + candidate
		}
	}
	return ""
}
