// Blocks of a triangular solve and of a Cholesky factorization; the other work of both is products.

// trsm_block computes B ← L⁻¹ B for a lower triangle of order n ≤ BLOCK and m columns; each block
// of threads has 64 columns.
extern "C" __global__ void __launch_bounds__(64) FN(trsm_block)(int n, int m, const T *L, i64 lrs, i64 lcs, T *B, i64 brs, i64 bcs)
{
	__shared__ T Ls[BLOCK][BLOCK + 1], X[BLOCK][64];
	int id = threadIdx.x;
	for (int e = id; e < n * n; e += 64)
		if (e / n >= e % n)
			Ls[e / n][e % n] = L[(e / n) * lrs + (e % n) * lcs];
	__syncthreads();
	i64 j = (i64)blockIdx.x * 64 + id;
	if (j >= m)
		return;
	for (int i = 0; i < n; i++) {
		T sum = B[i * brs + j * bcs];
		for (int p = 0; p < i; p++)
			sum -= Ls[i][p] * X[p][id];
		sum /= Ls[i][i];
		X[i][id] = sum;
		B[i * brs + j * bcs] = sum;
	}
}

// potrf_block factors a lower triangle of order n ≤ BLOCK in place, with one block of threads. The
// first row of the triangle is row `first` of the matrix. At a pivot that is not a positive finite
// number it writes the number of the pivot's row, counted from 1, to info, and the pivot to
// value, and stops. If info is already set, it changes nothing.
extern "C" __global__ void __launch_bounds__(THREADS) FN(potrf_block)(int n, T *A, i64 rs, i64 cs, int first, int *info, double *value)
{
	__shared__ T S[BLOCK][BLOCK + 1];
	__shared__ int stop;
	int id = threadIdx.x;
	if (id == 0)
		stop = *info;
	for (int e = id; e < n * n; e += THREADS)
		if (e / n >= e % n)
			S[e / n][e % n] = A[(e / n) * rs + (e % n) * cs];
	__syncthreads();
	for (int j = 0; j < n && !stop; j++) {
		T d = S[j][j];
		__syncthreads(); // all threads have read d and stop
		if (!(d > 0) || isinf(d)) {
			if (id == 0) {
				stop = 1;
				*info = first + j + 1;
				*value = d;
			}
		} else {
			T pivot = root_(d);
			if (id == 0)
				S[j][j] = pivot;
			for (int i = j + 1 + id; i < n; i += THREADS)
				S[i][j] /= pivot;
		}
		__syncthreads();
		if (!stop)
			for (int e = id; e < n * n; e += THREADS) {
				int i = e / n, c = e % n;
				if (c > j && i >= c)
					S[i][c] -= S[i][j] * S[c][j];
			}
		__syncthreads();
	}
	for (int e = id; e < n * n; e += THREADS)
		if (e / n >= e % n)
			A[(e / n) * rs + (e % n) * cs] = S[e / n][e % n];
}

// check_diag checks a lower factor L of order n that a library has computed, with one block of
// threads; diag is the diagonal of the factored matrix. It finds the first diagonal element of L
// that is not a positive finite number, or row `said` if that comes earlier. It writes the number
// of this row, counted from 1 and from row `first` of the matrix, to info, and the pivot
// diag_j − Σ_{p<j} L_jp² to value, unless info is already set.
extern "C" __global__ void __launch_bounds__(THREADS) FN(check_diag)(int n, const T *L, i64 rs, i64 cs, const T *diag, int first, const int *said, int *info, double *value)
{
	__shared__ int rows[THREADS];
	__shared__ double sums[THREADS];
	int id = threadIdx.x, known = *info, bad = *said > 0 && *said <= n ? *said - 1 : n;
	for (int i = id; i < bad; i += THREADS) {
		T v = L[i * (rs + cs)];
		if (!(v > 0) || isinf(v))
			bad = i;
	}
	rows[id] = bad;
	for (int half = THREADS / 2; half > 0; half /= 2) {
		__syncthreads();
		if (id < half && rows[id + half] < rows[id])
			rows[id] = rows[id + half];
	}
	__syncthreads();
	bad = rows[0];
	double sum = 0;
	if (bad < n)
		for (int p = id; p < bad; p += THREADS) {
			double v = L[bad * rs + p * cs];
			sum += v * v;
		}
	sums[id] = sum;
	for (int half = THREADS / 2; half > 0; half /= 2) {
		__syncthreads();
		if (id < half)
			sums[id] += sums[id + half];
	}
	if (id == 0 && bad < n && known == 0) {
		*info = first + bad + 1;
		*value = (double)diag[bad] - sums[0];
	}
}
