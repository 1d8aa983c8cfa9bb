// Package cpu is the backend that runs on the processor: blocked matrix products, triangular
// solves, Cholesky factorization and fused Gram matrices in portable Go over the micro-kernels of
// package internal/ukr. It names no instruction set; the driver "cpu" offers one device for each
// tier of ukr that the machine can run: cpu/avx512, cpu/avx2, cpu/generic, or on arm64 cpu/neon,
// cpu/generic. The tier neon is tested under an emulator; its speed is predicted, in
// bench/results/arm64-prediction.md, and has not been measured. An idle worker takes the next task,
// so that on arm64 processors with cores of different speeds, slow cores get fewer tasks than fast
// cores. The gain from this has not been measured.
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
// Packed B stays in the third-level cache, a task's packed A in the second, one panel of B (KC ×
// NR) in the first or second. The sizes are in blocking.go.
//
// The factorizations use these products: potrf.go looks ahead, so that a block on the diagonal is
// factored while a product runs, and reduced.go does the same with products of 16-bit integers;
// trsm.go solves packed panels in registers. Products of a matrix with a small number of vectors
// (symv.go) and small problems (small.go) do not pack, because packing would cost more than the
// product.
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
// Gram matrices of sparse points (sparsegram.go) find the common elements of two rows in the lists
// of the columns (csr.go), tile by tile; columns that most rows store go to the micro-kernel.
// Products with dense matrices are in sparsegemm.go.
//
// # Results do not depend on the workers
//
// The order of summation of an element depends only on the shapes. The size of a task may depend on
// the number of workers, but tasks begin at whole register tiles, so that an element is always
// computed by the same instructions.
package cpu
