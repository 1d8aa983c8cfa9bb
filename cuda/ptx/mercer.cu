// The device functions, in both precisions. tools/ptxgen compiles this file to
// PTX; cuda/cudatest compiles it for the processor.
//
// Matrices have any strides, in elements: element (i, j) of A is A[i*rs + j*cs].
// Every function does the same sums in the same order whatever the device.

#include "common.cuh"

#define T float
#define FN(name) name##_f32
#include "dense.cuh"
#include "solve.cuh"
#include "gram.cuh"
#include "grammul.cuh"
#undef T
#undef FN

#define T double
#define FN(name) name##_f64
#include "dense.cuh"
#include "solve.cuh"
#include "gram.cuh"
#include "grammul.cuh"
#undef T
#undef FN

#include "convert.cuh"
