package modelfile

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
)

// chunk is the number of elements that are turned into bytes, or back, at once.
const chunk = 8192

// layout places the arrays of a model one after the other, by name.
func layout(arrays map[string]backend.Host[float64]) []tensor {
	var list []tensor
	next := int64(0)
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		h := arrays[name]
		t := tensor{name: name, dtype: "F64", shape: []int64{int64(h.Rows), int64(h.Cols)}, begin: next}
		t.end = t.begin + 8*int64(h.Rows)*int64(h.Cols)
		next = t.end
		list = append(list, t)
	}
	return list
}

// writeArrays writes the data of the arrays in the order of list.
func writeArrays(w io.Writer, list []tensor, arrays map[string]backend.Host[float64]) error {
	buffer := make([]byte, 0, 8*chunk)
	for _, t := range list {
		h := arrays[t.name]
		for i := range h.Rows {
			for part := range slices.Chunk(h.Row(i), chunk) {
				if len(buffer)+8*len(part) > cap(buffer) {
					if _, err := w.Write(buffer); err != nil {
						return err
					}
					buffer = buffer[:0]
				}
				for _, v := range part {
					buffer = binary.LittleEndian.AppendUint64(buffer, math.Float64bits(v))
				}
			}
		}
	}
	_, err := w.Write(buffer)
	return err
}

// readArrays reads the arrays from the file, whose data begin at offset, and
// writes their bytes to sum. The sizes have been checked against the file.
func readArrays(r io.ReaderAt, offset int64, list []tensor, sum io.Writer) (map[string]backend.Host[float64], error) {
	arrays := make(map[string]backend.Host[float64], len(list))
	buffer := make([]byte, 8*chunk)
	for _, t := range list {
		if len(t.shape) != 2 {
			return nil, fmt.Errorf("is damaged: array %q has rank %d, not 2", t.name, len(t.shape))
		}
		data := make([]float64, 0, (t.end-t.begin)/8)
		for at := t.begin; at < t.end; {
			part := buffer[:min(int64(len(buffer)), t.end-at)]
			if _, err := r.ReadAt(part, offset+at); err != nil {
				return nil, readError(err)
			}
			if _, err := sum.Write(part); err != nil {
				return nil, err
			}
			at += int64(len(part))
			for ; len(part) > 0; part = part[8:] {
				data = append(data, math.Float64frombits(binary.LittleEndian.Uint64(part)))
			}
		}
		rows, cols := int(t.shape[0]), int(t.shape[1])
		arrays[t.name] = backend.Host[float64]{Rows: rows, Cols: cols, Stride: cols, Data: data}
	}
	return arrays, nil
}

// newChecksum returns a hash that has been told of everything but the data; see
// the package's comment.
func newChecksum(metadata map[string]string, list []tensor) hash.Hash {
	sum := sha256.New() // its Write never fails
	number := func(n int64) {
		sum.Write(binary.LittleEndian.AppendUint64(nil, uint64(n)))
	}
	text := func(s string) {
		number(int64(len(s)))
		io.WriteString(sum, s)
	}
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		if key != "sha256" {
			text(key)
			text(metadata[key])
		}
	}
	byName := slices.SortedFunc(slices.Values(list), func(a, b tensor) int { return cmp.Compare(a.name, b.name) })
	for _, t := range byName {
		text(t.name)
		text(t.dtype)
		number(int64(len(t.shape)))
		for _, n := range t.shape {
			number(n)
		}
	}
	return sum
}
