// Conversions between precisions.

extern "C" __global__ void __launch_bounds__(THREADS) narrow(int m, int n, const double *A, i64 as, float *B, i64 bs)
{
	i64 j = (i64)blockIdx.x * THREADS + threadIdx.x;
	for (i64 i = blockIdx.y; i < m; i += gridDim.y)
		if (j < n)
			B[i * bs + j] = (float)A[i * as + j];
}

extern "C" __global__ void __launch_bounds__(THREADS) widen(int m, int n, const float *A, i64 as, double *B, i64 bs)
{
	i64 j = (i64)blockIdx.x * THREADS + threadIdx.x;
	for (i64 i = blockIdx.y; i < m; i += gridDim.y)
		if (j < n)
			B[i * bs + j] = A[i * as + j];
}

// to_half computes H ← s A in FP16.
extern "C" __global__ void __launch_bounds__(THREADS) to_half(int m, int n, const float *A, i64 as, float s, unsigned short *H, i64 hs)
{
	i64 j = (i64)blockIdx.x * THREADS + threadIdx.x;
	for (i64 i = blockIdx.y; i < m; i += gridDim.y)
		if (j < n)
			H[i * hs + j] = half_(s * A[i * as + j]);
}

// sum_blocks computes dst_j ← Σ_b partial[j*blocks + b], with one thread for each column.
extern "C" __global__ void __launch_bounds__(THREADS) sum_blocks(int blocks, int t, const double *partial, double *dst)
{
	int j = blockIdx.x * THREADS + threadIdx.x;
	if (j >= t)
		return;
	double sum = 0;
	for (int b = 0; b < blocks; b++)
		sum += partial[(i64)j * blocks + b];
	dst[j] = sum;
}
