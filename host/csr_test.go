package host_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/host"
)

// randomCSR returns a matrix with gaps between its rows, and the same matrix as a CSR without zeros. The argument
// density is the share of elements that are not 0. Some elements are NaN or Inf.
func randomCSR(rng *rand.Rand, rows, cols int, density float64) (host.Matrix[float64], host.CSR[float64]) {
	m := host.Matrix[float64]{Rows: rows, Cols: cols, Stride: cols + 3, Data: make([]float64, rows*(cols+3))}
	for i := range m.Data {
		m.Data[i] = math.NaN()
	}
	for i := range rows {
		row := m.Row(i)
		for j := range row {
			row[j] = 0
			if rng.Float64() < density {
				row[j] = []float64{rng.NormFloat64(), math.Inf(1), math.NaN()}[rng.IntN(20)/18]
			}
		}
	}
	return m, m.CSR()
}

// checkEqual requires that two matrices have the same elements, bit for bit.
func checkEqual(t *testing.T, name string, got, want mat.Matrix) {
	t.Helper()
	r, c := want.Dims()
	if gr, gc := got.Dims(); gr != r || gc != c {
		t.Fatalf("%s is %d×%d, not %d×%d", name, gr, gc, r, c)
	}
	for i := range r {
		for j := range c {
			if math.Float64bits(got.At(i, j)) != math.Float64bits(want.At(i, j)) {
				t.Fatalf("%s: element (%d, %d) is %v, not %v", name, i, j, got.At(i, j), want.At(i, j))
			}
		}
	}
}

func TestCSRIsItsDenseMatrix(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, shape := range [][2]int{{0, 0}, {0, 5}, {5, 0}, {1, 1}, {1, 9}, {9, 1}, {7, 12}, {40, 33}} {
		for _, density := range []float64{0, 0.05, 0.5, 1} {
			rows, cols := shape[0], shape[1]
			dense, m := randomCSR(rng, rows, cols, density)
			if err := m.Check(); err != nil {
				t.Fatal(err)
			}
			checkEqual(t, "the CSR", m, dense)
			restored := host.New[float64](rows, cols)
			for i := range restored.Data {
				restored.Data[i] = 7
			}
			m.DenseTo(restored)
			checkEqual(t, "DenseTo", restored, dense)

			columns := m.Transposed()
			if err := columns.Check(); err != nil {
				t.Fatal(err)
			}
			checkEqual(t, "Transposed", columns, dense.T())
			checkEqual(t, "Transposed twice", columns.Transposed(), dense)
			checkEqual(t, "T", m.T(), dense.T())

			i := rng.IntN(rows + 1)
			k := i + rng.IntN(rows-i+1)
			rowRange := m.SliceRows(i, k)
			if err := rowRange.Check(); err != nil {
				t.Fatal(err)
			}
			checkEqual(t, "SliceRows", rowRange, dense.View(i, 0, k-i, cols))
			checkEqual(t, "Transposed of SliceRows", rowRange.Transposed(), dense.View(i, 0, k-i, cols).T())

			nonzeros := 0
			for i := range rows {
				for _, v := range dense.Row(i) {
					if v != 0 {
						nonzeros++
					}
				}
			}
			density := 0.0
			if rows*cols > 0 {
				density = float64(nonzeros) / float64(rows*cols)
			}
			if m.NNZ() != nonzeros || m.Density() != density {
				t.Fatalf("%d elements, density %v; %d and %v are right", m.NNZ(), m.Density(), nonzeros, density)
			}
		}
	}
}

func TestTransposedTwiceSortsRows(t *testing.T) {
	m := host.CSR[float32]{Rows: 2, Cols: 5, Indptr: []int{0, 3, 5}, Indices: []int32{4, 0, 2, 3, 1}, Data: []float32{4, 0, 2, 3, 1}}
	got := m.Transposed().Transposed()
	want := host.CSR[float32]{Rows: 2, Cols: 5, Indptr: []int{0, 3, 5}, Indices: []int32{0, 2, 4, 1, 3}, Data: []float32{0, 2, 4, 1, 3}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}

// TestForgedCSRIsAnError passes matrices that violate one rule each to NewCSR and Check.
func TestForgedCSRIsAnError(t *testing.T) {
	const maxInt64 = math.MaxInt64
	data := []float64{1, 2, 3, 4}
	for _, c := range []struct {
		rows, cols      int
		indptr, indices []int64
		text            string
	}{
		{2, 3, []int64{0, 2, 4}, []int64{0, 2, 0, 2}, ""},
		{2, 3, []int64{0, 0, 4}, []int64{0, 1, 2, 2}, "row 2: column 3 appears twice"},
		{2, 3, []int64{0, 2, 4}, []int64{0, 2, 2, 1}, "row 2: column 2 comes after column 3"},
		{2, 3, []int64{0, 2, 4}, []int64{0, 3, 0, 1}, "row 1: the column index of element 2 is not from 1 to 3"},
		{2, 3, []int64{0, 2, 4}, []int64{-1, 1, 0, 1}, "row 1: the column index of element 1 is not"},
		{2, 3, []int64{0, 2, 4}, []int64{0, 1, 0, 1 << 32}, "row 2: the column index of element 2 is not"},
		{2, 3, []int64{0, 2, 4}, []int64{0, 1, 0, -1 << 32}, "row 2: the column index of element 2 is not"},
		{2, 3, []int64{0, 5, 4}, []int64{0, 1, 0, 1}, "row 1 goes from element 0 to element 5"},
		{3, 3, []int64{0, 2, 1, 4}, []int64{0, 1, 0, 1}, "row 2 goes from element 2 to element 1"},
		{3, 3, []int64{0, 2, -1, 4}, []int64{0, 1, 0, 1}, "row 2 goes from element 2 to element -1"},
		{2, 3, []int64{0, maxInt64, 4}, []int64{0, 1, 0, 1}, "row 1 goes from element 0 to element 9223372036854775807"},
		{2, 3, []int64{1, 2, 4}, []int64{0, 1, 0, 1}, "the row pointers go from 1 to 4, not from 0 to 4"},
		{2, 3, []int64{0, 2, 3}, []int64{0, 1, 0, 1}, "the row pointers go from 0 to 3, not from 0 to 4"},
		{2, 3, []int64{0, 2, 4}, []int64{0, 1, 0}, "3 column indices for 4 values"},
		{2, 3, []int64{0, 4}, []int64{0, 1, 0, 1}, "2 row pointers for 2 rows"},
		{2, 3, nil, []int64{0, 1, 0, 1}, "0 row pointers for 2 rows"},
		{0, 3, nil, nil, "0 row pointers for 0 rows"},
		{-1, 3, nil, nil, "a -1×3 matrix"},
		{1, -3, []int64{0, 4}, []int64{0, 1, 2, 3}, "a 1×-3 matrix"},
		{maxInt64, 3, []int64{0, 4}, []int64{0, 1, 2, 3}, "each dimension must be from 0 to 2147483647"},
		{1, 1 << 31, []int64{0, 4}, []int64{0, 1, 2, 3}, "each dimension must be from 0 to 2147483647"},
	} {
		values := data
		if c.indices == nil {
			values = nil
		}
		m, err := host.NewCSR(c.rows, c.cols, c.indptr, c.indices, values)
		if c.text == "" {
			if err != nil {
				t.Errorf("%v", err)
			} else if err := m.Check(); err != nil {
				t.Errorf("%v", err)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v does not contain %q", err, c.text)
		}
	}
	if err := (host.CSR[float64]{}).Check(); err == nil {
		t.Error("a CSR without row pointers passes Check")
	}
	if err := (host.CSR[float64]{Rows: 1, Cols: 1, Indptr: []int{-1, 0}, Indices: []int32{0}, Data: data[:1]}).Check(); err == nil {
		t.Error("a row that begins before the first element passes Check")
	}
}

// FuzzNewCSR checks that NewCSR never panics, and that a matrix that passes Check has readable rows.
func FuzzNewCSR(f *testing.F) {
	f.Add(2, 3, []byte{0, 2, 4}, []byte{0, 2, 0, 2})
	f.Add(1, 1, []byte{0, 200}, []byte{255})
	f.Fuzz(func(t *testing.T, rows, cols int, indptr, indices []byte) {
		widen := func(b []byte) []int32 {
			w := make([]int32, len(b))
			for i, v := range b {
				w[i] = int32(int8(v))
			}
			return w
		}
		m, err := host.NewCSR(rows, cols, widen(indptr), widen(indices), make([]float32, len(indices)))
		if err != nil {
			return
		}
		total := 0
		for i := range m.Rows {
			columns, values := m.Row(i)
			total += len(values)
			for _, c := range columns {
				if m.At(i, int(c)) != 0 {
					t.Fatal("an element is not 0")
				}
			}
		}
		if total != m.NNZ() || total != len(indices) {
			t.Fatalf("%d elements in the rows, %d in all, %d given", total, m.NNZ(), len(indices))
		}
		checkEqual(t, "Transposed", m.Transposed(), m.T())
	})
}

// This example passes a sparse matrix to a function of gonum.
func ExampleCSR() {
	m, err := host.NewCSR(2, 4, []int32{0, 1, 3}, []int32{2, 0, 3}, []float64{5, 6, 7})
	fmt.Println(mat.Sum(m), err)
	fmt.Println(m.Row(1))
	_, err = host.NewCSR(1, 4, []int64{0, 2}, []int64{3, 1}, []float64{1, 2})
	fmt.Println(err)
	// Output:
	// 18 <nil>
	// [0 3] [6 7]
	// host: csr: row 1: column 2 comes after column 4; columns must increase
}

// TestCSRTakeRowsAndFloat32 checks Float32, and TakeRows with repeated rows in another order.
func TestCSRTakeRowsAndFloat32(t *testing.T) {
	x := host.CSR[float64]{Rows: 4, Cols: 3, Indptr: []int{0, 1, 1, 3, 5}, Indices: []int32{2, 0, 1, 1, 2}, Data: []float64{7, 1, 0.1, 3, 4}}
	rowRange := x.SliceRows(1, 4)
	selected := rowRange.TakeRows([]int{2, 0, 1, 2})
	want := host.CSR[float64]{Rows: 4, Cols: 3, Indptr: []int{0, 2, 2, 4, 6}, Indices: []int32{1, 2, 0, 1, 1, 2}, Data: []float64{3, 4, 1, 0.1, 3, 4}}
	if !reflect.DeepEqual(selected, want) {
		t.Errorf("TakeRows: %v, want %v", selected, want)
	}
	want32 := host.CSR[float32]{Rows: 3, Cols: 3, Indptr: []int{0, 0, 2, 4}, Indices: []int32{0, 1, 1, 2}, Data: []float32{1, 0.1, 3, 4}}
	if got := rowRange.Float32(); !reflect.DeepEqual(got, want32) {
		t.Errorf("Float32: %v, want %v", got, want32)
	}
	if got := (host.CSR[float64]{Indptr: []int{0}}).Float32(); got.Rows != 0 || got.Check() != nil {
		t.Errorf("Float32 of no rows: %v, %v", got, got.Check())
	}
}
