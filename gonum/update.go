package gonum

import "gonum.org/v1/gonum/mat"

// The methods of this file change the factor in O(n²) operations of gonum. No method changes the receiver's device.

// Reset makes c empty.
func (c *Cholesky) Reset() {
	c.clear()
	c.Cholesky.Reset()
}

// SetFromU sets the factor to t, as mat.Cholesky.SetFromU does.
func (c *Cholesky) SetFromU(t mat.Triangular) {
	c.clear()
	c.Cholesky.SetFromU(t)
}

// Clone makes c a copy of the factor of chol.
func (c *Cholesky) Clone(chol *Cholesky) {
	cond := chol.cond
	if c != chol {
		c.clear()
	}
	c.Cholesky.Clone(&chol.Cholesky)
	c.cond = cond
}

// Scale sets c to the factor of f·A for f > 0, as mat.Cholesky.Scale does.
func (c *Cholesky) Scale(f float64, orig *Cholesky) {
	cond := orig.cond
	c.clear()
	c.Cholesky.Scale(f, &orig.Cholesky)
	c.cond = cond // A and f·A have the same condition number
}

// ExtendVecSym appends the row and column v to A, as mat.Cholesky.ExtendVecSym does.
func (c *Cholesky) ExtendVecSym(a *Cholesky, v mat.Vector) (ok bool) {
	return c.update(a, c.Cholesky.ExtendVecSym(&a.Cholesky, v))
}

// SymRankOne sets c to the factor of A + α x xᵀ, as mat.Cholesky.SymRankOne does.
func (c *Cholesky) SymRankOne(orig *Cholesky, alpha float64, x mat.Vector) (ok bool) {
	return c.update(orig, c.Cholesky.SymRankOne(&orig.Cholesky, alpha, x))
}

// update finishes an update of the embedded factor. If ok is false and c was updated in place, c is unchanged.
func (c *Cholesky) update(orig *Cholesky, ok bool) bool {
	if ok || c != orig {
		c.clear()
	}
	return ok
}
