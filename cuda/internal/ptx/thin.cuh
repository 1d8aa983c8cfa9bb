// Products with few columns, C ← α A B + β C for B with n ≤ THIN columns. Their time is that of
// reading A once. A block of threads has some rows of A and a share of its columns. The sums of
// the threads of a block, and then the sums of the shares, are added in order, so that the
// result does not depend on the device.
//
// `lanes`, a power of two, is the number of neighboring threads that read neighboring elements. A
// thread has EACH rows, so that it reads an element of B once for all of them. For an
// element of A, a thread needs its load, one multiply-add for each of the THIN columns, and a
// quarter of the loads of B.

// thin_rows is for an A whose rows are contiguous: neighboring threads have neighboring columns.
// partial[(s*m + i)*n + c] is the sum of share s.
extern "C" __global__ void __launch_bounds__(THREADS)
FN(thin_rows)(int m, int n, int k, const T *A, i64 ars, i64 acs, const T *B, i64 brs, i64 bcs, T *partial, int share, int lanes)
{
	__shared__ T sums[THREADS * (EACH + 1)];
	int lane = threadIdx.x % lanes, group = threadIdx.x / lanes, rows = THREADS / lanes * EACH;
	i64 block = blockIdx.x;
	i64 i0 = block * rows + group * EACH;
	i64 from = (i64)blockIdx.y * share, to = from + share < k ? from + share : k;
	T acc[EACH][THIN];
#pragma unroll
	for (int r = 0; r < EACH; r++) {
#pragma unroll
		for (int c = 0; c < THIN; c++)
			acc[r][c] = 0;
	}
	for (i64 p = from + lane; p < to; p += lanes) {
		T b[THIN];
#pragma unroll
		for (int c = 0; c < THIN; c++)
			b[c] = c < n ? B[p * brs + c * bcs] : (T)0;
#pragma unroll
		for (int r = 0; r < EACH; r++)
			if (i0 + r < m) {
				T a = A[(i0 + r) * ars + p * acs];
#pragma unroll
				for (int c = 0; c < THIN; c++)
					acc[r][c] += a * b[c];
			}
	}
#pragma unroll
	for (int c = 0; c < THIN; c++) {
		if (c >= n)
			break;
		__syncthreads(); // the sums of the last column have been added
#pragma unroll
		for (int r = 0; r < EACH; r++)
			sums[(group * EACH + r) * (lanes + 1) + lane] = acc[r][c];
		__syncthreads();
		for (int e = threadIdx.x; e < rows; e += THREADS) {
			i64 i = block * rows + e;
			T sum = 0;
			for (int l = 0; l < lanes; l++)
				sum += sums[e * (lanes + 1) + l];
			if (i < m)
				partial[((i64)blockIdx.y * m + i) * n + c] = sum;
		}
	}
}

// thin_cols is for an A whose columns are contiguous: neighboring threads have neighboring rows,
// and the other groups of threads have other columns.
extern "C" __global__ void __launch_bounds__(THREADS)
FN(thin_cols)(int m, int n, int k, const T *A, i64 ars, i64 acs, const T *B, i64 brs, i64 bcs, T *partial, int share, int lanes)
{
	__shared__ T sums[THREADS * EACH];
	int lane = threadIdx.x % lanes, group = threadIdx.x / lanes, groups = THREADS / lanes, rows = lanes * EACH;
	i64 block = blockIdx.x;
	i64 i0 = block * rows + lane;
	i64 from = (i64)blockIdx.y * share, to = from + share < k ? from + share : k;
	T acc[EACH][THIN];
#pragma unroll
	for (int r = 0; r < EACH; r++) {
#pragma unroll
		for (int c = 0; c < THIN; c++)
			acc[r][c] = 0;
	}
	for (i64 p = from + group; p < to; p += groups) {
		T b[THIN];
#pragma unroll
		for (int c = 0; c < THIN; c++)
			b[c] = c < n ? B[p * brs + c * bcs] : (T)0;
#pragma unroll
		for (int r = 0; r < EACH; r++)
			if (i0 + r * lanes < m) {
				T a = A[(i0 + r * lanes) * ars + p * acs];
#pragma unroll
				for (int c = 0; c < THIN; c++)
					acc[r][c] += a * b[c];
			}
	}
#pragma unroll
	for (int c = 0; c < THIN; c++) {
		if (c >= n)
			break;
		__syncthreads();
#pragma unroll
		for (int r = 0; r < EACH; r++)
			sums[group * rows + r * lanes + lane] = acc[r][c];
		__syncthreads();
		for (int e = threadIdx.x; e < rows; e += THREADS) {
			i64 i = block * rows + e;
			T sum = 0;
			for (int g = 0; g < groups; g++)
				sum += sums[g * rows + e];
			if (i < m)
				partial[((i64)blockIdx.y * m + i) * n + c] = sum;
		}
	}
}

// lower is the lower triangle of a symmetric matrix, by rows or by columns. Element
// (i0 + i, j0 + j) is read from at, those of rows, or columns, 4 apart are next apart;
// value is what an element stands for, and diagonal that of (i, i), where a is read.
struct FN(lower) {
	typedef T Element;
	const T *A;
	i64 rs, cs;
	__device__ bool byRows() const { return cs == 1; }
	__device__ const T *at(i64 i0, int i, i64 j0, int j) const { return A + (i0 + i) * rs + (j0 + j) * cs; }
	__device__ i64 next(i64) const { return EACH * (cs == 1 ? rs : cs); }
	__device__ T value(T a) const { return a; }
	__device__ T diagonal(i64, T a) const { return a; }
};

// symm multiplies B, which has n ≤ N columns, by a symmetric A of order m that is given by its
// lower triangle. Each element of the triangle is read once and used for its row and for its
// column, so that half as many bytes are read as by two products with triangles.
// A block of threads processes a square of `side` × `side` tiles of 64 × 64: block (J, I), I ≥ J,
// has the rows from 64·side·I on and the columns from 64·side·J on. The sums of its rows are
// written to share J, and the sums of its columns to share I + 1, so that each element of C has
// gridDim.y + 1 shares, which thin_sum adds.
template <class Lower, int N>
__device__ __forceinline__ void FN(symm)(int m, int n, const Lower A, const T *B, i64 brs, i64 bcs, T *partial, int side)
{
	__shared__ T S[TILE][TILE + 1], Bi[TILE][N], Bj[TILE][N], sums[EACH][TILE];
	if (blockIdx.x > blockIdx.y)
		return;
	// A thread adds a quarter of a row of the tile, and a quarter of a column.
	int id = threadIdx.x, at = id % TILE, quarter = id / TILE, from = quarter * (TILE / EACH);
	i64 first = (i64)blockIdx.y * side * TILE, left = (i64)blockIdx.x * side * TILE;
	for (int ti = 0; ti < side; ti++) {
		i64 i0 = first + (i64)ti * TILE;
		if (i0 >= m)
			break;
		int rows = m - i0 < TILE ? (int)(m - i0) : TILE;
		T across[N];
#pragma unroll
		for (int c = 0; c < N; c++)
			across[c] = 0;
		for (int tj = 0; tj < side; tj++) {
			i64 j0 = left + (i64)tj * TILE;
			if (j0 > i0)
				break;
			bool diagonal = i0 == j0;
			__syncthreads(); // no thread still reads the last tile
			// A thread loads row quarter + 4e or, if A is stored by columns, that column. All
			// loads come first, so that they run at the same time. Elements beyond the last row
			// are 0, as are those of B.
			bool byRows = A.byRows();
			int lo = byRows && diagonal ? at : 0, hi = byRows ? rows : at >= rows ? 0 : diagonal ? at + 1 : TILE;
			const typename Lower::Element *p = byRows ? A.at(i0, quarter, j0, at) : A.at(i0, at, j0, quarter);
			i64 step = A.next(i0);
			typename Lower::Element a[TILE / EACH];
#pragma unroll
			for (int e = 0; e < TILE / EACH; e++, p += step) {
				int one = e * EACH + quarter;
				a[e] = one >= lo && one < hi ? *p : (typename Lower::Element)0;
			}
#pragma unroll
			for (int e = 0; e < TILE / EACH; e++) {
				int one = e * EACH + quarter;
				S[byRows ? one : at][byRows ? at : one] = one >= lo && one < hi ? A.value(a[e]) : (T)0;
			}
			if (diagonal) { // fill the upper triangle of the tile
				__syncthreads();
#pragma unroll 1
				for (int e = id; e < rows * TILE; e += THREADS) {
					int i = e / TILE, j = e % TILE;
					if (i == j)
						S[i][i] = A.diagonal(i0 + i, S[i][i]);
					else if (i < j && j < rows)
						S[i][j] = S[j][i];
				}
			}
			if (id < TILE * N) {
				int i = id / N, c = id % N;
				Bi[i][c] = i < rows && c < n ? B[(i0 + i) * brs + c * bcs] : (T)0;
				Bj[i][c] = j0 + i < m && c < n ? B[(j0 + i) * brs + c * bcs] : (T)0;
			}
			__syncthreads();
			T down[N];
#pragma unroll
			for (int c = 0; c < N; c++)
				down[c] = 0;
#pragma unroll
			for (int e = 0; e < TILE / EACH; e++) {
				int q = from + e;
				T x = S[at][q], y = S[q][at];
#pragma unroll
				for (int c = 0; c < N; c++) {
					across[c] += x * Bj[q][c];
					down[c] += y * Bi[q][c];
				}
			}
#pragma unroll
			for (int c = 0; c < N; c++) {
				if (c >= n)
					break;
				sums[quarter][at] = down[c];
				__syncthreads();
				if (quarter == 0 && j0 + at < m) {
					T sum = 0;
					for (int q = 0; q < EACH && !diagonal; q++)
						sum += sums[q][at];
					// This block processes the tiles of a column one after the other.
					T *to = &partial[((i64)(blockIdx.y + 1) * m + j0 + at) * n + c];
					*to = ti == 0 || diagonal ? sum : *to + sum;
				}
				__syncthreads();
			}
		}
#pragma unroll
		for (int c = 0; c < N; c++) {
			if (c >= n)
				break;
			sums[quarter][at] = across[c];
			__syncthreads();
			if (quarter == 0 && at < rows) {
				T sum = 0;
				for (int q = 0; q < EACH; q++)
					sum += sums[q][at];
				partial[((i64)blockIdx.x * m + i0 + at) * n + c] = sum;
			}
			__syncthreads();
		}
	}
}

extern "C" __global__ void __launch_bounds__(THREADS, 3)
FN(thin_symm)(int m, int n, const T *A, i64 ars, i64 acs, const T *B, i64 brs, i64 bcs, T *partial, int side)
{
	FN(symm)<FN(lower), THIN>(m, n, FN(lower){A, ars, acs}, B, brs, bcs, partial, side);
}

// thin_sum computes C ← α Σ_s partial_s + β C, m × n. `lanes` threads, a power of two, add the
// shares of one element. With β = 0, C is not read.
extern "C" __global__ void __launch_bounds__(THREADS)
FN(thin_sum)(int m, int n, int shares, const T *partial, T alpha, T beta, T *C, i64 crs, i64 ccs, int lanes)
{
	__shared__ T sums[THREADS];
	int lane = threadIdx.x % lanes;
	i64 e = (i64)blockIdx.x * (THREADS / lanes) + threadIdx.x / lanes, all = (i64)m * n;
	T sum = 0;
	if (e < all)
		for (int s = lane; s < shares; s += lanes)
			sum += partial[s * all + e];
	sums[threadIdx.x] = sum;
	__syncthreads();
	if (lane != 0 || e >= all)
		return;
	for (int l = 1; l < lanes; l++)
		sum += sums[threadIdx.x + l];
	T *to = &C[e / n * crs + e % n * ccs];
	*to = beta == 0 ? alpha * sum : alpha * sum + beta * *to;
}
