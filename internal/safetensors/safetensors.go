// Package safetensors reads and writes files of the public format safetensors of Hugging Face. A file consists of
// the length of the header in 8 bytes, little endian; a JSON header, which describes the arrays and maps metadata
// keys to texts; and the data. All arrays have the type F64.
package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mercer-go/mercer/host"
)

// These are the limits of the safetensors format.
const (
	lengthBytes = 8           // the length of the header, little endian
	maxHeader   = 100_000_000 // maximum length of the header in bytes, as in the reference implementation
	metadataKey = "__metadata__"
)

// Tensor describes one array. Its data are the bytes Begin … End − 1 of the file after the header.
type Tensor struct {
	Name       string
	Dtype      string
	Shape      []int64
	Begin, End int64
}

// Header is a parsed header.
type Header struct {
	Metadata map[string]string
	Data     int64    // offset of the data in the file
	infos    []member // the tensors, not parsed yet
}

// member is one entry of a JSON object.
type member struct {
	key   string
	value json.RawMessage
}

// errNotSafetensors is the error for a file of another format.
var errNotSafetensors = errors.New("is not a model file: it does not begin as a safetensors file does")

// ReadHeader reads the header of a file of size bytes. The header must be inside the file.
// ReadHeader allocates at most a small multiple of the size of the header.
func ReadHeader(r io.ReaderAt, size int64) (*Header, error) {
	if size == 0 {
		return nil, errors.New("is empty")
	}
	var first [lengthBytes + 1]byte
	if n, err := r.ReadAt(first[:], 0); n < len(first) {
		if err == io.EOF {
			return nil, fmt.Errorf("is truncated: %d bytes are too few for a model file", size)
		}
		return nil, err
	}
	length := binary.LittleEndian.Uint64(first[:])
	if first[lengthBytes] != '{' || length > maxHeader {
		return nil, errNotSafetensors
	}
	if remaining := uint64(size - lengthBytes); length > remaining {
		return nil, fmt.Errorf("is truncated: its header has %d bytes, of which the file contains %d", length, remaining)
	}
	text := make([]byte, length)
	if _, err := r.ReadAt(text, lengthBytes); err != nil {
		return nil, readError(err)
	}
	if !utf8.Valid(text) {
		return nil, errors.New("is damaged: its header is not UTF-8")
	}
	members, err := parseObject(text)
	if err != nil {
		return nil, fmt.Errorf("is damaged: its header: %w", err)
	}
	h := &Header{Data: lengthBytes + int64(length)}
	for _, m := range members {
		if m.key != metadataKey {
			h.infos = append(h.infos, m)
			continue
		}
		if h.Metadata, err = metadataOf(m.value); err != nil {
			return nil, fmt.Errorf("is damaged: its metadata: %w", err)
		}
	}
	return h, nil
}

// readError returns the error for a failed read. A file that ends too early was shortened meanwhile.
func readError(err error) error {
	if err == io.EOF {
		return errors.New("is truncated")
	}
	return err
}

func metadataOf(text []byte) (map[string]string, error) {
	members, err := parseObject(text)
	if err != nil {
		return nil, err
	}
	metadata := make(map[string]string, len(members))
	for _, m := range members {
		if m.value[0] != '"' {
			return nil, fmt.Errorf("%q is not a string", m.key)
		}
		var v string
		if err := json.Unmarshal(m.value, &v); err != nil {
			return nil, err
		}
		metadata[m.key] = v
	}
	return metadata, nil
}

// parseObject splits a JSON object into its entries, in order, and refuses repeated keys.
func parseObject(text []byte) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("a JSON object was expected")
	}
	var members []member
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, jsonError(err)
		}
		key := t.(string) // the decoder ensures that the token is a string
		if seen[key] {
			return nil, fmt.Errorf("%q occurs twice", key)
		}
		seen[key] = true
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, jsonError(err)
		}
		members = append(members, member{key, value})
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return nil, jsonError(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("there is text after the JSON object")
	}
	return members, nil
}

func jsonError(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errors.New("the JSON ends too early")
	}
	return err
}

// Tensors parses and checks the descriptions. All arrays must be float64, their lengths must match
// their shapes, and they must fill the size bytes of data consecutively.
func (h *Header) Tensors(size int64) ([]Tensor, error) {
	list := make([]Tensor, 0, len(h.infos))
	for _, m := range h.infos {
		t, err := tensorOf(m)
		if err != nil {
			return nil, fmt.Errorf("is damaged: array %q: %w", m.key, err)
		}
		list = append(list, t)
	}
	// At equal offsets, an array without elements precedes an array with elements.
	slices.SortFunc(list, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End))
	})
	next := int64(0)
	for _, t := range list {
		if t.Begin != next {
			return nil, fmt.Errorf("is damaged: array %q begins at byte %d of the data, not at %d", t.Name, t.Begin, next)
		}
		next = t.End
	}
	if next != size {
		return nil, fmt.Errorf("is truncated or damaged: it has %d bytes of data, but its header describes %d", size, next)
	}
	return list, nil
}

func tensorOf(m member) (Tensor, error) {
	t := Tensor{Name: m.key}
	fields, err := parseObject(m.value)
	if err != nil {
		return t, err
	}
	var offsets []int64
	for _, f := range fields {
		switch f.key {
		case "dtype":
			if err = json.Unmarshal(f.value, &t.Dtype); err != nil || t.Dtype != "F64" {
				return t, fmt.Errorf("its type is %s, but only F64 can be read", f.value)
			}
		case "shape":
			t.Shape, err = integers(f.value)
		case "data_offsets":
			offsets, err = integers(f.value)
		default:
			err = fmt.Errorf("%q is unknown", f.key)
		}
		if err != nil {
			return t, err
		}
	}
	if t.Dtype == "" || t.Shape == nil || len(offsets) != 2 {
		return t, errors.New("dtype, shape or data_offsets is missing or incomplete")
	}
	t.Begin, t.End = offsets[0], offsets[1]
	size := uint64(8)
	for _, n := range t.Shape {
		hi, lo := bits.Mul64(size, uint64(n))
		if hi != 0 {
			return t, errors.New("the product of its dimensions overflows")
		}
		size = lo
	}
	if t.End < t.Begin || uint64(t.End-t.Begin) != size {
		return t, fmt.Errorf("its shape needs %d bytes, but its offsets are %d and %d", size, t.Begin, t.End)
	}
	return t, nil
}

// integers reads a JSON array of integers ≥ 0. The result is not nil.
func integers(text json.RawMessage) ([]int64, error) {
	var pointers []*int64 // pointers, because a JSON null would be decoded to 0 in an int64
	if err := json.Unmarshal(text, &pointers); err != nil || text[0] != '[' {
		return nil, errors.New("an array of integers was expected")
	}
	list := make([]int64, len(pointers))
	for i, p := range pointers {
		if p == nil || *p < 0 {
			return nil, errors.New("an array of integers ≥ 0 was expected")
		}
		list[i] = *p
	}
	return list, nil
}

// MarshalHeader returns the length of the header and the header, which ends in spaces so that the data are aligned.
func MarshalHeader(metadata map[string]string, list []Tensor) ([]byte, error) {
	type info struct {
		Dtype   string   `json:"dtype"`
		Shape   []int64  `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}
	header := map[string]any{metadataKey: metadata}
	for _, t := range list {
		header[t.Name] = info{t.Dtype, t.Shape, [2]int64{t.Begin, t.End}}
	}
	text, err := Marshal(header)
	if err != nil {
		return nil, err
	}
	if pad := len(text) % lengthBytes; pad != 0 {
		text += strings.Repeat(" ", lengthBytes-pad)
	}
	if len(text) > maxHeader {
		return nil, fmt.Errorf("the parameters and the encoder take %d bytes, more than the %d that the format allows", len(text), maxHeader)
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), nil
}

// Marshal returns v as JSON with sorted keys. It does not escape <, > and &.
func Marshal(v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// chunk is the number of elements that are converted to or from bytes at a time.
const chunk = 8192

// Layout returns the tensors of the arrays of a model. The data are consecutive, in the order of the names.
func Layout(arrays map[string]host.Matrix[float64]) []Tensor {
	var list []Tensor
	next := int64(0)
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		h := arrays[name]
		t := Tensor{Name: name, Dtype: "F64", Shape: []int64{int64(h.Rows), int64(h.Cols)}, Begin: next}
		t.End = t.Begin + 8*int64(h.Rows)*int64(h.Cols)
		next = t.End
		list = append(list, t)
	}
	return list
}

// WriteArrays writes the data of the arrays in the order of list.
func WriteArrays(w io.Writer, list []Tensor, arrays map[string]host.Matrix[float64]) error {
	buffer := make([]byte, 0, 8*chunk)
	for _, t := range list {
		h := arrays[t.Name]
		for i := range h.Rows {
			for values := range slices.Chunk(h.Row(i), chunk) {
				if len(buffer)+8*len(values) > cap(buffer) {
					if _, err := w.Write(buffer); err != nil {
						return err
					}
					buffer = buffer[:0]
				}
				for _, v := range values {
					buffer = binary.LittleEndian.AppendUint64(buffer, math.Float64bits(v))
				}
			}
		}
	}
	_, err := w.Write(buffer)
	return err
}

// ReadArrays reads the arrays in list and writes their bytes to sum. The data begin at offset in
// the file. The caller must have compared the sizes with the size of the file.
func ReadArrays(r io.ReaderAt, offset int64, list []Tensor, sum io.Writer) (map[string]host.Matrix[float64], error) {
	arrays := make(map[string]host.Matrix[float64], len(list))
	buffer := make([]byte, 8*chunk)
	for _, t := range list {
		if len(t.Shape) != 2 {
			return nil, fmt.Errorf("is damaged: array %q has rank %d, not 2", t.Name, len(t.Shape))
		}
		data := make([]float64, 0, (t.End-t.Begin)/8)
		for pos := t.Begin; pos < t.End; {
			block := buffer[:min(int64(len(buffer)), t.End-pos)]
			if _, err := r.ReadAt(block, offset+pos); err != nil {
				return nil, readError(err)
			}
			if _, err := sum.Write(block); err != nil {
				return nil, err
			}
			pos += int64(len(block))
			for ; len(block) > 0; block = block[8:] {
				data = append(data, math.Float64frombits(binary.LittleEndian.Uint64(block)))
			}
		}
		rows, cols := int(t.Shape[0]), int(t.Shape[1])
		arrays[t.Name] = host.Matrix[float64]{Rows: rows, Cols: cols, Stride: cols, Data: data}
	}
	return arrays, nil
}
