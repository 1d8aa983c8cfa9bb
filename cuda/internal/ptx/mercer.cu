// The device functions, in both precisions. tools/ptxgen compiles this file to
// PTX; cuda/cudatest compiles it for the processor.
//
// Matrices may have any strides, counted in elements: element (i, j) of A is A[i*rs + j*cs].
// Every function adds its terms in an order that does not depend on the device.

#include "common.cuh"

#define T float
#define FN(name) name##_f32
// In float32, exp(s) is computed as 2 to the power s·base, because a power of 2 is one instruction.
__device__ static inline double base_f32() { return 1.4426950408889634; }
__device__ static inline float base_exp_f32(float t) { return exp2_(t); }
__device__ static inline float base_log_f32(float t) { return log2f(t); }
__device__ static inline float quick_root_f32(float t) { return quick_root_(t); }
#include "dense.cuh"
#include "thin.cuh"
#include "fixed.cuh"
#include "solve.cuh"
#include "gram.cuh"
#include "grammul.cuh"
#include "low.cuh"
#undef T
#undef FN

#define T double
#define FN(name) name##_f64
__device__ static inline double base_f64() { return 1; }
__device__ static inline double base_exp_f64(double t) { return exp(t); }
__device__ static inline double base_log_f64(double t) { return log(t); }
__device__ static inline double quick_root_f64(double t) { return sqrt(t); }
#include "dense.cuh"
#include "thin.cuh"
#include "fixed.cuh"
#include "solve.cuh"
#include "gram.cuh"
#include "grammul.cuh"
#include "low.cuh"
#undef T
#undef FN

#include "convert.cuh"
