package ukr

// genericPacker is the portable Packer for panels of w rows.
func genericPacker[T Float](w int) Packer[T] {
	return Packer[T]{
		Width: w,
		Transpose: func(t *Tile[T]) {
			dst := sliceAt(t.C, 0, t.K*w)
			for i := range w {
				for p, x := range sliceAt(t.A, i*t.Lda, t.K) {
					dst[p*w+i] = x
				}
			}
		},
		Copy: func(t *Tile[T]) {
			for p := range t.K {
				for j := range t.M {
					copy(sliceAt(t.C, j*t.Ldc+p*w, w), sliceAt(t.A, p*t.Lda+j*w, w))
				}
			}
		},
	}
}

func unpackGeneric[T Float](t *Tile[T]) {
	src := sliceAt(t.A, 0, t.K*genericNR)
	for i := range genericNR {
		row := sliceAt(t.C, i*t.Ldc, t.K)
		for p := range row {
			row[p] = src[p*genericNR+i]
		}
	}
}
