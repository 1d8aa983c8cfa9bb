// The device functions, in both precisions. tools/ptxgen compiles this file to
// PTX; cuda/cudatest compiles it for the processor.
//
// Matrices have any strides, in elements: element (i, j) of A is A[i*rs + j*cs].
// Every function does the same sums in the same order whatever the device.

#include "common.cuh"

#define T float
#define FN(name) name##_f32
// exp(a s) is exp2 of s and a/ln 2 in float32, where that is an instruction.
__device__ static inline float gauss_scale_f32(double a)
{
	a *= 1.4426950408889634;
	return a < -3.4e38 ? -3.4e38f : a > 3.4e38 ? 3.4e38f : (float)a; // finite: times 0 it is 0
}
__device__ static inline float gauss_f32(float t) { return exp2_(t); }
#include "dense.cuh"
#include "solve.cuh"
#include "gram.cuh"
#include "grammul.cuh"
#undef T
#undef FN

#define T double
#define FN(name) name##_f64
__device__ static inline double gauss_scale_f64(double a) { return a; }
__device__ static inline double gauss_f64(double t) { return exp(t); }
#include "dense.cuh"
#include "solve.cuh"
#include "gram.cuh"
#include "grammul.cuh"
#undef T
#undef FN

#include "convert.cuh"
