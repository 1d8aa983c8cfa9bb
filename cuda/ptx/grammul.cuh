// K·V without K. A block of threads has a tile of rows and goes through its share
// of the columns of K in order; the shares are added up in order afterwards, so
// that the sums do not depend on the device.



// gram_mul writes, for rows of K and its share s of the columns, the products with
// t ≤ WIDE columns of V to partial[(s*n + i)*t + c]. A share has `share` tiles of
// columns.
extern "C" __global__ void __launch_bounds__(THREADS)
FN(gram_mul)(int n, int m, int d, const T *X, i64 xs, const T *Z, i64 zs, const T *V, i64 vs, int t, T *partial, int share, const struct Program p)
{
	__shared__ T Vs[TILE][WIDE], sums[TILE][SIDE + 1];
	int tx = threadIdx.x % SIDE, ty = threadIdx.x / SIDE, id = threadIdx.x;
	i64 i0 = (i64)blockIdx.x * TILE;
	T out[EACH][WIDE];
	for (int r = 0; r < EACH; r++)
		for (int c = 0; c < WIDE; c++)
			out[r][c] = 0;
	i64 from = (i64)blockIdx.y * share * TILE, to = from + (i64)share * TILE;
	for (i64 j0 = from; j0 < to && j0 < m; j0 += TILE) {
		T k[EACH][EACH];
		FN(values)(p, d, X, xs, n, i0, Z, zs, m, j0, k);
		__syncthreads(); // the last tile's V has been used
		for (int e = id; e < TILE * WIDE; e += THREADS) {
			int j = e / WIDE, c = e % WIDE;
			Vs[j][c] = j0 + j < m && c < t ? V[(j0 + j) * vs + c] : (T)0;
		}
		__syncthreads();
		for (int b = 0; b < EACH; b++) {
			int j = tx + SIDE * b;
			if (j0 + j >= m)
				break;
			for (int c = 0; c < WIDE; c++) {
				T v = Vs[j][c];
				for (int r = 0; r < EACH; r++)
					out[r][c] += k[r][b] * v;
			}
		}
	}
	// The 16 threads of a row add up, one column of V after the other.
	for (int c = 0; c < t; c++) {
		__syncthreads();
		for (int r = 0; r < EACH; r++)
			sums[ty + SIDE * r][tx] = out[r][c];
		__syncthreads();
		if (id < TILE && i0 + id < n) {
			T sum = 0;
			for (int x = 0; x < SIDE; x++)
				sum += sums[id][x];
			partial[((i64)blockIdx.y * n + i0 + id) * t + c] = sum;
		}
	}
}

// gram_mul_dot, gram_mul_sqdist and gram_mul_scaled are gram_mul for programs of a
// form with one statistic, as those of gram.
#define FORMED(NAME, KIND, SCALED)                                                                                           \
	extern "C" __global__ void __launch_bounds__(THREADS)                                                                \
	FN(gram_mul_##NAME)(int n, int m, int d, const T *X, i64 xs, const T *Z, i64 zs, const T *V, i64 vs, int t,          \
		T *partial, int share, const struct Program p)                                                               \
	{                                                                                                                    \
		__shared__ T Vs[TILE][WIDE], sums[TILE][SIDE + 1];                                                           \
		int tx = threadIdx.x % SIDE, ty = threadIdx.x / SIDE, id = threadIdx.x;                                      \
		i64 i0 = (i64)blockIdx.x * TILE;                                                                             \
		T out[EACH][WIDE];                                                                                           \
		_Pragma("unroll") for (int r = 0; r < EACH; r++) _Pragma("unroll") for (int c = 0; c < WIDE; c++)            \
			out[r][c] = 0;                                                                                       \
		i64 from = (i64)blockIdx.y * share * TILE, to = from + (i64)share * TILE;                                    \
		for (i64 j0 = from; j0 < to && j0 < m; j0 += TILE) {                                                         \
			T k[EACH][EACH];                                                                                     \
			FN(pairs)<KIND, SCALED>((const T *)p.stat[0].scale, d, X, xs, n, i0, Z, zs, m, j0, k);               \
			for (int e = id; e < TILE * WIDE; e += THREADS) { /* pairs ends with a barrier */                    \
				int j = e / WIDE, c = e % WIDE;                                                              \
				Vs[j][c] = j0 + j < m && c < t ? V[(j0 + j) * vs + c] : (T)0;                                \
			}                                                                                                    \
			__syncthreads();                                                                                     \
			_Pragma("unroll") for (int b = 0; b < EACH; b++)                                                     \
			{                                                                                                    \
				int j = tx + SIDE * b;                                                                       \
				if (j0 + j >= m)                                                                             \
					break;                                                                               \
				_Pragma("unroll") for (int r = 0; r < EACH; r++) k[r][b] = FN(form)(p, k[r][b]);             \
				_Pragma("unroll") for (int c = 0; c < WIDE; c++)                                             \
				{                                                                                            \
					if (c >= t)                                                                          \
						break;                                                                       \
					T v = Vs[j][c];                                                                      \
					_Pragma("unroll") for (int r = 0; r < EACH; r++) out[r][c] += k[r][b] * v;           \
				}                                                                                            \
			}                                                                                                    \
			__syncthreads(); /* V has been used */                                                               \
		}                                                                                                            \
		_Pragma("unroll") for (int c = 0; c < WIDE; c++)                                                             \
		{                                                                                                            \
			if (c >= t)                                                                                          \
				break;                                                                                       \
			__syncthreads();                                                                                     \
			_Pragma("unroll") for (int r = 0; r < EACH; r++) sums[ty + SIDE * r][tx] = out[r][c];                \
			__syncthreads();                                                                                     \
			if (id < TILE && i0 + id < n) {                                                                      \
				T sum = 0;                                                                                   \
				for (int x = 0; x < SIDE; x++)                                                               \
					sum += sums[id][x];                                                                  \
				partial[((i64)blockIdx.y * n + i0 + id) * t + c] = sum;                                      \
			}                                                                                                    \
		}                                                                                                            \
	}

FORMED(dot, DOT, false)
FORMED(sqdist, SQDIST, false)
FORMED(scaled, SQDIST, true)
#undef FORMED

// gauss_mul is gram_mul for exp(a‖x − z‖²), d ≤ D and one column of V: the product
// with a Gaussian kernel of points with few features. A thread has R rows, so that a
// point of the tile is read from shared memory once for all of them.
//
// In float32 and for D = 3 a pair of points takes 9.5 instructions, as ptxas 11.8
// compiles them for sm_90 (152 in the loop for 16 pairs): 3 differences, 3 squares
// that add, the product with a, exp2, the product with v that adds, a quarter of the
// load of (z, v), and a quarter of the loop's own. A multiprocessor issues 128 a
// cycle, so 13.5 pairs, and does 16 exp2: 132 of them at 1.98 GHz do at most 3.5e12
// pairs a second. Nothing spills; 40 registers let 6 blocks share a multiprocessor.
#define GAUSS(D)                                                                                                             \
	extern "C" __global__ void __launch_bounds__(THREADS)                                                                \
	FN(gauss_mul##D)(int n, int m, int d, const T *X, i64 xs, const T *Z, i64 zs, const T *V, i64 vs, int,               \
		T *partial, int share, const struct Program p)                                                               \
	{                                                                                                                    \
		enum { R = sizeof(T) == 4 ? 4 : 2, LANE = 16 / sizeof(T), PARTS = (D + LANE) / LANE };                       \
		struct __align__(16) Part {                                                                                  \
			T e[LANE];                                                                                           \
		};                                                                                                           \
		__shared__ Part Zs[THREADS][PARTS]; /* z, and v behind it */                                                 \
		i64 i0 = (i64)blockIdx.x * (R * THREADS) + threadIdx.x;                                                      \
		T x[R][D], out[R], a = FN(gauss_scale)(p.form_a);                                                            \
		_Pragma("unroll") for (int r = 0; r < R; r++)                                                                \
		{                                                                                                            \
			i64 i = i0 + r * THREADS;                                                                            \
			_Pragma("unroll") for (int q = 0; q < D; q++) x[r][q] = i < n && q < d ? X[i * xs + q] : (T)0;       \
			out[r] = 0;                                                                                          \
		}                                                                                                            \
		i64 from = (i64)blockIdx.y * share * THREADS, to = from + (i64)share * THREADS;                              \
		for (i64 j0 = from; j0 < to && j0 < m; j0 += THREADS) {                                                      \
			i64 j = j0 + threadIdx.x;                                                                            \
			_Pragma("unroll") for (int q = 0; q < PARTS * LANE; q++)                                             \
			{                                                                                                    \
				T value = 0;                                                                                 \
				if (j < m && q < d && q < D)                                                                 \
					value = Z[j * zs + q];                                                               \
				if (j < m && q == D)                                                                         \
					value = V[j * vs];                                                                   \
				Zs[threadIdx.x][q / LANE].e[q % LANE] = value;                                               \
			}                                                                                                    \
			__syncthreads();                                                                                     \
			/* What is beyond m counts k(x, 0)·0; x and 0 have no product but NaN if x has NaN. */               \
			int count = m - j0 < THREADS ? (int)(m - j0 + 3) / 4 * 4 : THREADS;                                  \
			T sum[R];                                                                                            \
			_Pragma("unroll") for (int r = 0; r < R; r++) sum[r] = 0;                                            \
			_Pragma("unroll 4") for (int b = 0; b < count; b++)                                                  \
			{                                                                                                    \
				T z[PARTS * LANE];                                                                           \
				_Pragma("unroll") for (int w = 0; w < PARTS; w++)                                            \
				{                                                                                            \
					Part part = Zs[b][w];                                                                \
					_Pragma("unroll") for (int q = 0; q < LANE; q++) z[w * LANE + q] = part.e[q];        \
				}                                                                                            \
				_Pragma("unroll") for (int r = 0; r < R; r++)                                                \
				{                                                                                            \
					T s = 0;                                                                             \
					_Pragma("unroll") for (int q = 0; q < D; q++)                                        \
					{                                                                                    \
						T diff = x[r][q] - z[q];                                                     \
						s += diff * diff;                                                            \
					}                                                                                    \
					sum[r] += FN(gauss)(a * s) * z[D];                                                   \
				}                                                                                            \
			}                                                                                                    \
			_Pragma("unroll") for (int r = 0; r < R; r++) out[r] += sum[r];                                      \
			__syncthreads();                                                                                     \
		}                                                                                                            \
		_Pragma("unroll") for (int r = 0; r < R; r++)                                                                \
		{                                                                                                            \
			i64 i = i0 + r * THREADS;                                                                            \
			if (i < n)                                                                                           \
				partial[(i64)blockIdx.y * n + i] = out[r];                                                   \
		}                                                                                                            \
	}

GAUSS(3)
GAUSS(4)
GAUSS(8)
GAUSS(16)
#undef GAUSS

// gram_mul_low is gram_mul for d ≤ D features, one statistic without a scale (DOT,
// SQDIST or L1) and a form that needs no interpreter: a thread has one row, its
// point in registers, and goes through the points of its share, which the block
// reads into shared memory tile by tile.
#define LOW(D)                                                                                                              \
	extern "C" __global__ void __launch_bounds__(THREADS)                                                               \
	FN(gram_mul_low##D)(int n, int m, int d, const T *X, i64 xs, const T *Z, i64 zs, const T *V, i64 vs, int t,        \
		T *partial, int share, const struct Program p)                                                              \
	{                                                                                                                   \
		__shared__ T Zs[THREADS][D], Vs[THREADS][WIDE];                                                             \
		i64 i = (i64)blockIdx.x * THREADS + threadIdx.x;                                                            \
		T x[D], out[WIDE];                                                                                          \
		for (int q = 0; q < D; q++)                                                                                 \
			x[q] = i < n && q < d ? X[i * xs + q] : (T)0;                                                       \
		for (int c = 0; c < WIDE; c++)                                                                              \
			out[c] = 0;                                                                                         \
		int kind = p.stat[0].kind;                                                                                  \
		i64 from = (i64)blockIdx.y * share * THREADS, to = from + (i64)share * THREADS;                             \
		for (i64 j0 = from; j0 < to && j0 < m; j0 += THREADS) {                                                     \
			i64 j = j0 + threadIdx.x;                                                                           \
			for (int q = 0; q < D; q++)                                                                         \
				Zs[threadIdx.x][q] = j < m && q < d ? Z[j * zs + q] : (T)0;                                 \
			for (int c = 0; c < WIDE; c++)                                                                      \
				Vs[threadIdx.x][c] = j < m && c < t ? V[j * vs + c] : (T)0;                                 \
			__syncthreads();                                                                                    \
			int count = m - j0 < THREADS ? (int)(m - j0) : THREADS;                                             \
			if (kind == SQDIST && t == 1) {                                                                     \
				for (int b = 0; b < count; b++) {                                                           \
					T s = 0;                                                                            \
					_Pragma("unroll") for (int q = 0; q < D; q++)                                       \
					{                                                                                   \
						T diff = x[q] - Zs[b][q];                                                   \
						s += diff * diff;                                                           \
					}                                                                                   \
					out[0] += FN(form)(p, s) * Vs[b][0];                                                \
				}                                                                                           \
			} else {                                                                                            \
				for (int b = 0; b < count; b++) {                                                           \
					T s = 0;                                                                            \
					_Pragma("unroll") for (int q = 0; q < D; q++)                                       \
					{                                                                                   \
						T z = Zs[b][q], diff = x[q] - z;                                            \
						s += kind == DOT ? x[q] * z : kind == SQDIST ? diff * diff : abs_(diff);    \
					}                                                                                   \
					T k = FN(form)(p, s);                                                               \
					_Pragma("unroll") for (int c = 0; c < WIDE; c++) out[c] += k * Vs[b][c];            \
				}                                                                                           \
			}                                                                                                   \
			__syncthreads();                                                                                    \
		}                                                                                                           \
		if (i < n)                                                                                                  \
			for (int c = 0; c < t; c++)                                                                         \
				partial[((i64)blockIdx.y * n + i) * t + c] = out[c];                                        \
	}

LOW(3)
LOW(8)
LOW(16)
#undef LOW

// sum_shares is dst ← the sum over the shares of partial, in order.
extern "C" __global__ void __launch_bounds__(THREADS) FN(sum_shares)(int n, int t, int shares, const T *partial, T *dst, i64 ds)
{
	i64 e = (i64)blockIdx.x * THREADS + threadIdx.x;
	i64 i = e / t;
	int c = e % t;
	if (i >= n)
		return;
	T sum = 0;
	for (int s = 0; s < shares; s++)
		sum += partial[((i64)s * n + i) * t + c];
	dst[i * ds + c] = sum;
}
