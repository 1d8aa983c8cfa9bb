package ukr

// The portable functions on four rows.

func (r *Rows[T]) row(i int) []T { return at(r.Z, i*r.Ldz, r.N) }

func dot4Generic[T Float](r *Rows[T]) {
	z0, z1, z2, z3 := r.row(0), r.row(1), r.row(2), r.row(3)
	var s0, s1, s2, s3 T
	for i, y := range at(r.Y, 0, r.N) {
		s0 += z0[i] * y
		s1 += z1[i] * y
		s2 += z2[i] * y
		s3 += z3[i] * y
	}
	r.B = [4]T{s0, s1, s2, s3}
}

func axpy4Generic[T Float](r *Rows[T]) {
	z0, z1, z2, z3 := r.row(0), r.row(1), r.row(2), r.row(3)
	x := at(r.X, 0, r.N)
	for i := range x {
		x[i] += r.A[0]*z0[i] + r.A[1]*z1[i] + (r.A[2]*z2[i] + r.A[3]*z3[i])
	}
}

func dotAxpy4Generic[T Float](r *Rows[T]) {
	dot4Generic(r)
	axpy4Generic(r)
}
