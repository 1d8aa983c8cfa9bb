// K·V without storing K. A block of threads has a tile of rows and processes its share of the
// columns of K in order. The products with the shares are added in order afterwards, so that
// the sums do not depend on the device.

// gram_mul computes, for rows of K and share s of the columns, the products with t ≤ WIDE columns
// of V, and writes them to partial[(s*n + i)*t + c]. Each share consists of `share` tiles of
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
		__syncthreads(); // no thread still reads V of the last tile
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
	// The 16 threads of a row add their sums, for one column of V after the other.
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

// gram_mul_dot, gram_mul_sqdist and gram_mul_scaled do the same as gram_mul for the programs of
// gram_dot, gram_sqdist and gram_scaled. gram_mul_dot1 and so on do it for one column of V, and
// need so few registers that twice as many blocks of threads run at the same time.
#define FORMED(NAME, KIND, SCALED, W)                                                                                           \
	extern "C" __global__ void __launch_bounds__(THREADS)                                                                \
	FN(gram_mul_##NAME)(int n, int m, int d, const T *X, i64 xs, const T *Z, i64 zs, const T *V, i64 vs, int t,          \
		T *partial, int share, const struct Program p)                                                               \
	{                                                                                                                    \
		__shared__ T Vs[TILE][W], sums[TILE][SIDE + 1];                                                           \
		int tx = threadIdx.x % SIDE, ty = threadIdx.x / SIDE, id = threadIdx.x;                                      \
		i64 i0 = (i64)blockIdx.x * TILE;                                                                             \
		T out[EACH][W];                                                                                           \
		_Pragma("unroll") for (int r = 0; r < EACH; r++) _Pragma("unroll") for (int c = 0; c < W; c++)            \
			out[r][c] = 0;                                                                                       \
		i64 from = (i64)blockIdx.y * share * TILE, to = from + (i64)share * TILE;                                    \
		for (i64 j0 = from; j0 < to && j0 < m; j0 += TILE) {                                                         \
			T k[EACH][EACH];                                                                                     \
			FN(pairs)<KIND, SCALED>((const T *)p.stat[0].scale, d, X, xs, n, i0, Z, zs, m, j0, k);               \
			for (int e = id; e < TILE * W; e += THREADS) { /* pairs ends with a barrier */                    \
				int j = e / W, c = e % W;                                                              \
				Vs[j][c] = j0 + j < m && c < t ? V[(j0 + j) * vs + c] : (T)0;                                \
			}                                                                                                    \
			__syncthreads();                                                                                     \
			_Pragma("unroll") for (int b = 0; b < EACH; b++)                                                     \
			{                                                                                                    \
				int j = tx + SIDE * b;                                                                       \
				if (j0 + j >= m)                                                                             \
					break;                                                                               \
				_Pragma("unroll") for (int r = 0; r < EACH; r++) k[r][b] = FN(form_call)<KIND>(p, k[r][b]);       \
				_Pragma("unroll") for (int c = 0; c < W; c++)                                             \
				{                                                                                            \
					if (c >= t)                                                                          \
						break;                                                                       \
					T v = Vs[j][c];                                                                      \
					_Pragma("unroll") for (int r = 0; r < EACH; r++) out[r][c] += k[r][b] * v;           \
				}                                                                                            \
			}                                                                                                    \
			__syncthreads(); /* V has been used */                                                               \
		}                                                                                                            \
		_Pragma("unroll") for (int c = 0; c < W; c++)                                                             \
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

FORMED(dot, DOT, false, WIDE)
FORMED(sqdist, SQDIST, false, WIDE)
FORMED(scaled, SQDIST, true, WIDE)
FORMED(dot1, DOT, false, 1)
FORMED(sqdist1, SQDIST, false, 1)
FORMED(scaled1, SQDIST, true, 1)
#undef FORMED

// gram_symv computes k(X, X) v for one column and the programs above. Each value of the kernel is
// used for its row and for its column. A launch processes the rows of X, n points with the
// elements vx of v, and the columns of Z, m points with the elements vz. Either X and Z are the
// same points, and the lower triangle is evaluated, or they are different points, and every pair
// is evaluated.
//
// A block of threads processes one square of `side` × `side` tiles: block (I, J) has the rows from
// 64·side·I on and the columns from 64·side·J on; in a triangle, I ≥ J. The blocks are numbered
// row by row from `first` on, with `across` blocks in a row. For a triangle of S × S squares,
// across is S + 1: row r of the numbering holds row S − 1 − r of the triangle, and then row r.
// The sums of the rows are written to share J of `rows`, and the sums of the columns to share I of
// `cols`. Tiles on the diagonal are evaluated completely, and their sums of columns are 0.
#define FORMED(NAME, KIND, SCALED)                                                                                           \
	extern "C" __global__ void __launch_bounds__(THREADS)                                                                \
	FN(gram_symv_##NAME)(int n, int m, int d, const T *X, const T *Z, i64 xs, const T *vx, const T *vz, i64 vs, T *rows, \
		T *cols, int side, int first, int across, int triangle, const struct Program p)                              \
	{                                                                                                                    \
		__shared__ T sums[TILE][SIDE + 1];                                                                           \
		int place = first + (int)blockIdx.x;                                                                         \
		i64 I = place / across, J = place % across;                                                                  \
		if (triangle) {                                                                                              \
			i64 other = across - 2 - I;                                                                          \
			if (J <= other)                                                                                      \
				I = other;                                                                                   \
			else                                                                                                 \
				J -= other + 1;                                                                              \
		}                                                                                                            \
		int tx = threadIdx.x % SIDE, ty = threadIdx.x / SIDE, id = threadIdx.x;                                      \
		for (int ti = 0; ti < side; ti++) {                                                                          \
			i64 i0 = (I * side + ti) * TILE;                                                                     \
			if (i0 >= n)                                                                                         \
				break;                                                                                       \
			T vi[EACH], sum_i[EACH];                                                                             \
			_Pragma("unroll") for (int r = 0; r < EACH; r++)                                                     \
			{                                                                                                    \
				i64 i = i0 + ty + SIDE * r;                                                                  \
				vi[r] = i < n ? vx[i * vs] : (T)0;                                                           \
				sum_i[r] = 0;                                                                                \
			}                                                                                                    \
			for (int tj = 0; tj < side; tj++) {                                                                  \
				i64 j0 = (J * side + tj) * TILE;                                                             \
				if (j0 >= m || (triangle && j0 > i0))                                                        \
					break;                                                                               \
				int beside = !triangle || j0 != i0;                                                          \
				T k[EACH][EACH];                                                                             \
				FN(pairs)<KIND, SCALED>((const T *)p.stat[0].scale, d, X, xs, n, i0, Z, xs, m, j0, k);       \
				_Pragma("unroll") for (int b = 0; b < EACH; b++)                                             \
				{                                                                                            \
					i64 j = j0 + tx + SIDE * b;                                                          \
					T vj = j < m ? vz[j * vs] : (T)0, down = 0;                                          \
					_Pragma("unroll") for (int r = 0; r < EACH; r++)                                     \
					{                                                                                    \
						T value = FN(form_call)<KIND>(p, k[r][b]);                                   \
						/* what is beyond the last point is no point */                              \
						value = i0 + ty + SIDE * r < n && j < m ? value : (T)0;                      \
						sum_i[r] += value * vj;                                                      \
						down += value * vi[r];                                                       \
					}                                                                                    \
					sums[tx + SIDE * b][ty] = down;                                                      \
				}                                                                                            \
				__syncthreads();                                                                             \
				if (id < TILE && j0 + id < m) {                                                              \
					T sum = 0;                                                                           \
					for (int y = 0; y < SIDE; y++)                                                       \
						sum += sums[id][y];                                                          \
					/* the tiles of a column follow each other in this block */                          \
					T *to = &cols[I * m + j0 + id];                                                      \
					*to = !beside ? (T)0 : ti == 0 ? sum : *to + sum;                                    \
				}                                                                                            \
				__syncthreads(); /* sums has been used */                                                    \
			}                                                                                                    \
			_Pragma("unroll") for (int r = 0; r < EACH; r++) sums[ty + SIDE * r][tx] = sum_i[r];                 \
			__syncthreads();                                                                                     \
			if (id < TILE && i0 + id < n) {                                                                      \
				T sum = 0;                                                                                   \
				for (int x = 0; x < SIDE; x++)                                                               \
					sum += sums[id][x];                                                                  \
				rows[J * n + i0 + id] = sum;                                                                 \
			}                                                                                                    \
			__syncthreads();                                                                                     \
		}                                                                                                            \
	}

FORMED(dot, DOT, false)
FORMED(sqdist, SQDIST, false)
FORMED(scaled, SQDIST, true)
#undef FORMED
