package gonum

import "gonum.org/v1/gonum/mat"

// The methods below change the factor in O(n²) operations of gonum. Where a method of mat.Cholesky
// takes a mat.Cholesky, these methods take a Cholesky of this package. They do not change the
// device of the receiver.

// Reset makes c empty.
func (c *Cholesky) Reset() {
	c.changed()
	c.Cholesky.Reset()
}

// SetFromU is like mat.Cholesky.SetFromU: c gets the factor t.
func (c *Cholesky) SetFromU(t mat.Triangular) {
	c.changed()
	c.Cholesky.SetFromU(t)
}

// Clone makes c a copy of the factor of chol.
func (c *Cholesky) Clone(chol *Cholesky) {
	cond := chol.cond
	if c != chol {
		c.changed()
	}
	c.Cholesky.Clone(&chol.Cholesky)
	c.cond = cond
}

// Scale is like mat.Cholesky.Scale: c becomes the factor of f·A, f > 0.
func (c *Cholesky) Scale(f float64, orig *Cholesky) {
	cond := orig.cond
	c.changed()
	c.Cholesky.Scale(f, &orig.Cholesky)
	c.cond = cond // A and f·A have the same condition number
}

// ExtendVecSym is like mat.Cholesky.ExtendVecSym: it appends the row and column v to A.
func (c *Cholesky) ExtendVecSym(a *Cholesky, v mat.Vector) (ok bool) {
	return c.update(a, c.Cholesky.ExtendVecSym(&a.Cholesky, v))
}

// SymRankOne is like mat.Cholesky.SymRankOne: c becomes the factor of A + α x xᵀ.
func (c *Cholesky) SymRankOne(orig *Cholesky, alpha float64, x mat.Vector) (ok bool) {
	return c.update(orig, c.Cholesky.SymRankOne(&orig.Cholesky, alpha, x))
}

// update is called after an update of the embedded factor; ok reports whether the update succeeded.
// A failed update of c itself leaves c unchanged.
func (c *Cholesky) update(orig *Cholesky, ok bool) bool {
	if ok || c != orig {
		c.changed()
	}
	return ok
}
