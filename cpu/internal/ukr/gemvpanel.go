package ukr

// The functions below are the portable functions on strips.

const (
	genericPanelRows = 4
	genericPanelCols = genericNR / 2
)

func gemvPanelGeneric[T Float](s *GemvPanel[T]) {
	s.blocks(genericPanelCols, genericPanelRows, gemvPanelChain[T])
}

// blocks computes y_r ← y_r + Σ_i z_ri v_i for strips of the given width. The function chain does the same for at
// most PanelTerms products, each of which it adds to y_r.
func (s *GemvPanel[T]) blocks(width, rows int, chain func(*GemvPanel[T])) {
	sums := make([]T, rows*width)
	for i := 0; i < s.N; i += PanelTerms {
		clear(sums)
		chain(&GemvPanel[T]{Z: &at(s.Z, i, 1)[0], V: &at(s.V, i*width, 1)[0], Y: &sums[0], N: min(PanelTerms, s.N-i), Ldz: s.Ldz})
		for j, v := range sums {
			at(s.Y, j, 1)[0] += v
		}
	}
}

func gemvPanelChain[T Float](s *GemvPanel[T]) {
	const w = genericPanelCols
	y := at(s.Y, 0, genericPanelRows*w)
	v := at(s.V, 0, s.N*w)
	for r := range genericPanelRows {
		sum := [w]T(y[r*w:])
		for i, z := range at(s.Z, r*s.Ldz, s.N) {
			for c, x := range v[i*w:][:w] {
				sum[c] += z * x
			}
		}
		copy(y[r*w:], sum[:])
	}
}

func gemvPanelPairGeneric[T Float](s *GemvPanel[T]) {
	gemvPanelChain(s)
	const w = genericPanelCols
	x := at(s.X, 0, genericPanelRows*w)
	sum := at(s.Sum, 0, s.N*w)
	for r := range genericPanelRows {
		for i, z := range at(s.Z, r*s.Ldz, s.N) {
			to := sum[i*w:][:w]
			for c, v := range x[r*w:][:w] {
				to[c] += z * v
			}
		}
	}
}
