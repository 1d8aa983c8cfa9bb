package ukr

// The functions below are the portable functions on strips.

const (
	genericPanelRows = 4
	genericPanelCols = genericNR / 2
)

func gemvPanelGeneric[T Float](s *GemvPanel[T]) {
	const w = genericPanelCols
	y := sliceAt(s.Y, 0, genericPanelRows*w)
	v := sliceAt(s.V, 0, s.N*w)
	for r := range genericPanelRows {
		for i := 0; i < s.N; i += PanelTerms {
			var sum [w]T
			for k, z := range sliceAt(s.Z, r*s.Ldz+i, min(PanelTerms, s.N-i)) {
				for c, x := range v[(i+k)*w:][:w] {
					sum[c] += z * x
				}
			}
			for c, x := range sum {
				y[r*w+c] += x
			}
		}
	}
}

func gemvPanelPairGeneric[T Float](s *GemvPanel[T]) {
	gemvPanelGeneric(s)
	const w = genericPanelCols
	x := sliceAt(s.X, 0, genericPanelRows*w)
	sum := sliceAt(s.Sum, 0, s.N*w)
	for r := range genericPanelRows {
		for i, z := range sliceAt(s.Z, r*s.Ldz, s.N) {
			to := sum[i*w:][:w]
			for c, v := range x[r*w:][:w] {
				to[c] += z * v
			}
		}
	}
}
