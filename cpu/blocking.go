package cpu

import (
	"sync"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

// cacheSizes holds cache sizes in bytes. Zero means the size that the machine reports, or else the default.
type cacheSizes struct {
	L2 int // per core; default 1 MiB
	L3 int // shared by the cores; default 32 MiB
}

// openWith is backend.Open for a tier of this package, with given cache sizes. Results do not depend on them.
func openWith(tier string, c backend.Config, caches cacheSizes) (backend.Device, error) {
	for _, t := range ukr.Tiers() {
		if t.Name == tier {
			return open(t, c, caches)
		}
	}
	return nil, unknownTier(tier)
}

// machineCaches returns the cache sizes that the machine reports.
var machineCaches = sync.OnceValue(reportedCaches)

// orReported replaces each size that is 0 by the reported size.
func (c cacheSizes) orReported() cacheSizes {
	fill := func(size *int, reported, fallback int) {
		if *size <= 0 {
			*size = reported
		}
		if *size <= 0 {
			*size = fallback
		}
	}
	reported := machineCaches()
	fill(&c.L2, reported.L2, 1<<20)
	fill(&c.L3, reported.L3, 32<<20)
	return c
}

// blocking holds the sizes of the five loops, in elements; see the package documentation.
type blocking struct {
	kc int // depth of a packed panel
	mc int // number of rows of a task, a multiple of MR
	nc int // number of columns of packed B, a multiple of NR
	mr int // number of rows of a register tile
	nr int // number of columns of a register tile
}

// depth is KC: after each KC terms, the sums in registers are added to C. KC is the same on every machine, because
// the last bits of a result depend on KC. KC = 192 reaches 78 % of the peak rate, and KC = 512 reaches 88 %
// (float64, AVX-512, n = 1536, AMD EPYC of family 25, November 2026). With a larger KC, fewer panels of A fit in
// the second-level cache.
const depth = 512

// blockingFor derives the sizes of the loops from a register tile of mr × nr elements of size bytes each. The packed
// rows of A for one task take half of the second-level cache, and packed B a quarter of the third-level cache.
func blockingFor(mr, nr, size int, caches cacheSizes) blocking {
	return blocking{
		kc: depth,
		mc: max(caches.L2/2/(depth*size)/mr, 2) * mr,
		nc: max(caches.L3/4/(depth*size)/nr, panels(depth, nr)) * nr,
		mr: mr,
		nr: nr,
	}
}
