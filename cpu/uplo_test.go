package cpu

import (
	"math/rand/v2"
	"testing"
)

// TestGrid checks that the blocks of a grid cover each element of the matrix once, begin at whole
// register tiles, and are no larger than the loops allow.
func TestGrid(t *testing.T) {
	const seed = 5
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		mr, nr := 1+rng.IntN(16), 1+rng.IntN(32)
		size := blocking{kc: depth, mc: mr * (2 + rng.IntN(12)), nc: nr * (1 + rng.IntN(200)), mr: mr, nr: nr}
		m, n, threads := 1+rng.IntN(3000), 1+rng.IntN(size.nc), 1+rng.IntN(70)
		g := newGrid(m, n, size, threads)
		covered, end := 0, 0
		for task := range g.tasks() {
			i, j, rows, cols := g.block(task)
			if i%mr != 0 || j%nr != 0 || rows < 1 || rows > max(size.mc, mr) || cols < 1 || i+rows > m || j+cols > n {
				t.Fatalf("m=%d n=%d threads=%d %+v: task %d is %d × %d at (%d, %d)", m, n, threads, size, task, rows, cols, i, j)
			}
			if j == 0 && i != end {
				t.Fatalf("m=%d n=%d threads=%d %+v: a block begins at row %d, the previous one ends at %d", m, n, threads, size, i, end)
			}
			covered, end = covered+rows*cols, i+rows
		}
		if covered != m*n {
			t.Fatalf("m=%d n=%d threads=%d %+v: %d of %d elements are covered", m, n, threads, size, covered, m*n)
		}
	}
}
