package gonum

import "gonum.org/v1/gonum/mat"

// What changes the factor is gonum's own, O(n²), with a Cholesky of this package
// where mat.Cholesky's methods take one of theirs. The device of the receiver
// stays what it is.

// Reset empties c.
func (c *Cholesky) Reset() {
	c.changed()
	c.Cholesky.Reset()
}

// SetFromU is as mat.Cholesky has it.
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

// Scale is as mat.Cholesky has it: c becomes the factor of f·A, f > 0.
func (c *Cholesky) Scale(f float64, orig *Cholesky) {
	cond := orig.cond
	c.changed()
	c.Cholesky.Scale(f, &orig.Cholesky)
	c.cond = cond // A and f·A have the same
}

// ExtendVecSym is as mat.Cholesky has it: A grows by the row and column v.
func (c *Cholesky) ExtendVecSym(a *Cholesky, v mat.Vector) (ok bool) {
	return c.update(a, c.Cholesky.ExtendVecSym(&a.Cholesky, v))
}

// SymRankOne is as mat.Cholesky has it: c becomes the factor of A + α x xᵀ.
func (c *Cholesky) SymRankOne(orig *Cholesky, alpha float64, x mat.Vector) (ok bool) {
	return c.update(orig, c.Cholesky.SymRankOne(&orig.Cholesky, alpha, x))
}

// update is called after an update. One of c itself that failed has changed nothing.
func (c *Cholesky) update(orig *Cholesky, ok bool) bool {
	if ok || c != orig {
		c.changed()
	}
	return ok
}
