package sums

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Sums holds sums over a set of rows, each as a pair of float64. The zero value holds no rows.
type Sums struct {
	Rows int64 // number of rows
	high []float64
	low  []float64
}

// NewSums returns count sums over an empty set of rows.
func NewSums(count int) *Sums {
	return &Sums{high: make([]float64, count), low: make([]float64, count)}
}

// Triangle returns the number of entries of a q×q triangle.
func Triangle(q int) int { return q * (q + 1) / 2 }

// packedIndex returns the index of entry (i, j), j ≤ i, in a triangle packed by rows.
func packedIndex(i, j int) int { return i*(i+1)/2 + j }

// Len returns the number of sums.
func (s *Sums) Len() int { return len(s.high) }

// Value returns sum i rounded to one float64.
func (s *Sums) Value(i int) float64 { return s.high[i] }

// Add adds v to sum i.
func (s *Sums) Add(i int, v float64) {
	s.high[i], s.low[i] = addOne(s.high[i], s.low[i], v)
}

// Merge adds o, the sums of other rows, to s and does not change o. It returns an error if the numbers of sums differ.
func (s *Sums) Merge(o *Sums) error {
	if o.Len() == 0 && o.Rows == 0 {
		return nil
	}
	if s.Len() == 0 && s.Rows == 0 {
		s.Rows, s.high, s.low = o.Rows, slices.Clone(o.high), slices.Clone(o.low)
		return nil
	}
	if s.Len() != o.Len() {
		return fmt.Errorf("sums: %d sums cannot be merged with %d sums: they belong to different equations", s.Len(), o.Len())
	}
	s.Rows += o.Rows
	for i, v := range o.high {
		s.high[i], s.low[i] = add(s.high[i], s.low[i], v, o.low[i])
	}
	return nil
}

// Clone returns a copy of s.
func (s *Sums) Clone() *Sums {
	return &Sums{Rows: s.Rows, high: slices.Clone(s.high), low: slices.Clone(s.low)}
}

// Bytes returns the length of the encoding of count sums.
func Bytes(count int) int64 { return 16 + 16*int64(count) }

// MarshalBinary returns the number of rows, the number of sums, the high parts and the low parts:
// Bytes(s.Len()) bytes, little endian.
func (s *Sums) MarshalBinary() ([]byte, error) {
	b := make([]byte, 0, Bytes(s.Len()))
	b = binary.LittleEndian.AppendUint64(b, uint64(s.Rows))
	b = binary.LittleEndian.AppendUint64(b, uint64(s.Len()))
	for _, list := range [][]float64{s.high, s.low} {
		for _, v := range list {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
	}
	return b, nil
}

// UnmarshalBinary decodes the output of MarshalBinary.
func (s *Sums) UnmarshalBinary(b []byte) error {
	if len(b) < 16 {
		return errors.New("sums: the encoding is truncated")
	}
	rows, count := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	if rows > math.MaxInt64 || count != uint64(len(b)-16)/16 || (len(b)-16)%16 != 0 {
		return fmt.Errorf("sums: %d bytes do not hold %d sums", len(b), count)
	}
	b = b[16:]
	read := func() []float64 {
		list := make([]float64, count)
		for i := range list {
			list[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		}
		b = b[8*count:]
		return list
	}
	s.Rows = int64(rows)
	s.high = read()
	s.low = read()
	return nil
}
