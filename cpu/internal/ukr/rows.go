package ukr

// The functions below are the portable functions on rows.

func (r *Rows[T]) row(i int) []T { return sliceAt(r.Z, i*r.Ldz, r.N) }

func dot4Generic[T Float](r *Rows[T]) { r.dot4(0) }

func axpy4Generic[T Float](r *Rows[T]) { r.axpy4(0) }

func dotAxpy8Generic[T Float](r *Rows[T]) { r.dotAxpy(8) }

func dotAxpy12Generic[T Float](r *Rows[T]) { r.dotAxpy(12) }

func (r *Rows[T]) dotAxpy(count int) {
	for first := 0; first < count; first += 4 {
		r.dot4(first)
		r.axpy4(first)
	}
}

func (r *Rows[T]) dot4(first int) {
	z0, z1, z2, z3 := r.row(first), r.row(first+1), r.row(first+2), r.row(first+3)
	var s0, s1, s2, s3 T
	for i, y := range sliceAt(r.Y, 0, r.N) {
		s0 += z0[i] * y
		s1 += z1[i] * y
		s2 += z2[i] * y
		s3 += z3[i] * y
	}
	*(*[4]T)(r.B[first:]) = [4]T{s0, s1, s2, s3}
}

func (r *Rows[T]) axpy4(first int) {
	z0, z1, z2, z3 := r.row(first), r.row(first+1), r.row(first+2), r.row(first+3)
	a := [4]T(r.A[first:])
	x := sliceAt(r.X, 0, r.N)
	for i := range x {
		x[i] += a[0]*z0[i] + a[1]*z1[i] + (a[2]*z2[i] + a[3]*z3[i])
	}
}
