package backendtest

import (
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/required"
)

// testAddDiag requires exact results. It overwrites d after the call of AddDiag, as callers may.
func testAddDiag[T backend.Float](r *rig[T]) {
	for _, n := range []int{0, 1, 2, 3, 17, 64, 129} {
		for _, length := range []int{1, n} {
			label := fmt.Sprintf("AddDiag n=%d len(d)=%d", n, length)
			d := r.normals(1, length)
			a := filled(n, n, sentinel)
			for i := range n {
				a.Row(i)[i] = float64(T(r.rng.NormFloat64()))
			}
			want := fromFunc(n, n, func(i, j int) float64 {
				if i != j {
					return sentinel
				}
				return float64(T(a.Row(i)[i]) + T(d.Data[min(i, length-1)]))
			})
			got := r.mustCall(label, func(b backend.Backend[T], m []backend.Matrix[T]) error {
				v := round[T](d).Data
				b.AddDiag(v, m[0])
				fillSentinels(v)
				return nil
			}, a)
			r.requireEqual(label, got, want)
		}
	}
}

func fillSentinels[T backend.Float](v []T) {
	for i := range v {
		v[i] = T(sentinel)
	}
}

var columnShapes = [][2]int{{0, 3}, {3, 0}, {1, 1}, {1, 7}, {7, 1}, {5, 3}, {17, 33}, {64, 65}, {129, 2}, {1000, 5}, {3, 1000}, {10007, 3}}

func testColAxpy[T backend.Float](r *rig[T]) {
	for _, s := range required.Subset(6, columnShapes) {
		rows, cols := s[0], s[1]
		label := fmt.Sprintf("ColAxpy %d×%d", rows, cols)
		run := func(alpha host) call[T] {
			return func(b backend.Backend[T], m []backend.Matrix[T]) error {
				v := round[T](alpha).Data
				b.ColAxpy(v, m[0], m[1])
				fillSentinels(v)
				return nil
			}
		}
		alpha, x, y := r.integers(1, cols, 4), r.integers(rows, cols, 8), r.integers(rows, cols, 8)
		want := fromFunc(rows, cols, func(i, j int) float64 { return y.Row(i)[j] + alpha.Data[j]*x.Row(i)[j] })
		r.requireEqual(label, r.mustCall(label, run(alpha), x, y), want)

		// The errors of one product and one sum, fused or not, are at most product[T](1).
		alpha, x, y = r.normals(1, cols), r.normals(rows, cols), r.normals(rows, cols)
		size := fromFunc(rows, cols, func(i, j int) float64 {
			return abs1(alpha.Data[j]*x.Row(i)[j]) + abs1(y.Row(i)[j])
		})
		r.requireWithin(label, r.mustCall(label, run(alpha), x, y), r.callOracle(label, run(alpha), x, y), scale(product[T](1), size))
	}
	r.report()
}

// colDot runs ColDot on operands in frames of sentinels and returns a row of products. If sameOperand, y is x.
func (r *rig[T]) colDot(label string, x, y host, sameOperand bool) host {
	r.Helper()
	fx, fy := r.newFrame(x), r.newFrame(y)
	defer fx.parent.Free()
	defer fy.parent.Free()
	dst := filled(1, x.Cols, sentinel)
	dots := round[T](dst)
	var err error
	if sameOperand {
		err = r.b.ColDot(dots.Data, fx.view, fx.view)
	} else {
		err = r.b.ColDot(dots.Data, fx.view, fy.view)
	}
	if err != nil {
		r.Fatalf("%s: %v", label, err)
	}
	for _, f := range []frame[T]{fx, fy} {
		if err := f.unchanged(r.b); err != nil {
			r.Fatalf("%s: %v", label, err)
		}
	}
	return widen(dots)
}

func testColDot[T backend.Float](r *rig[T]) {
	dots := func(x, y host) host {
		return fromFunc(1, x.Cols, func(_, j int) float64 {
			var s float64
			for i := range x.Rows {
				s += x.Row(i)[j] * y.Row(i)[j]
			}
			return s
		})
	}
	for _, s := range required.Subset(6, columnShapes) {
		rows, cols := s[0], s[1]
		label := fmt.Sprintf("ColDot %d×%d", rows, cols)
		x, y := r.integers(rows, cols, 8), r.integers(rows, cols, 8)
		r.requireEqual(label, r.colDot(label, x, y, false), dots(x, y))
		r.requireEqual(label+", y is x", r.colDot(label, x, y, true), dots(x, x))

		x, y = r.normals(rows, cols), r.normals(rows, cols)
		r.requireWithin(label, r.colDot(label, x, y, false), dots(x, y), scale(product[T](rows), dots(abs(x), abs(y))))
	}
	r.report()
}
