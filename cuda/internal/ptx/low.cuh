// K·V without storing K, for points of few features, which a thread keeps in registers.

// one_pair evaluates the kernel of a pair from its statistic s: the squared distance or, for
// ONE_LAPLACE, the sum of the absolute differences. In float32 it uses exp2 and log2 instead of
// exp and ln; the constants one_a, one_b and one_c are chosen accordingly.
template <int KERNEL> __device__ __forceinline__ T FN(one_pair)(T s, T a, T b, T c)
{
	if (KERNEL == ONE_GAUSS || KERNEL == ONE_LAPLACE)
		return FN(base_exp)(a * s);
	if (KERNEL == ONE_RATIONAL)
		return FN(base_exp)(b * FN(base_log)(1 + a * s));
	T t = a * FN(quick_root)(s);
	if (KERNEL == ONE_MATERN12)
		return FN(base_exp)(-t);
	t = at_most(t, (T)1200); // exp(−t) is 0 from 1200 on, and ∞·0 would be NaN
	return (1 + t * (KERNEL == ONE_MATERN32 ? b : b + t * c)) * FN(base_exp)(-t);
}

template <int KERNEL> __device__ __forceinline__ T FN(one_a)(const struct Program &p)
{
	return finite_(KERNEL == ONE_RATIONAL ? p.form_a : p.form_a * FN(base)(), (T)0);
}
template <int KERNEL> __device__ __forceinline__ T FN(one_b)(const struct Program &p)
{
	return (T)(KERNEL == ONE_RATIONAL ? p.form_b : p.form_b / FN(base)());
}
template <int KERNEL> __device__ __forceinline__ T FN(one_c)(const struct Program &p)
{
	return (T)(p.form_c / (FN(base)() * FN(base)()));
}

// one_column does the same as gram_mul for d ≤ D and one column of V. A thread has R rows, so
// that each point of the tile is read from shared memory once for all R rows.
//
// The table lists the instructions for a pair of points in float32 (a 16th of the loop for 16 pairs
// that ptxas 11.8 makes for sm_90) and an upper bound of the pairs in a second:
//
//	             D = 3   D = 8   functions               bound for D = 3
//	Gaussian       9.5    20.0   exp2                    3.5e12, by instructions
//	Laplacian      9.5    20.0   exp2                    3.5e12, by instructions
//	Matérn 1/2    10.5    21.0   root, exp2              2.1e12, by functions
//	Matérn 3/2    13.5    24.0   root, exp2              2.1e12, by functions
//	Matérn 5/2    14.5    25.0   root, exp2              2.1e12, by functions
//	rational      37.6    49.9   exp2; log2 is a sum     0.9e12, by instructions
//
// The Gaussian with D = 3 takes 3 differences, 3 multiply-adds for the squares, the product with a,
// exp2, the multiply-add with v, a quarter of the load of (z, v), and a quarter of the loop's own
// instructions. A multiprocessor issues 128 instructions a cycle, of which 16 may be functions. The
// bounds are for 132 multiprocessors at 1.98 GHz. No registers are spilled.
template <int D, int KERNEL>
__device__ __forceinline__ void FN(one_column)(int n, int m, int d, const T *X, i64 xs, const T *Z, i64 zs, const T *V, i64 vs, T *partial, int share, T a, T b, T c)
{
	enum { R = sizeof(T) == 4 ? 4 : 2, LANE = 16 / sizeof(T), PARTS = (D + LANE) / LANE };
	struct __align__(16) Part {
		T e[LANE];
	};
	__shared__ Part Zs[THREADS][PARTS]; // z, and v behind it
	i64 i0 = (i64)blockIdx.x * (R * THREADS) + threadIdx.x;
	T x[R][D], out[R];
#pragma unroll
	for (int r = 0; r < R; r++) {
		i64 i = i0 + r * THREADS;
#pragma unroll
		for (int q = 0; q < D; q++)
			x[r][q] = i < n && q < d ? X[i * xs + q] : (T)0;
		out[r] = 0;
	}
	i64 from = (i64)blockIdx.y * share * THREADS, to = from + (i64)share * THREADS;
	for (i64 j0 = from; j0 < to && j0 < m; j0 += THREADS) {
		i64 j = j0 + threadIdx.x;
#pragma unroll
		for (int q = 0; q < PARTS * LANE; q++) {
			T value = 0;
			if (j < m && q < d && q < D)
				value = Z[j * zs + q];
			if (j < m && q == D)
				value = V[j * vs];
			Zs[threadIdx.x][q / LANE].e[q % LANE] = value;
		}
		__syncthreads();
		// Points beyond m contribute k(x, 0)·0, which is NaN only if x contains NaN.
		int count = m - j0 < THREADS ? (int)(m - j0 + 3) / 4 * 4 : THREADS;
		T sum[R];
#pragma unroll
		for (int r = 0; r < R; r++)
			sum[r] = 0;
#pragma unroll 4
		for (int k = 0; k < count; k++) {
			T z[PARTS * LANE];
#pragma unroll
			for (int w = 0; w < PARTS; w++) {
				Part part = Zs[k][w];
#pragma unroll
				for (int q = 0; q < LANE; q++)
					z[w * LANE + q] = part.e[q];
			}
#pragma unroll
			for (int r = 0; r < R; r++) {
				T s = 0;
#pragma unroll
				for (int q = 0; q < D; q++) {
					T diff = x[r][q] - z[q];
					s += KERNEL == ONE_LAPLACE ? abs_(diff) : diff * diff;
				}
				sum[r] += FN(one_pair)<KERNEL>(s, a, b, c) * z[D];
			}
		}
#pragma unroll
		for (int r = 0; r < R; r++)
			out[r] += sum[r];
		__syncthreads();
	}
#pragma unroll
	for (int r = 0; r < R; r++) {
		i64 i = i0 + r * THREADS;
		if (i < n)
			partial[(i64)blockIdx.y * n + i] = out[r];
	}
}

#define ONE(NAME, D, KERNEL)                                                                                                 \
	extern "C" __global__ void __launch_bounds__(THREADS)                                                                \
	FN(NAME##_mul##D)(int n, int m, int d, const T *X, i64 xs, const T *Z, i64 zs, const T *V, i64 vs, int, T *partial,  \
		int share, const struct Program p)                                                                           \
	{                                                                                                                    \
		FN(one_column)<D, KERNEL>(n, m, d, X, xs, Z, zs, V, vs, partial, share, FN(one_a)<KERNEL>(p),                \
			FN(one_b)<KERNEL>(p), FN(one_c)<KERNEL>(p));                                                         \
	}

ONE(gauss, 3, ONE_GAUSS)
ONE(gauss, 4, ONE_GAUSS)
ONE(gauss, 8, ONE_GAUSS)
ONE(gauss, 16, ONE_GAUSS)
ONE(laplace, 3, ONE_LAPLACE)
ONE(laplace, 8, ONE_LAPLACE)
ONE(matern12, 3, ONE_MATERN12)
ONE(matern12, 8, ONE_MATERN12)
ONE(matern32, 3, ONE_MATERN32)
ONE(matern32, 8, ONE_MATERN32)
ONE(matern52, 3, ONE_MATERN52)
ONE(matern52, 8, ONE_MATERN52)
ONE(rational, 3, ONE_RATIONAL)
ONE(rational, 8, ONE_RATIONAL)
#undef ONE

// gram_mul_low does the same as gram_mul for d ≤ D features, several columns, one statistic
// without factors (DOT, SQDIST or L1) and a form that needs no interpreter. A thread has one row,
// keeps its point in registers, and processes the points of its share, which the block reads
// into shared memory tile by tile.
#define LOW(D)                                                                                                               \
	extern "C" __global__ void __launch_bounds__(THREADS)                                                                \
	FN(gram_mul_low##D)(int n, int m, int d, const T *X, i64 xs, const T *Z, i64 zs, const T *V, i64 vs, int t,          \
		T *partial, int share, const struct Program p)                                                               \
	{                                                                                                                    \
		__shared__ T Zs[THREADS][D], Vs[THREADS][WIDE];                                                              \
		i64 i = (i64)blockIdx.x * THREADS + threadIdx.x;                                                             \
		T x[D], out[WIDE];                                                                                           \
		_Pragma("unroll") for (int q = 0; q < D; q++) x[q] = i < n && q < d ? X[i * xs + q] : (T)0;                  \
		_Pragma("unroll") for (int c = 0; c < WIDE; c++) out[c] = 0;                                                 \
		int kind = p.stat[0].kind;                                                                                   \
		i64 from = (i64)blockIdx.y * share * THREADS, to = from + (i64)share * THREADS;                              \
		for (i64 j0 = from; j0 < to && j0 < m; j0 += THREADS) {                                                      \
			i64 j = j0 + threadIdx.x;                                                                            \
			_Pragma("unroll") for (int q = 0; q < D; q++)                                                        \
				Zs[threadIdx.x][q] = j < m && q < d ? Z[j * zs + q] : (T)0;                                  \
			_Pragma("unroll") for (int c = 0; c < WIDE; c++)                                                     \
				Vs[threadIdx.x][c] = j < m && c < t ? V[j * vs + c] : (T)0;                                  \
			__syncthreads();                                                                                     \
			int count = m - j0 < THREADS ? (int)(m - j0) : THREADS;                                              \
			_Pragma("unroll 2") for (int b = 0; b < count; b++)                                                  \
			{                                                                                                    \
				T s = 0;                                                                                     \
				_Pragma("unroll") for (int q = 0; q < D; q++)                                                \
				{                                                                                            \
					T z = Zs[b][q], diff = x[q] - z;                                                     \
					s += kind == DOT ? x[q] * z : kind == SQDIST ? diff * diff : abs_(diff);             \
				}                                                                                            \
				T k = FN(form)(p, s);                                                                        \
				_Pragma("unroll") for (int c = 0; c < WIDE; c++) out[c] += k * Vs[b][c];                     \
			}                                                                                                    \
			__syncthreads();                                                                                     \
		}                                                                                                            \
		if (i < n)                                                                                                   \
			_Pragma("unroll") for (int c = 0; c < WIDE; c++)                                                     \
				if (c < t)                                                                                   \
					partial[((i64)blockIdx.y * n + i) * t + c] = out[c];                                 \
	}

LOW(3)
LOW(8)
LOW(16)
#undef LOW
