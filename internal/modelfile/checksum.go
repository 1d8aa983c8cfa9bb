package modelfile

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"
	"maps"
	"slices"

	"github.com/mercer-go/mercer/internal/safetensors"
)

// newChecksum returns a hash of everything except the data of the arrays: see the package comment.
func newChecksum(metadata map[string]string, list []safetensors.Tensor) hash.Hash {
	sum := sha256.New() // writing to a hash never fails
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
	byName := slices.SortedFunc(slices.Values(list), func(a, b safetensors.Tensor) int { return cmp.Compare(a.Name, b.Name) })
	for _, t := range byName {
		text(t.Name)
		text(t.Dtype)
		number(int64(len(t.Shape)))
		for _, n := range t.Shape {
			number(n)
		}
	}
	return sum
}
