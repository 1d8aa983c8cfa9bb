package safetensors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
)

// file returns a file with the given header and the given number of bytes of data.
func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

// metadata is the beginning of a header.
const metadata = `{"__metadata__":{"format":"mercer","version":"1"}`

// FuzzHeader fuzzes the header without a checksum.
func FuzzHeader(f *testing.F) {
	f.Add(metadata+`,"w":{"dtype":"F64","shape":[1,1],"data_offsets":[0,8]}}`, 8)
	f.Add(metadata+`,"v":{"dtype":"F64","shape":[0,1],"data_offsets":[0,0]},"w":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}`, 8)
	f.Add(`{"__metadata__":{},"a":{"dtype":"F64","shape":[],"data_offsets":[0,8]}} `, 8)
	f.Fuzz(func(t *testing.T, text string, size int) {
		data := file(text, max(0, min(size, 1<<16)))
		h, err := ReadHeader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		dataSize := int64(len(data)) - h.Data
		list, err := h.Tensors(dataSize)
		if err != nil {
			return
		}
		var sum int64
		for _, a := range list {
			size := int64(8)
			for _, n := range a.Shape {
				size *= n
			}
			if a.Begin != sum || a.End-a.Begin != size {
				t.Errorf("array %+v does not begin at %d or does not need %d bytes", a, sum, size)
			}
			sum = a.End
		}
		if sum != dataSize {
			t.Errorf("the arrays fill %d bytes of %d", sum, dataSize)
		}
		if got := fmt.Sprint(len(list)); got != fmt.Sprint(len(h.infos)) {
			t.Errorf("%s arrays of %d", got, len(h.infos))
		}
	})
}
