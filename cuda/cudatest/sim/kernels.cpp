// This file compiles the device functions for the CPU.

#include "cuda_cpu.h"

#include "mercer.cu"

#define BOTH(name, barriers)                                          \
	sim::add(#name "_f32", sim::kernel(barriers, &name##_f32)); \
	sim::add(#name "_f64", sim::kernel(barriers, &name##_f64));

static const bool added = [] {
	BOTH(gemm, true)
	BOTH(scale, false)
	BOTH(copy, false)
	BOTH(add_diag, false)
	BOTH(col_axpy, false)
	BOTH(thin_rows, true)
	BOTH(thin_cols, true)
	BOTH(thin_sum, true)
	BOTH(thin_symm, true)
	BOTH(fixed_symm, true)
	BOTH(fixed_symm1, true)
	BOTH(encode, false)
	BOTH(decode, false)
	BOTH(col_dot, true)
	BOTH(trsm_block, true)
	BOTH(potrf_block, true)
	BOTH(check_diag, true)
	BOTH(gram, true)
	BOTH(self, false)
	BOTH(gram_mul, true)
	BOTH(gram_dot, true)
	BOTH(gram_sqdist, true)
	BOTH(gram_scaled, true)
	BOTH(gram_mul_dot, true)
	BOTH(gram_mul_sqdist, true)
	BOTH(gram_mul_scaled, true)
	BOTH(gram_mul_dot1, true)
	BOTH(gram_mul_sqdist1, true)
	BOTH(gram_mul_scaled1, true)
	BOTH(gram_symv_dot, true)
	BOTH(gram_symv_sqdist, true)
	BOTH(gram_symv_scaled, true)
	BOTH(gauss_mul3, true)
	BOTH(gauss_mul4, true)
	BOTH(gauss_mul8, true)
	BOTH(gauss_mul16, true)
	BOTH(laplace_mul3, true)
	BOTH(laplace_mul8, true)
	BOTH(matern12_mul3, true)
	BOTH(matern12_mul8, true)
	BOTH(matern32_mul3, true)
	BOTH(matern32_mul8, true)
	BOTH(matern52_mul3, true)
	BOTH(matern52_mul8, true)
	BOTH(rational_mul3, true)
	BOTH(rational_mul8, true)
	BOTH(gram_mul_low3, true)
	BOTH(gram_mul_low8, true)
	BOTH(gram_mul_low16, true)
	sim::add("narrow", sim::kernel(false, &narrow));
	sim::add("widen", sim::kernel(false, &widen));
	sim::add("to_half", sim::kernel(false, &to_half));
	sim::add("sum_blocks", sim::kernel(false, &sum_blocks));
	return true;
}();
