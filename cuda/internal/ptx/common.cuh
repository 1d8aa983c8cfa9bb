// Constants, types and functions for both precisions.

typedef long long i64;

// A block has 16 × 16 threads and computes a tile of 64 × 64 results: thread (tx, ty) computes
// the results in the rows ty + 16r and the columns tx + 16c, r and c < 4.
#define SIDE 16
#define EACH 4
#define TILE 64
#define THREADS 256
#define DEPTH 16 // of the operands' tiles in shared memory

#define WIDE 8 // the most columns of V that a product without K takes at a time
#define THIN 4 // the most columns of a product that reads A once
#define BLOCK 32 // the order of a block of a solve or a factorisation

// Parts of a square matrix; see backend.Uplo.
#define WHOLE 0
#define LOWER 1
#define UPPER 2

#define IN_PART(part, i, j) ((part) == WHOLE || ((part) == LOWER ? (i) >= (j) : (i) <= (j)))

// Statistics and operations: the values of kernels.StatKind and kernels.Op.
enum { DOT, SQDIST, L1, COSSUM, SINSUM, SINC, CHI2, ENTRY, SELFX, SELFZ, ROOTX, ROOTZ };
enum { LOAD, CONST, AFFINE, ADD, MUL, POWINT, SQRT, EXP, POW, TANH, COS, SIN, LOG };

#define MAX_STATS 16
#define MAX_CODE 96
#define MAX_DEPTH 8

// Program is a kernel as package cuda passes it by value; see cuda/program.go.
struct Stat {
	int kind;
	int count;          // of frequencies
	const void *scale;  // d elements of T, or null
	const void *freqs;  // count doubles
	const void *x, *z;  // of SELFX … ROOTZ: a value for each point
};

struct Instr {
	int op, arg;
	double a, b;
};

// The form of a program is its formula if it is evaluated without the interpreter, and otherwise
// GENERAL. With t = a√s the other forms are s, exp(a·s), (1 + b·t + c·t²) exp(−t) and (1 + a·s)^b.
enum { GENERAL, IDENTITY, EXPONENTIAL, MATERN, RATIONAL };

// These kernels have separate functions for points of few features; see low.cuh.
enum { ONE_GAUSS, ONE_LAPLACE, ONE_MATERN12, ONE_MATERN32, ONE_MATERN52, ONE_RATIONAL };

struct Program {
	int stats, code, form;
	float exponent; // of EXPONENTIAL: a/ln 2, a finite number
	double form_a, form_b, form_c;
	struct Stat stat[MAX_STATS];
	struct Instr instr[MAX_CODE];
};

__device__ static inline double nan_() { return sqrt(-1.0); }
__device__ static inline float root_(float x) { return sqrtf(x); }
__device__ static inline double root_(double x) { return sqrt(x); }
__device__ static inline float exp_(float x) { return expf(x); }
__device__ static inline double exp_(double x) { return exp(x); }
__device__ static inline float log_(float x) { return logf(x); }
__device__ static inline double log_(double x) { return log(x); }
__device__ static inline float abs_(float x) { return fabsf(x); }
__device__ static inline double abs_(double x) { return fabs(x); }
__device__ static inline float rint_(float x) { return rintf(x); }
__device__ static inline double rint_(double x) { return rint(x); }

// finite_ returns a if it is finite, and otherwise a finite number, so that its product with 0 is 0.
__device__ static inline float finite_(double a, float) { return a < -3.4e38 ? -3.4e38f : a > 3.4e38 ? 3.4e38f : (float)a; }
__device__ static inline double finite_(double a, double) { return a; }

// at_most returns the smaller of two numbers, and NaN if t is NaN.
__device__ static inline float at_most(float t, float most)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
	float y;
	asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(t), "f"(most));
	return y;
#else
	return t > most ? most : t;
#endif
}
__device__ static inline double at_most(double t, double most) { return t > most ? most : t; }

// exp2 in float32 is one instruction with an error of at most 2 ulp; the square root is one
// instruction and a product, with an error of at most 1 ulp. Denormal results become 0.
__device__ static inline float exp2_(float x)
{
#ifdef __CUDACC__
	float y;
	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
#else
	return exp2f(x);
#endif
}

// half_ rounds x to FP16, to nearest; a finite x gives a finite number.
__device__ static inline unsigned short half_(float x)
{
	const float most = 65504;
	if (fabsf(x) > most && !isinf(x))
		x = x < 0 ? -most : most;
#ifdef __CUDACC__
	unsigned short h;
	asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
	return h;
#else
	return sim::half(x);
#endif
}

__device__ static inline float quick_root_(float x)
{
#ifdef __CUDACC__
	float y;
	asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
#else
	return sqrtf(x);
#endif
}
