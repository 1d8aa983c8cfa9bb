// Symmetric Gram matrices with 16 bits for each element, stored as panels of 64 rows of the lower
// triangle. Each panel is row-major, up to the last column of its square on the diagonal, so that
// its rows begin at multiples of 128 bytes. Element (i, j), j < i, is low + step·code. The
// diagonal is stored separately, in T; codes on and above the diagonal have no meaning.

struct FN(fixed) {
	typedef unsigned short Element;
	const unsigned short *codes;
	const T *diag;
	T low, step;
	__device__ bool byRows() const { return true; }
	__device__ const unsigned short *at(i64 i0, int i, i64 j0, int j) const
	{
		return codes + i0 * (i0 + TILE) / 2 + i * (i0 + TILE) + j0 + j;
	}
	__device__ i64 next(i64 i0) const { return EACH * (i0 + TILE); }
	__device__ T value(unsigned short code) const { return low + step * (T)code; }
	__device__ T diagonal(i64 i, T) const { return diag[i]; }
};

// fixed_symm does the same as thin_symm, and fixed_symm1 does it for one column.
extern "C" __global__ void __launch_bounds__(THREADS, 3)
FN(fixed_symm)(int m, int n, const unsigned short *codes, const T *diag, T low, T step, const T *B, i64 brs, i64 bcs, T *partial, int side)
{
	FN(symm)<FN(fixed), THIN>(m, n, FN(fixed){codes, diag, low, step}, B, brs, bcs, partial, side);
}

extern "C" __global__ void __launch_bounds__(THREADS, 3)
FN(fixed_symm1)(int m, int n, const unsigned short *codes, const T *diag, T low, T step, const T *B, i64 brs, i64 bcs, T *partial, int side)
{
	FN(symm)<FN(fixed), 1>(m, n, FN(fixed){codes, diag, low, step}, B, brs, bcs, partial, side);
}

// encode stores rows first … first+rows−1 of the lower triangle; row 0 of V is row `first` of the
// matrix. The code of v is a·v + b, rounded to nearest. For each element (i, j) without a code,
// *fault becomes the maximum of its old value and ~(i·2³² + j).
extern "C" __global__ void __launch_bounds__(THREADS)
FN(encode)(int rows, i64 first, const T *V, i64 vs, T a, T b, unsigned short *codes, T *diag, unsigned long long *fault)
{
	i64 j = (i64)blockIdx.x * THREADS + threadIdx.x;
	for (int r = blockIdx.y; r < rows; r += gridDim.y) {
		i64 i = first + r, i0 = i / TILE * TILE;
		if (j > i)
			continue;
		T v = V[r * vs + j], code = a * v + b;
		if (!(code >= (T)-0.5 && code <= (T)65535.5))
			atomicMax(fault, ~((unsigned long long)i << 32 | (unsigned long long)j));
		else if (j == i)
			diag[i] = v;
		else
			codes[i0 * (i0 + TILE) / 2 + (i - i0) * (i0 + TILE) + j] = (unsigned short)(code < 0 ? 0 : code > 65535 ? 65535 : (int)rint_(code));
	}
}

// decode computes V ← rows first … first+rows−1 of the lower triangle.
extern "C" __global__ void __launch_bounds__(THREADS)
FN(decode)(int rows, i64 first, const unsigned short *codes, const T *diag, T low, T step, T *V, i64 vs)
{
	const FN(fixed) A = {codes, diag, low, step};
	i64 j = (i64)blockIdx.x * THREADS + threadIdx.x;
	for (int r = blockIdx.y; r < rows; r += gridDim.y) {
		i64 i = first + r, i0 = i / TILE * TILE;
		if (j <= i)
			V[r * vs + j] = i == j ? diag[i] : A.value(*A.at(i0, (int)(i - i0), j, 0));
	}
}
