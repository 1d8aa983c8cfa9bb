// Products with few columns, C ← α A B + β C for B of n ≤ THIN columns: what counts
// is how fast A is read, once. A block of threads has some rows of A and a share of
// its columns; the threads of a block, and then the shares, are added up in order, so
// that the sums do not depend on the device.
//
// `lanes`, a power of two, is how many neighbouring threads read neighbouring
// elements; a thread has EACH rows, so that an element of B is read once for all of
// them. For one column and an element of A a thread does the load, one
// multiply-add for each of the THIN columns, and a quarter of the loads of B.
//
// part says which elements of A count, as of a square matrix: all, or those of a
// triangle, without the diagonal where strict is 1. So a symmetric matrix that is
// given by a triangle takes two such products: one with the triangle and one with the
// transpose of what is beside the diagonal.

// thin_bounds is the first column of row i that counts, and the one behind the last.
__device__ static __forceinline__ void FN(thin_bounds)(int part, int strict, i64 i, i64 &from, i64 &to)
{
	if (part == LOWER && i + 1 - strict < to)
		to = i + 1 - strict;
	if (part == UPPER && i + strict > from)
		from = i + strict;
}

// thin_rows is for an A whose rows lie in one piece: neighbouring threads have
// neighbouring columns. partial[(s*m + i)*n + c] is the sum of share s.
extern "C" __global__ void __launch_bounds__(THREADS)
FN(thin_rows)(int m, int n, int k, const T *A, i64 ars, i64 acs, const T *B, i64 brs, i64 bcs, T *partial, int share, int lanes, int part, int strict)
{
	__shared__ T sums[THREADS * (EACH + 1)];
	int lane = threadIdx.x % lanes, group = threadIdx.x / lanes, rows = THREADS / lanes * EACH;
	// The long rows of a lower triangle are begun with.
	i64 block = part == LOWER ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
	i64 i0 = block * rows + group * EACH;
	i64 from = (i64)blockIdx.y * share, to = from + share < k ? from + share : k;
	i64 first[EACH], last[EACH], least = to, most = from;
	T acc[EACH][THIN];
#pragma unroll
	for (int r = 0; r < EACH; r++) {
		first[r] = from;
		last[r] = i0 + r < m ? to : from;
		FN(thin_bounds)(part, strict, i0 + r, first[r], last[r]);
		least = first[r] < least ? first[r] : least;
		most = last[r] > most ? last[r] : most;
#pragma unroll
		for (int c = 0; c < THIN; c++)
			acc[r][c] = 0;
	}
	// Loads begin at a multiple of lanes from the share's first column on.
	for (i64 p = from + (least - from) / lanes * lanes + lane; p < most; p += lanes) {
		T b[THIN];
#pragma unroll
		for (int c = 0; c < THIN; c++)
			b[c] = c < n ? B[p * brs + c * bcs] : (T)0;
#pragma unroll
		for (int r = 0; r < EACH; r++)
			if (p >= first[r] && p < last[r]) {
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
		__syncthreads(); // the last column has been added up
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

// thin_cols is for an A whose columns lie in one piece: neighbouring threads have
// neighbouring rows, and those of other groups other columns.
extern "C" __global__ void __launch_bounds__(THREADS)
FN(thin_cols)(int m, int n, int k, const T *A, i64 ars, i64 acs, const T *B, i64 brs, i64 bcs, T *partial, int share, int lanes, int part, int strict)
{
	__shared__ T sums[THREADS * EACH];
	int lane = threadIdx.x % lanes, group = threadIdx.x / lanes, groups = THREADS / lanes, rows = lanes * EACH;
	i64 block = part == LOWER ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
	i64 i0 = block * rows + lane;
	i64 from = (i64)blockIdx.y * share, to = from + share < k ? from + share : k;
	i64 first[EACH], last[EACH], least = to, most = from;
	T acc[EACH][THIN];
#pragma unroll
	for (int r = 0; r < EACH; r++) {
		first[r] = from;
		last[r] = i0 + r * lanes < m ? to : from;
		FN(thin_bounds)(part, strict, i0 + r * lanes, first[r], last[r]);
		least = first[r] < least ? first[r] : least;
		most = last[r] > most ? last[r] : most;
#pragma unroll
		for (int c = 0; c < THIN; c++)
			acc[r][c] = 0;
	}
	for (i64 p = from + (least - from) / groups * groups + group; p < most; p += groups) {
		T b[THIN];
#pragma unroll
		for (int c = 0; c < THIN; c++)
			b[c] = c < n ? B[p * brs + c * bcs] : (T)0;
#pragma unroll
		for (int r = 0; r < EACH; r++)
			if (p >= first[r] && p < last[r]) {
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

// thin_sum is C ← α Σ_s partial_s + β C, m × n: `lanes` threads, a power of two,
// share the shares of an element. With β = 0, C is not read.
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
