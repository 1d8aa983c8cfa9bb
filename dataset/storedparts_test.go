package dataset

import (
	"bufio"
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"testing"
)

// A faultyDisk reads from data. Reading the byte at offset fails is an error.
type faultyDisk struct {
	data  []byte
	fails int64
}

var errDisk = errors.New("the disk is on fire")

func (d faultyDisk) ReadAt(p []byte, offset int64) (int, error) {
	if end := offset + int64(len(p)); offset <= d.fails && d.fails < end {
		return copy(p, d.data[offset:d.fails]), errDisk
	}
	return copy(p, d.data[offset:]), nil
}

// TestStoredPartsAreReadConcurrently checks that readStored returns the bytes and computes their checksum, and that an
// error of the disk contains its offset.
func TestStoredPartsAreReadConcurrently(t *testing.T) {
	const begin, size = 80, 8<<20 + 5
	data := make([]byte, begin+size)
	for i := range data {
		data[i] = byte(i * i >> 7)
	}
	for _, zip := range []bool{false, true} {
		for _, fails := range []int64{-1, begin, begin + storedBytes + 7, begin + 5*storedBytes - 1, begin + size - 1} {
			disk := faultyDisk{data, fails}
			in := &input{t: &Table{Source: "f"}, readerAt: disk, size: begin + size, zip: zip, offset: begin, r: bufio.NewReader(bytes.NewReader(nil))}
			got, err := in.readStored(size)
			var e *Error
			switch {
			case fails < 0 && (err != nil || !bytes.Equal(got, data[begin:])):
				t.Fatalf("zip %v: %v, or other bytes", zip, err)
			case fails < 0 && zip && in.sum != crc32.ChecksumIEEE(data):
				t.Errorf("the checksum is %x, want %x", in.sum, crc32.ChecksumIEEE(data))
			case fails >= 0 && (!errors.As(err, &e) || e.Offset != fails):
				t.Errorf("zip %v: the disk fails at offset %d: %v", zip, fails, err)
			}
		}
	}
	in := &input{t: &Table{Source: "f"}, readerAt: faultyDisk{data, -1}, size: begin + size, zip: true, offset: begin, r: bufio.NewReader(bytes.NewReader(nil))}
	if _, err := in.readStored(size); err != nil {
		t.Fatal(err)
	}
	if _, err := in.r.Peek(1); err != io.EOF {
		t.Fatal(err)
	}
	for sum, want := range map[uint32]bool{0: true, in.sum: true, in.sum + 1: false} {
		if in.expectedSum = sum; (in.end() == nil) != want {
			t.Errorf("the zip file gives the checksum %x, the bytes have %x: %v", sum, in.sum, in.end())
		}
	}
}
