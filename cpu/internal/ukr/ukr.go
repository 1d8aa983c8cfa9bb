// Package ukr holds the micro-kernels: the innermost loops of the CPU engine,
// one set for each instruction set, and the sizes that go with them.
//
// A micro-kernel works on packed panels, drawn in the documentation of package
// cpu. The generic set is portable Go and complete; the others are assembly
// written by tools/asmgen and start from a copy of the generic set, so that a
// tier with only some of its kernels is correct.
package ukr

import "unsafe"

// Float is the element type.
type Float interface{ float32 | float64 }

// A Tile is the argument of a micro-kernel: C ← α·S + β·C on an M × N tile,
// where S_ij = Σ_{p<K} s(A_ip, B_pj) and s is what the kernel is named after.
// With β = 0, C is not read.
//
// A points to ⌈M/MR⌉ packed panels, Lda elements apart, each K columns of MR
// rows; B to one packed panel, K rows of NR columns. Both are padded: every
// element of a panel may be read. Of C exactly M rows and N ≤ NR columns are
// read and written; Ldc may be negative.
//
// The field order is known to tools/asmgen.
type Tile[T Float] struct {
	A, B, C     *T
	K, M, N     int
	Ldc, Lda    int
	Alpha, Beta T
}

// A Span is the argument of the functions on N elements one after the other, N
// a multiple of NR. X is changed in place.
//
// The field order is known to tools/asmgen.
type Span[T Float] struct {
	X, Y *T
	N    int
	Flag int // a result
	A, B T
	C    T
	Z    *T
}

// MaxRows is the largest number of rows that a function is for.
const MaxRows = 12

// Rows is the argument of the functions on rows of N elements, Ldz apart, which are
// read once. Any N is allowed. A function uses as much of A and B as it is for.
//
// The field order is known to tools/asmgen.
type Rows[T Float] struct {
	Z, X, Y *T
	N, Ldz  int
	A, B    [MaxRows]T
}

// GemvPanel is the argument of the functions of GemvPanels, on R = Rows rows of a tile: z_ri
// is Z[r·Ldz+i] for i < N. V and Sum are N vectors v_i and s_i of Width elements, X
// and Y are R of them. Y and Sum do not overlap.
//
// The field order is known to tools/asmgen.
type GemvPanel[T Float] struct {
	Z, V, Sum, X, Y *T
	N, Ldz          int
}

// Kernels is what a tier offers in one precision.
type Kernels[T Float] struct {
	MR, NR int // rows and columns of a register tile

	PackA, PackB Packer[T] // panels of MR, and of NR

	// UnpackB is the reverse of PackB.Transpose: A is a packed panel of NR, K
	// columns, a multiple of 8; C becomes its NR rows, Ldc elements apart.
	UnpackB func(*Tile[T])

	// Gemm, SqDist, L1 and Chi2 are Tile with s(a, b) = ab, (a−b)², |a−b| and
	// (a−b)²/(a+b), which is 0 for 0/0; of Chi2 a, b ≥ 0.
	Gemm, SqDist, L1, Chi2 func(*Tile[T])

	// Sparse is C ← A B for a few rows of A that have many zeros in common.
	Sparse func(*Sparse[T])

	// Trsm solves L₁₁X₁ = B₁ − L₁₀X₀ on packed panels: A holds one panel with
	// the K columns of L₁₀ and then the MR columns of the lower triangle L₁₁,
	// whose diagonal is stored inverted; B holds K rows X₀ and then MR rows
	// B₁, which become X₁. The other fields are not used.
	Trsm func(*Tile[T])

	// The kernels on matrices as they lie; see Direct. Fields that are not
	// named are not used, but for C, M and Ldc.
	//
	// GemmDirect is C ← α A B + β C, A M × K and C M × N, and SyrkDirect the
	// same on the triangle of C that Part names. With β = 0, C is not read.
	GemmDirect, SyrkDirect func(*Direct[T])
	// TrsmDirect is C ← α L⁻¹ C and TrmmDirect is C ← α L C for the lower
	// triangle L of A, M × M, and C M × N. With Flag ≠ 0 the diagonal counts as
	// ones. What lies above it is not read.
	TrsmDirect, TrmmDirect func(*Direct[T])
	// PotrfDirect factors C, M × M, of which it reads and writes the upper
	// triangle: C = UᵀU. Flag becomes 0, or 1 plus the index of a pivot that is
	// not positive and finite, which then stands in C's diagonal.
	PotrfDirect func(*Direct[T])
	// TransposeDirect is C ← Aᵀ for A M × N with columns 1 apart, or, with
	// Part, on that triangle of C; of the upper one up to three elements left
	// of the diagonal become undefined.
	TransposeDirect func(*Direct[T])

	// Affine is x ← A·x + B; Add is x ← x + y; Mul is x ← x·y, Y may be X;
	// Sqrt is x ← √max(x, 0). A NaN stays one.
	Affine, Add, Mul, Sqrt func(*Span[T])
	// Exp is x ← exp(A·x + B), within 1 ulp of the exponential of the rounded
	// argument; overflow gives Inf, and results below the normal range lose
	// digits gradually.
	Exp func(*Span[T])

	// The functions that follow are exact to the stated part of a unit in the
	// last place (ulp) for every argument, near zeros of the result too; what
	// was found is in brackets. In float32, which they compute in float64 and
	// round at the end, it is 0.51 ulp for each [0.503]. A NaN stays one.

	// Log is x ← ln x within 0.51 ulp [0.500]: −Inf for 0, NaN for x < 0.
	Log func(*Span[T])
	// Pow is x ← (B·x + C)^A within 0.9 ulp [0.692] of the power of the exact
	// base while B·x and C are not negative, and otherwise of a base that has
	// been rounded. A may be of any size. A negative base gives NaN; 0 and Inf
	// give 0 or Inf by the sign of A; with A = 0 both give 1.
	Pow func(*Span[T])
	// Tanh is x ← tanh(A·x + B) within 1 ulp [0.677] of that of the argument
	// rounded to float64.
	Tanh func(*Span[T])
	// Sin is x ← sin(A·x) and Cos is x ← cos(A·x) within 0.8 ulp [0.715] of
	// that of the argument rounded to float64; ±Inf gives NaN. Arguments beyond
	// 2³⁰ are reduced one by one, in portable Go.
	Sin, Cos func(*Span[T])

	// Distance is x ← (A + y) − 2x, that is ‖a−b‖² from aᵀb and the squared
	// norms A and y. Flag is not 0 when any result is not at least B·(A + y),
	// so that a sum from the differences would be more exact.
	Distance func(*Span[T])

	// DistanceExp is Distance and then x ← exp(C·x) for C ≤ 0; where Distance
	// would set Flag, x becomes −1 too, which no exponential is.
	DistanceExp func(*Span[T])
	// DistanceExpTo is DistanceExp with the results in Z, stored past the
	// caches where the tier can, and X left as it was. Z is aligned to 64
	// bytes, and does not overlap X. Another goroutine may read Z after a
	// locked instruction of this one, such as an atomic addition.
	DistanceExpTo func(*Span[T])

	// MaternExp is x ← (1 + B·t + C·t²) exp(−t) with t = A·√max(x, 0), for A, B and
	// C ≥ 0: the Matérn kernels. An infinite x gives 0, a NaN stays one.
	MaternExp func(*Span[T])

	// Dot is Σ x_i y_i and Axpy is y ← y + a·x for n elements.
	Dot  func(n int, x, y *T) T
	Axpy func(n int, a T, x, y *T)
	// DotAxpy is B ← Σ z_i y_i and x ← x + A·z in one pass over z. Here N may be any
	// number.
	DotAxpy func(*Span[T])

	// Dot4 is B_r ← Σ_i z_ri y_i and Axpy4 is x ← x + Σ_r A_r z_r for four rows z_r;
	// DotAxpy8 and DotAxpy12 are both, for eight and for twelve.
	Dot4, Axpy4, DotAxpy8, DotAxpy12 func(*Rows[T])

	// Codes1 is x_i ← x_i + Σ_r a_r z_ri and b_r ← b_r + Σ_i z_ri y_i for a panel of
	// codes, Codes2 the same for two columns. B has CodeLanes sums for each row of a
	// column, which are to be added up.
	Codes1, Codes2 func(*Codes[T])
	CodeLanes      int
	// Encode stores X as a row of such a panel, from Z on: A·x + B rounded to the nearest
	// of 0 … 65535. N is a multiple of CodeSpan; Z is the address of a uint16. Flag is
	// not 0 when any A·x + B is not a number from −1/2 to 65535 + 1/2.
	Encode func(*Span[T])

	// Gemm16 is Scaled, and Round16, which float64 does not have, is Z ← A·x rounded to
	// int16 and x ← B·z, N a multiple of CodeSpan. Neither looks for an overflow. They
	// are nil where Gemm in float32 is as fast.
	Gemm16  func(*Scaled[T])
	Round16 func(*Span[T])

	// Gemv is y ← α A x + β y, GemvT is y ← α Aᵀ x + β y and Ger is
	// A ← A + α x yᵀ for an m × n matrix A in rows lda apart, m, n ≥ 1. With
	// β = 0, y is not read. x, y and A do not overlap where one is written.
	Gemv, GemvT func(m, n int, alpha T, a *T, lda int, x *T, beta T, y *T)
	Ger         func(m, n int, alpha T, x, y, a *T, lda int)

	// Trsv is x ← L⁻¹ x for a small lower triangle: element (i, p) is ars·i + acs·p
	// elements from a, and those of x are incX apart. Any distance may be negative.
	// With unit the diagonal counts as ones.
	Trsv func(n int, unit bool, a *T, ars, acs int, x *T, incX int)

	// Syr2k is C ← α (A Bᵀ + B Aᵀ) + β C on a triangle of C, n × n, with A and B
	// n × k, of which rows lie in one piece, for a small n and k. With β = 0, C is not
	// read.
	Syr2k func(lower bool, n, k int, alpha T, a *T, lda int, b *T, ldb int, beta T, c *T, ldc int)

	// GemvPanels work on strips of columns, the narrowest first; each is of use for more
	// columns than the one before it has.
	GemvPanels []GemvPanels[T]

	// Peak is N times MR·NR multiplications and additions in registers: how
	// fast the machine can be. N ≥ 1; the memory of the Span is not used.
	Peak func(*Span[T])
}

// A Packer packs whole panels of Width rows. In its argument A is the source,
// whose rows (or columns, for Copy) are Lda elements apart, and C the packed
// panels; B, N, Alpha and Beta are not used.
type Packer[T Float] struct {
	Width int
	// Transpose packs one panel of K columns, K a multiple of 8; each row of
	// the source lies in one piece.
	Transpose func(*Tile[T])
	// Copy packs M ≥ 1 panels of K columns, Ldc elements apart; each column of
	// all panels lies in one piece.
	Copy func(*Tile[T])
}

// GemvPanels is what works on strips of Width columns, with Rows rows of a tile.
type GemvPanels[T Float] struct {
	Width, Rows int
	// Apply is y_r ← y_r + Σ_i z_ri v_i. ApplyPair is also s_i ← s_i + Σ_r z_ri x_r, for a
	// tile beside the diagonal of a symmetric matrix, in one pass over it.
	Apply, ApplyPair func(*GemvPanel[T])
}

// A Feature is a processor feature that a tier's assembly needs.
type Feature struct {
	Name string // as in the "Requires" lines of the assembly
	Has  bool   // the processor and the operating system have it
}

// A Tier is an instruction set: what it needs, and its kernels.
type Tier struct {
	Name     string
	Features []Feature
	Optional []Feature // what functions need that are replaced where it is missing
	Short    bool      // ShortDotF64 and its like need no more than this tier
	// Pairs is how much faster Gemm16 is than Gemm in float32, in multiplications of one
	// number by another; 0 where it is not.
	Pairs float64
	F32   Kernels[float32]
	F64   Kernels[float64]
}

// Missing names the first feature that the machine lacks, or is empty.
func (t *Tier) Missing() string {
	for _, f := range t.Features {
		if !f.Has {
			return f.Name
		}
	}
	return ""
}

// Tiers lists the tiers that were compiled in, the fastest first and the
// generic one last.
func Tiers() []*Tier {
	tiers, portable := assembled(), generic()
	portable.Short = len(tiers) == 0
	return append(tiers, portable)
}

// ShortBytes is how long a vector may be for ShortDotF64 and its like to pay.
const ShortBytes = 1024

// generic is the tier in portable Go.
func generic() *Tier {
	t := &Tier{Name: "generic", F32: genericKernels[float32](), F64: genericKernels[float64]()}
	t.F64.Gemm16 = gemm16Generic[float64]
	t.F32.Gemm16, t.F32.Round16 = gemm16Generic[float32], round16Generic[float32]
	return t
}

func genericKernels[T Float]() Kernels[T] {
	return Kernels[T]{
		MR: genericMR, NR: genericNR,
		PackA: genericPacker[T](genericMR), PackB: genericPacker[T](genericNR),
		UnpackB: unpackGeneric[T],
		Gemm:    tileGeneric[T, product[T]],
		SqDist:  tileGeneric[T, squaredDifference[T]],
		L1:      tileGeneric[T, absoluteDifference[T]],
		Chi2:    tileGeneric[T, chiSquare[T]],
		Sparse:  sparseGeneric[T],
		Trsm:    trsmGeneric[T],

		GemmDirect: gemmDirectGeneric[T], SyrkDirect: gemmDirectGeneric[T],
		TrsmDirect: trsmDirectGeneric[T], TrmmDirect: trmmDirectGeneric[T],
		PotrfDirect: potrfDirectGeneric[T], TransposeDirect: transposeDirectGeneric[T],

		Affine: affineGeneric[T], Add: addGeneric[T], Mul: mulGeneric[T], Sqrt: sqrtGeneric[T],
		Exp: expGeneric[T], Log: logGeneric[T], Pow: powGeneric[T], Tanh: tanhGeneric[T],
		Sin: sinGeneric[T], Cos: cosGeneric[T],
		Distance: distanceGeneric[T], DistanceExp: distanceExpGeneric[T], DistanceExpTo: distanceExpToGeneric[T], MaternExp: maternExpGeneric[T],
		Dot: dotGeneric[T], Axpy: axpyGeneric[T], DotAxpy: dotAxpyGeneric[T],
		Dot4: dot4Generic[T], Axpy4: axpy4Generic[T], DotAxpy8: dotAxpy8Generic[T], DotAxpy12: dotAxpy12Generic[T], Peak: peakGeneric[T],
		Codes1: codes1Generic[T], Codes2: codes2Generic[T], CodeLanes: 1, Encode: encodeGeneric[T],
		Gemv: gemvGeneric[T], GemvT: gemvTGeneric[T], Ger: gerGeneric[T], Trsv: trsvGeneric[T], Syr2k: syr2kGeneric[T],
		GemvPanels: []GemvPanels[T]{{Width: genericPanelCols, Rows: genericPanelRows, Apply: gemvPanelGeneric[T], ApplyPair: gemvPanelPairGeneric[T]}},
	}
}

// at is the n elements at p+offset.
func at[T Float](p *T, offset, n int) []T {
	return unsafe.Slice((*T)(unsafe.Add(unsafe.Pointer(p), offset*int(unsafe.Sizeof(*p)))), n)
}
