package svm

import (
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/backend/ref"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
)

// TestRowCache checks that Row returns the rows of K after any earlier requests, and that the cache stores the
// most recently used rows.
func TestRowCache(t *testing.T) {
	t.Log("seed 1")
	for name, device := range map[string]string{"ref": "ref", "best": "cpu"} {
		dev := backendtest.Device(t, device)
		t.Run(name, func(t *testing.T) { testRowCache(t, dev.F64(), 64*0x1p-52) })
		if inUse, _ := dev.InUse(); inUse != 0 {
			t.Errorf("%s: %d bytes are left", name, inUse)
		}
	}
}

// plainQueue is a backend without Wrapper, which cannot use Go memory directly.
type plainQueue struct{ backend.Backend[float64] }

// testRowCache tests a cache on b. The argument bound is the tolerance of a kernel value, which is at most 1.
func testRowCache(t *testing.T, b backend.Backend[float64], bound float64) {
	const n, d = 37, 3
	r := rand.New(rand.NewPCG(1, 0))
	x := backend.NewHost[float64](n, d)
	for i := range x.Data {
		x.Data[i] = r.NormFloat64()
	}
	k := kernels.Gaussian{Sigma: 1.5}
	for _, b := range []backend.Backend[float64]{b, plainQueue{b}} {
		c, err := NewRowCache(t.Context(), b, k, numeric.DensePoints(x), CacheSize{int64(5 * n * 8), 2, 4})
		if err != nil {
			t.Fatal(err)
		}
		check := func(i int) {
			t.Helper()
			row, err := c.Row(i)
			if err != nil {
				t.Fatal(err)
			}
			for j, v := range row {
				want := kernels.Eval(k, x.Row(i), x.Row(j))
				if i == j && v != 1 || !(max(v-want, want-v) <= bound) {
					t.Fatalf("K[%d][%d] is %v, want %v", i, j, v, want)
				}
			}
		}
		slots := c.Capacity()
		if slots < 5 || slots > 10 {
			t.Fatalf("%d slots", slots)
		}
		for range 300 {
			if r.IntN(3) == 0 {
				list := r.Perm(n)[:1+r.IntN(slots)]
				if err := c.Fetch(list); err != nil {
					t.Fatal(err)
				}
				for _, i := range list {
					if !c.has(i) {
						t.Fatalf("row %d of %v is not kept", i, list)
					}
					check(i)
				}
			} else {
				check(r.IntN(n))
			}
		}
		// Only the most recently used rows are cached.
		for i := range slots {
			check(i)
		}
		check(0)
		check(n - 1)
		if misses := c.Misses; !c.has(0) || c.has(1) || !c.has(2) {
			t.Errorf("kept: %v, %v, %v", c.has(0), c.has(1), c.has(2))
		} else if check(0); c.Misses != misses {
			t.Error("a kept row was computed")
		}
		if err := c.Fetch(r.Perm(n)); err == nil {
			t.Error("more rows than can be kept were not refused")
		}
		c.Close()
	}
}

// TestScatteredRows checks that new rows replace cached rows in slots that are not adjacent.
func TestScatteredRows(t *testing.T) {
	const n, d, batch, bound = 2100, 2, 256, 64 * 0x1p-52 // the bound is that of testRowCache
	t.Log("seed 2")
	r := rand.New(rand.NewPCG(2, 0))
	x := backend.NewHost[float64](n, d)
	for i := range x.Data {
		x.Data[i] = r.NormFloat64()
	}
	k := kernels.Gaussian{Sigma: 1.5}
	c, err := NewRowCache(t.Context(), backendtest.Device(t, "cpu").F64(), k, numeric.DensePoints(x), CacheSize{300 * n * 8, batch, batch})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if batch*n*8 < 2*stagedBytes {
		t.Fatal("the rows fit in one block")
	}
	for range 3 {
		list := r.Perm(n)[:batch]
		if err := c.Fetch(list); err != nil {
			t.Fatal(err)
		}
		for _, i := range list {
			row, err := c.Row(i)
			if err != nil {
				t.Fatal(err)
			}
			for j, v := range row {
				if want := kernels.Eval(k, x.Row(i), x.Row(j)); !(max(v-want, want-v) <= bound) {
					t.Fatalf("K[%d][%d] is %v, want %v", i, j, v, want)
				}
			}
		}
	}
}

// has reports whether row i is cached.
func (c *RowCache) has(i int) bool { return c.slot[i] >= 0 }
