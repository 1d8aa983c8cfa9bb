package kernels

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mercer-go/mercer/internal/count"
)

// Columns is Kernel on some columns of the points: k(x, z) = Kernel(x_C, z_C), where x_C are the
// features of x with the given Indices, in this order. Indices count from 0. A sum or product of
// Columns gives each group of columns its own kernel and weight.
type Columns struct {
	Indices []int
	Kernel  Kernel
}

// maxColumn is the largest index that Columns accepts; it bounds the memory of a program.
const maxColumn = 1<<20 - 1

// String returns "columns(3, k)", "columns(0-3, k)" or "columns([0-3,7], k)".
func (k Columns) String() string {
	return "columns(" + indexText(k.Indices) + "," + text(k.Kernel) + ")"
}

// indexText writes a list of indices, with ranges.
func indexText(indices []int) string {
	var spans []string
	for i := 0; i < len(indices); {
		first := i
		for i++; i < len(indices) && indices[i] == indices[i-1]+1; i++ {
		}
		span := strconv.Itoa(indices[first])
		if i-first > 1 {
			span += "-" + strconv.Itoa(indices[i-1])
		}
		spans = append(spans, span)
	}
	if len(spans) == 1 {
		return spans[0]
	}
	return "[" + strings.Join(spans, ",") + "]"
}

// Check requires at least one column, distinct columns from 0 to d−1, and a kernel that is valid
// for this number of columns.
func (k Columns) Check(d int) error {
	if k.Kernel == nil {
		return errors.New("kernels: columns: the inner kernel is missing")
	}
	if len(k.Indices) == 0 {
		return errors.New("kernels: columns: the list of columns is empty")
	}
	seen := make(map[int]bool, len(k.Indices))
	for _, c := range k.Indices {
		switch {
		case c < 0 || c > maxColumn:
			return fmt.Errorf("kernels: columns: a column must be an integer from 0 to %d, got %d", maxColumn, c)
		case d >= 0 && c >= d:
			return fmt.Errorf("kernels: columns: there is no column %d: the points have %s, and columns count from 0", c, count.Of(d, "feature"))
		case seen[c]:
			return fmt.Errorf("kernels: columns: column %d is given twice", c)
		}
		seen[c] = true
	}
	if err := k.Kernel.Check(len(k.Indices)); err != nil {
		return err
	}
	if slices.ContainsFunc(Compile(k.Kernel).Stats, Stat.isPrecomputed) {
		return errors.New("kernels: columns: precomputed() is not a function of columns: give the whole points to it")
	}
	return nil
}

// IsPSD reports whether Kernel is positive semi-definite for points of len(Indices) features.
func (k Columns) IsPSD() bool {
	return k.Check(-1) == nil && (k.Kernel.IsPSD() || len(k.Indices) == 1 && psdOnLine(k.Kernel))
}

// psdOnLine reports whether k is positive semi-definite for points of one feature.
func psdOnLine(k Kernel) bool {
	if _, ok := k.(Periodic); ok {
		return true
	}
	inner := innerKernels(k)
	for _, p := range inner {
		if !psdOnLine(p) && !p.IsPSD() {
			return false
		}
	}
	switch k.(type) {
	case Sum, Product, Scaled, ExpOf, Normalized:
		return len(inner) > 0
	}
	return false
}

// isPrecomputed reports whether a statistic is an entry of a precomputed matrix or a function of such an entry.
func (s Stat) isPrecomputed() bool {
	return s.Kind == Entry || s.Of != nil && slices.ContainsFunc(Compile(s.Of).Stats, Stat.isPrecomputed)
}

func (k Columns) compile(c *compiler) { k.restrict(c, k.Kernel.compile) }

// restrict calls f with a compiler whose method load restricts statistics to the columns of k.
func (k Columns) restrict(c *compiler, f func(c *compiler)) {
	outer := c.columns
	defer func() { c.columns = outer }()
	c.columns = make([]int, len(k.Indices))
	for i, index := range k.Indices {
		c.columns[i] = index
		if outer != nil {
			c.columns[i] = outer[index]
		}
	}
	f(c)
}

func (k Columns) params() []Param              { return k.Kernel.params() }
func (k Columns) with(values []float64) Kernel { return Columns{k.Indices, k.Kernel.with(values)} }

func (k Columns) derive(c *compiler, i int) {
	k.restrict(c, func(c *compiler) { k.Kernel.derive(c, i) })
}

// deriveStat appends the code of ∂k/∂s. It is the sum of the derivatives of Kernel with respect to its statistics that
// equal s after restriction to the columns.
func (k Columns) deriveStat(c *compiler, s Stat) {
	terms := 0
	for _, inner := range Compile(k.Kernel).Stats {
		if !inner.restricted(k.Indices).Equal(s) {
			continue
		}
		k.restrict(c, func(c *compiler) { deriveStat(c, k.Kernel, inner) })
		if terms++; terms > 1 {
			c.binary(Add)
		}
	}
}

func (k Columns) bounded() bool { return k.Kernel.bounded() }

// restricted returns the statistic of complete points that equals the statistic s of the given columns of the points.
func (s Stat) restricted(columns []int) Stat {
	if s.Kind.OnePoint() {
		s.Of = Columns{columns, s.Of}
		return s
	}
	last := 0
	for _, c := range columns {
		last = max(last, c)
	}
	scale := make([]float64, last+1)
	for i, c := range columns {
		scale[c] = s.ScaleAt(i)
	}
	s.Scale = scale
	return s
}
