package ukr

// The portable functions on strips.

const (
	genericStripRows = 4
	genericStripCols = genericNR / 2
)

func stripGeneric[T Float](s *Strip[T]) {
	const w = genericStripCols
	y := at(s.Y, 0, genericStripRows*w)
	v := at(s.V, 0, s.N*w)
	for r := range genericStripRows {
		sum := [w]T(y[r*w:])
		for i, z := range at(s.Z, r*s.Ldz, s.N) {
			for c, x := range v[i*w:][:w] {
				sum[c] += z * x
			}
		}
		copy(y[r*w:], sum[:])
	}
}

func stripBothGeneric[T Float](s *Strip[T]) {
	stripGeneric(s)
	const w = genericStripCols
	x := at(s.X, 0, genericStripRows*w)
	sum := at(s.Sum, 0, s.N*w)
	for r := range genericStripRows {
		for i, z := range at(s.Z, r*s.Ldz, s.N) {
			to := sum[i*w:][:w]
			for c, v := range x[r*w:][:w] {
				to[c] += z * v
			}
		}
	}
}
