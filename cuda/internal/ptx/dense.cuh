// Products of matrices, and operations on each element.

// gemm computes C ← α A B + β C on a part of C; A is m × k and B is k × n. With β = 0, C is not
// read. sym tells that A is symmetric and given by its LOWER or UPPER triangle.
extern "C" __global__ void __launch_bounds__(THREADS)
FN(gemm)(int m, int n, int k, T alpha, const T *A, i64 ars, i64 acs, const T *B, i64 brs, i64 bcs, T beta, T *C, i64 crs, i64 ccs, int part, int sym)
{
	__shared__ T As[DEPTH][TILE + 1], Bs[DEPTH][TILE + 1];
	int tx = threadIdx.x % SIDE, ty = threadIdx.x / SIDE, id = threadIdx.x;
	i64 i0 = (i64)blockIdx.y * TILE, j0 = (i64)blockIdx.x * TILE;
	if (part == LOWER && i0 + TILE - 1 < j0 || part == UPPER && j0 + TILE - 1 < i0)
		return;
	T acc[EACH][EACH];
#pragma unroll
	for (int r = 0; r < EACH; r++)
#pragma unroll
		for (int c = 0; c < EACH; c++)
			acc[r][c] = 0;
	for (int p0 = 0; p0 < k; p0 += DEPTH) {
		// Neighbouring threads read neighbouring addresses, whichever stride is 1.
		for (int e = id; e < TILE * DEPTH; e += THREADS) {
			int i = acs == 1 ? e / DEPTH : e % TILE, p = acs == 1 ? e % DEPTH : e / TILE;
			i64 row = i0 + i, col = p0 + p;
			T v = 0;
			if (row < m && col < k) {
				if (sym != WHOLE && !IN_PART(sym, row, col))
					v = A[col * ars + row * acs];
				else
					v = A[row * ars + col * acs];
			}
			As[p][i] = v;
		}
		for (int e = id; e < TILE * DEPTH; e += THREADS) {
			int j = brs == 1 ? e / DEPTH : e % TILE, p = brs == 1 ? e % DEPTH : e / TILE;
			i64 row = p0 + p, col = j0 + j;
			Bs[p][j] = row < k && col < n ? B[row * brs + col * bcs] : (T)0;
		}
		__syncthreads();
		// The last step ends at k: the elements beyond k are zeros.
		int depth = k - p0 < DEPTH ? k - p0 : DEPTH;
#pragma unroll 4
		for (int p = 0; p < depth; p++) {
			T a[EACH], b[EACH];
#pragma unroll
			for (int r = 0; r < EACH; r++) {
				a[r] = As[p][ty + SIDE * r];
				b[r] = Bs[p][tx + SIDE * r];
			}
#pragma unroll
			for (int r = 0; r < EACH; r++)
#pragma unroll
				for (int c = 0; c < EACH; c++)
					acc[r][c] += a[r] * b[c];
		}
		__syncthreads();
	}
#pragma unroll
	for (int r = 0; r < EACH; r++)
#pragma unroll
		for (int c = 0; c < EACH; c++) {
			i64 i = i0 + ty + SIDE * r, j = j0 + tx + SIDE * c;
			if (i < m && j < n && IN_PART(part, i, j)) {
				T *to = &C[i * crs + j * ccs];
				*to = beta == 0 ? alpha * acc[r][c] : alpha * acc[r][c] + beta * *to;
			}
		}
}

// scale computes C ← β C on a part of C. With β = 0, C is read only if `always` is set.
extern "C" __global__ void __launch_bounds__(THREADS) FN(scale)(int m, int n, T beta, T *C, i64 crs, i64 ccs, int part, int always)
{
	i64 j = (i64)blockIdx.x * THREADS + threadIdx.x;
	for (i64 i = blockIdx.y; i < m; i += gridDim.y)
		if (j < n && IN_PART(part, i, j)) {
			T *to = &C[i * crs + j * ccs];
			*to = beta == 0 && !always ? (T)0 : beta * *to;
		}
}

// copy computes B ← A on a part of B.
extern "C" __global__ void __launch_bounds__(THREADS) FN(copy)(int m, int n, const T *A, i64 ars, i64 acs, T *B, i64 brs, i64 bcs, int part)
{
	i64 j = (i64)blockIdx.x * THREADS + threadIdx.x;
	for (i64 i = blockIdx.y; i < m; i += gridDim.y)
		if (j < n && IN_PART(part, i, j))
			B[i * brs + j * bcs] = A[i * ars + j * acs];
}

// add_diag computes a_i ← a_i + d_i on a diagonal, or a_i ← a_i + value if d is null.
extern "C" __global__ void __launch_bounds__(THREADS) FN(add_diag)(int n, T *a, i64 stride, const T *d, T value)
{
	i64 i = (i64)blockIdx.x * THREADS + threadIdx.x;
	if (i < n)
		a[i * stride] += d ? d[i] : value;
}

// col_axpy computes y_j ← y_j + α_j x_j for each column j.
extern "C" __global__ void __launch_bounds__(THREADS) FN(col_axpy)(int n, int t, const T *alpha, const T *X, i64 xs, T *Y, i64 ys)
{
	i64 e = (i64)blockIdx.x * THREADS + threadIdx.x;
	i64 i = e / t;
	int j = e % t;
	if (i < n)
		Y[i * ys + j] += alpha[j] * X[i * xs + j];
}

// col_dot computes the terms of x_jᵀ y_j that belong to the rows of one block of threads, in
// float64. Block (b, c) of `blocks` × gridDim.y blocks writes partial[j*blocks + b] for the columns
// j = c, c + gridDim.y, … < t.
extern "C" __global__ void __launch_bounds__(THREADS) FN(col_dot)(int n, int t, int blocks, const T *X, i64 xs, const T *Y, i64 ys, double *partial)
{
	__shared__ double sums[THREADS];
	for (i64 j = blockIdx.y; j < t; j += gridDim.y) {
		double sum = 0;
		for (i64 i = (i64)blockIdx.x * THREADS + threadIdx.x; i < n; i += (i64)blocks * THREADS)
			sum += (double)X[i * xs + j] * (double)Y[i * ys + j];
		sums[threadIdx.x] = sum;
		__syncthreads();
		for (int half = THREADS / 2; half > 0; half /= 2) {
			if (threadIdx.x < half)
				sums[threadIdx.x] += sums[threadIdx.x + half];
			__syncthreads();
		}
		if (threadIdx.x == 0) // only this thread writes sums[0] again
			partial[j * blocks + blockIdx.x] = sums[0];
	}
}
