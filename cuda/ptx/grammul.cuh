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
