// Package cpu is the backend that runs on the processor. It implements blocked matrix products, triangular solves,
// the Cholesky factorization and fused Gram matrices in portable Go, which calls the micro-kernels of package
// internal/ukr. The micro-kernels for one instruction set are called a tier. The driver "cpu" offers one device
// for each tier that the machine can run: cpu/avx512, cpu/avx2 and cpu/generic, or on arm64 cpu/neon and
// cpu/generic. The tier neon is tested under an emulator; its speed has not been measured.
//
// # The five loops
//
// All of level 3 runs in the loops of Goto and van de Geijn (2008) as BLIS numbers them, around a
// register tile of MR × NR:
//
//	loop 5   jc over the columns of C, NC at a time
//	loop 4     pc over k, KC at a time            pack B: KC × NC, shared
//	             tasks: an idle worker takes the next task
//	loop 3       ic over the rows, up to MC       pack A: MC × KC, one for each worker
//	loop 2         jr over the task's columns, NR at a time
//	loop 1           ir over its rows, MR at a time       (in the micro-kernel)
//	                   Σ over KC in registers
//
// Packed B stays in the third-level cache, the packed A of a task in the second-level cache, and
// one panel of B (KC × NR) in the first-level or second-level cache. The sizes are in blocking.go.
//
// The factorizations use these products. In potrf.go, one worker factors the next block on the diagonal while the other
// workers compute a product (look-ahead); reduced.go does the same with products of 16-bit integers. Triangular solves
// keep tiles of packed panels in registers (trsm.go). Products of a matrix with a small number of vectors (symv.go) and
// small problems (small.go) use unpacked matrices, because packing would take longer than the product.
//
// # Packed panels
//
// A is packed into panels of MR rows, stored column after column; B into panels of NR columns,
// stored row after row; both padded with zeros:
//
//	A, MR = 4                        B, NR = 3
//	┌ 0  4  8 … ┐ panel 0            ┌ 0  1  2 ┐┌ … ┐
//	│ 1  5  9   │                    │ 3  4  5 ││   │
//	│ 2  6 10   │                    │ 6  7  8 ││   │
//	│ 3  7 11   │                    └ …       ┘└   ┘
//	├ …         ┤ panel 1             panel 0    panel 1
//
// Both are "panels of W rows", of A and of Bᵀ, so one function packs them. Operands are views with
// any row and column stride, so transposition and reversal take no time beyond the packing.
//
// # Sparse points
//
// The Gram matrix of sparse points is computed tile by tile (sparsegram.go). The common elements of two rows are
// found in the lists of the columns (csr.go); columns that many rows store are multiplied by the micro-kernel.
// Products with dense matrices are in sparsegemm.go.
//
// # Results do not depend on the workers
//
// The order of summation of an element depends only on the shapes. The size of a task may depend on the number of
// workers, but tasks begin at whole register tiles, so that the same instructions compute an element.
package cpu
