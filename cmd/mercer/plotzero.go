package main

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/validate"
)

// zeroLevel is the set where the decision value f of two classes is 0. It consists of lines on
// which f changes its sign, lines on which f is 0 but has the same sign on both sides, and areas.
type zeroLevel struct {
	raster          // the values of f
	sign    [][]int // sign of f at each point: −1 or 1, or 0 in areas where f = 0
	touches []plotter.XYs
	name    string // the class that is predicted for f = 0
}

// newZeroLevel finds the set f = 0. The decision values o belong to the points x of the raster r.
func newZeroLevel(r raster, m learners.Model, classes learners.Classes, x *mat.Dense, o validate.Outcome, f func(xs, ys []float64) ([]float64, error)) (*zeroLevel, error) {
	l := &zeroLevel{raster: r, name: classes.Names[classes.Index(classes.Decide(mat.NewDense(1, 1, nil)).At(0, 0))]}
	rows, cols := len(r.y), len(r.x)
	values := o.Decision.RawMatrix().Data
	l.z = mat.NewDense(rows, cols, values)
	zero := zeros(m, x, values)
	l.sign = make([][]int, rows)
	for i := range rows {
		l.sign[i] = make([]int, cols)
		for j := range cols {
			if v := l.z.At(i, j); !zero[i*cols+j] && v != 0 {
				l.sign[i][j] = int(math.Copysign(1, v))
			}
		}
	}
	// A point with f = 0 belongs to an area if it is a corner of a cell that has f = 0 at all corners.
	area := func(i, j int) bool {
		for _, di := range []int{-1, 1} {
			for _, dj := range []int{-1, 1} {
				k, n := i+di, j+dj
				if k >= 0 && k < rows && n >= 0 && n < cols && zero[i*cols+j] && zero[i*cols+n] && zero[k*cols+j] && zero[k*cols+n] {
					return true
				}
			}
		}
		return false
	}
	for i := range rows {
		for j := range cols {
			if l.sign[i][j] == 0 && !area(i, j) {
				l.sign[i][j] = l.neighborSign(i, j, zero)
			}
		}
	}
	for _, columns := range []bool{false, true} {
		if err := l.findTouches(columns, f); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// neighborSign returns the sign of f at the neighbors of a point (i, j) on a line f = 0. If the neighbors have both
// signs, it returns −1, the sign of the class that is predicted for f = 0.
func (l *zeroLevel) neighborSign(i, j int, zero []bool) int {
	sum, signs := 0, 0
	for _, d := range [][2]int{{0, -1}, {0, 1}, {-1, 0}, {1, 0}} {
		k, n := i+d[0], j+d[1]
		if k < 0 || k >= len(l.y) || n < 0 || n >= len(l.x) || zero[k*len(l.x)+n] {
			continue
		}
		sum, signs = sum+l.sign[k][n], signs+1
	}
	if signs > 0 && sum == signs {
		return 1
	}
	return -1
}

// zeros reports which decision values f = b + Σ a_i k(x_i, x), or b + wᵀx, are 0 up to rounding:
//
//	|f| ≤ (m + d + 32)ε (|b| + Σ|a_i k(x_i, x)|)
//
// where m is the number of terms, d the number of features and ε = 2⁻⁵². This bounds the rounding error of f
// (Higham 2002, section 3.1) if a kernel value has an error of at most d + 32 units in the last place.
func zeros(m learners.Model, x *mat.Dense, f []float64) []bool {
	zero := make([]bool, len(f))
	for i, v := range f {
		zero[i] = v == 0
	}
	parts := learners.PartsOf(m)
	if parts.Coef == nil || len(parts.Intercept) != 1 || parts.Kernel != nil && parts.Points == nil {
		return zero
	}
	terms, _ := parts.Coef.Dims()
	if terms > maxRings {
		return zero
	}
	_, d := x.Dims()
	magnitude := func(x []float64) float64 {
		sum := math.Abs(parts.Intercept[0])
		for i := range terms {
			v := 0.0
			if parts.Points == nil {
				v = x[i]
			} else {
				v = kernels.Eval(parts.Kernel, mat.Row(nil, i, parts.Points), x)
			}
			sum += math.Abs(parts.Coef.At(i, 0) * v)
		}
		return sum
	}
	bound := float64(terms+d+32) * 0x1p-52
	maxIndex := 0
	for i, v := range f {
		if math.Abs(v) > math.Abs(f[maxIndex]) {
			maxIndex = i
		}
	}
	// The function magnitude is expensive, and is called only where |f| is at most threshold.
	threshold := 1e-9 * max(math.Abs(f[maxIndex]), magnitude(x.RawRowView(maxIndex)))
	for i, v := range f {
		if v != 0 && math.Abs(v) <= threshold {
			zero[i] = math.Abs(v) <= bound*magnitude(x.RawRowView(i))
		}
	}
	return zero
}

// findTouches finds lines on which f is 0 but has the same sign on both sides. Along each row or column of the raster,
// it seeks a minimum of |f| of at most a millionth of the larger |f| at the two neighboring grid points.
func (l *zeroLevel) findTouches(columns bool, f func(xs, ys []float64) ([]float64, error)) error {
	along, across := l.x, l.y
	valueAt := func(i, j int) (float64, int) { return math.Abs(l.z.At(i, j)), l.sign[i][j] }
	if columns {
		along, across = l.y, l.x
		valueAt = func(i, j int) (float64, int) { return math.Abs(l.z.At(j, i)), l.sign[j][i] }
	}
	type bracket struct {
		line        int // index of a row or column of the raster
		low, high   float64
		endValue    float64 // the larger |f| at low and high
		position, f float64 // position and value of the minimum
	}
	var list []bracket
	for i := range across {
		for j := 1; j < len(along)-1; j++ {
			prev, s := valueAt(i, j-1)
			v, sign := valueAt(i, j)
			next, t := valueAt(i, j+1)
			if s != 0 && s == sign && sign == t && v < prev && v <= next {
				list = append(list, bracket{line: i, low: along[j-1], high: along[j+1], endValue: max(prev, next)})
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	// Each round divides each bracket into 32 steps, and keeps the two steps around the smallest |f|. After all
	// rounds a bracket is narrower than a millionth of two cells.
	const steps, rounds = 32, 5
	for range rounds {
		var varying, fixed []float64
		for _, b := range list {
			for k := range steps + 1 {
				varying, fixed = append(varying, b.low+(b.high-b.low)*float64(k)/steps), append(fixed, across[b.line])
			}
		}
		xs, ys := varying, fixed
		if columns {
			xs, ys = fixed, varying
		}
		values, err := f(xs, ys)
		if err != nil {
			return err
		}
		for n := range list {
			b, first := &list[n], n*(steps+1)
			minIndex := first
			for k := first; k <= first+steps; k++ {
				if math.Abs(values[k]) < math.Abs(values[minIndex]) {
					minIndex = k
				}
			}
			b.position, b.f = varying[minIndex], math.Abs(values[minIndex])
			b.low, b.high = varying[max(minIndex-1, first)], varying[min(minIndex+1, first+steps)]
		}
	}
	// Points in neighboring rows or columns are joined to a curve if they are at most a cell apart.
	cell := 1.01 * (along[1] - along[0])
	var curves []plotter.XYs
	var last []int // index of the row or column in which each curve ends
	for _, b := range list {
		if b.f > 1e-6*b.endValue {
			continue
		}
		i, point, found := b.line, plotter.XY{X: b.position, Y: across[b.line]}, false
		for n := range curves {
			if end := curves[n][len(curves[n])-1]; !found && last[n] == i-1 && math.Abs(end.X-point.X) <= cell {
				curves[n], last[n], found = append(curves[n], point), i, true
			}
		}
		if !found {
			curves, last = append(curves, plotter.XYs{point}), append(last, i)
		}
	}
	for _, points := range curves {
		if len(points) < 3 {
			continue
		}
		if columns {
			for n, point := range points {
				points[n] = plotter.XY{X: point.Y, Y: point.X}
			}
		}
		l.touches = append(l.touches, points)
	}
	return nil
}

// assignClasses sets values to the class at each point, or to +Inf in an area where f = 0. A point on a line f = 0
// gets the class beside the line.
func (l *zeroLevel) assignClasses(values *mat.Dense, classes learners.Classes) {
	for i, row := range l.sign {
		for j, s := range row {
			if s == 0 {
				values.Set(i, j, math.Inf(1))
			} else {
				values.Set(i, j, classes.Decide(mat.NewDense(1, 1, []float64{float64(s)})).At(0, 0))
			}
		}
	}
}

// hasSign reports whether f has the given sign at any point.
func (l *zeroLevel) hasSign(sign int) bool {
	return slices.ContainsFunc(l.sign, func(row []int) bool { return slices.Contains(row, sign) })
}

// add draws the lines f = 0.
func (l *zeroLevel) add(p *panel, style draw.LineStyle) {
	r := l.raster
	r.z = mat.DenseCopyOf(l.z)
	for i, row := range l.sign {
		for j, s := range row {
			switch v := r.z.At(i, j); {
			case s == 0: // in an area, the contour takes f for negative
				r.z.Set(i, j, -math.SmallestNonzeroFloat64)
			case v*float64(s) <= 0:
				r.z.Set(i, j, float64(s)*math.SmallestNonzeroFloat64)
			}
		}
	}
	p.contour(r, 0, style)
	for _, line := range l.touches {
		p.line("", line, style)
	}
}

// addNames adds the lines and areas to the legend.
func (l *zeroLevel) addNames(p *panel) {
	switch line := (&plotter.Line{LineStyle: zeroStyle}); {
	case len(l.touches) > 0:
		p.Legend.Add("f = 0: class "+l.name, line)
	case l.hasSign(-1) && l.hasSign(1):
		p.Legend.Add("f = 0", line)
	}
	if l.hasSign(0) {
		p.Legend.Add("f = 0: class "+l.name, swatch{flatColor})
	}
	if mat.Min(l.z) < -1 || mat.Max(l.z) > 1 {
		p.Legend.Add("f = ±1", &plotter.Line{LineStyle: marginStyle})
	}
}
