// A simulated cuBLAS in plain loops on column-major matrices. Calls are queued in the stream of the
// handle; the factors α and β are read before a call returns.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

extern "C" void *mercer_sim_context();
extern "C" void mercer_sim_queue(void *stream, std::function<void()> *work);

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

struct Handle {
	void *context, *stream;
	int math; // 3: factors of float32 products are rounded to TF32
};
const int notInitialised = 1, invalidValue = 7, notSupported = 15;

// tf32 rounds a float to TF32, which has 10 fraction bits, to nearest, ties to even.
float tf32(float v)
{
	uint32_t b;
	memcpy(&b, &v, 4);
	if ((b & 0x7f800000) == 0x7f800000)
		return v; // infinite, or NaN
	b = (b + 0xfff + ((b >> 13) & 1)) & ~uint32_t(0x1fff);
	memcpy(&v, &b, 4);
	return v;
}

double tf32(double v) { return v; }

template <class T> T at(const T *A, int lda, int op, size_t i, size_t j) { return op ? A[j + i * size_t(lda)] : A[i + j * size_t(lda)]; }

template <class T> int gemm(Handle *h, int tA, int tB, int m, int n, int k, const T *alphaAt, const T *A, int lda, const T *B, int ldb, const T *betaAt, T *C, int ldc)
{
	if (!h || !h->stream || h->context != mercer_sim_context())
		return notInitialised;
	if (m < 0 || n < 0 || k < 0 || lda < (tA ? k : m) || ldb < (tB ? n : k) || ldc < m || lda < 1 || ldb < 1 || ldc < 1)
		return invalidValue;
	T alpha = *alphaAt, beta = *betaAt;
	int math = h->math;
	std::function<void()> work = [=] {
		for (size_t j = 0; j < size_t(n); j++)
			for (size_t i = 0; i < size_t(m); i++) {
				T sum = 0;
				if (math == 3)
					for (size_t p = 0; p < size_t(k); p++)
						sum += tf32(at(A, lda, tA, i, p)) * tf32(at(B, ldb, tB, p, j));
				else
					for (size_t p = 0; p < size_t(k); p++)
						sum += at(A, lda, tA, i, p) * at(B, ldb, tB, p, j);
				T &c = C[i + j * size_t(ldc)];
				c = beta == 0 ? alpha * sum : alpha * sum + beta * c;
			}
	};
	mercer_sim_queue(h->stream, &work);
	return 0;
}

// single converts a number from FP16.
float single(uint16_t h)
{
	int e = h >> 10 & 31, m = h & 1023;
	float size = e == 31 ? (m ? NAN : INFINITY) : e ? std::ldexp(float(1024 + m), e - 25) : std::ldexp(float(m), -24);
	return h & 0x8000 ? -size : size;
}

template <class T> int gemv(Handle *h, int t, int m, int n, const T *alphaAt, const T *A, int lda, const T *x, int incx, const T *betaAt, T *y, int incy)
{
	if (!h || !h->stream || h->context != mercer_sim_context())
		return notInitialised;
	if (h->math)
		return notSupported;
	if (m < 0 || n < 0 || lda < m || lda < 1 || incx < 1 || incy < 1)
		return invalidValue;
	T alpha = *alphaAt, beta = *betaAt;
	std::function<void()> work = [=] {
		size_t rows = t ? n : m, columns = t ? m : n;
		for (size_t i = 0; i < rows; i++) {
			T sum = 0;
			for (size_t p = 0; p < columns; p++)
				sum += at(A, lda, t, i, p) * x[p * incx];
			T &to = y[i * incy];
			to = beta == 0 ? alpha * sum : alpha * sum + beta * to;
		}
	};
	mercer_sim_queue(h->stream, &work);
	return 0;
}

// A real cuBLAS could use TF32 in the following functions too. Mercer must turn TF32 on for gemm
// only, so these functions return an error while TF32 is on.

template <class T> int syrk(Handle *h, int fill, int t, int n, int k, const T *alphaAt, const T *A, int lda, const T *betaAt, T *C, int ldc)
{
	if (!h || !h->stream || h->context != mercer_sim_context())
		return notInitialised;
	if (h->math)
		return notSupported;
	if (n < 0 || k < 0 || lda < (t ? k : n) || ldc < n || lda < 1 || ldc < 1)
		return invalidValue;
	T alpha = *alphaAt, beta = *betaAt;
	std::function<void()> work = [=] {
		for (size_t j = 0; j < size_t(n); j++)
			for (size_t i = 0; i < size_t(n); i++) {
				if (fill ? i > j : i < j)
					continue;
				T sum = 0;
				for (size_t p = 0; p < size_t(k); p++)
					sum += at(A, lda, t, i, p) * at(A, lda, t, j, p);
				T &c = C[i + j * size_t(ldc)];
				c = beta == 0 ? alpha * sum : alpha * sum + beta * c;
			}
	};
	mercer_sim_queue(h->stream, &work);
	return 0;
}

template <class T> int symm(Handle *h, int side, int fill, int m, int n, const T *alphaAt, const T *A, int lda, const T *B, int ldb, const T *betaAt, T *C, int ldc)
{
	if (!h || !h->stream || h->context != mercer_sim_context())
		return notInitialised;
	if (h->math)
		return notSupported;
	int order = side ? n : m;
	if (m < 0 || n < 0 || lda < order || ldb < m || ldc < m || lda < 1 || ldb < 1 || ldc < 1)
		return invalidValue;
	T alpha = *alphaAt, beta = *betaAt;
	std::function<void()> work = [=] {
		auto a = [&](size_t i, size_t j) { return (fill ? i <= j : i >= j) ? A[i + j * size_t(lda)] : A[j + i * size_t(lda)]; };
		for (size_t j = 0; j < size_t(n); j++)
			for (size_t i = 0; i < size_t(m); i++) {
				T sum = 0;
				for (size_t p = 0; p < size_t(order); p++)
					sum += side ? B[i + p * size_t(ldb)] * a(p, j) : a(i, p) * B[p + j * size_t(ldb)];
				T &c = C[i + j * size_t(ldc)];
				c = beta == 0 ? alpha * sum : alpha * sum + beta * c;
			}
	};
	mercer_sim_queue(h->stream, &work);
	return 0;
}

template <class T> int trsv(Handle *h, int fill, int t, int diag, int n, const T *A, int lda, T *x, int incx)
{
	if (!h || !h->stream || h->context != mercer_sim_context())
		return notInitialised;
	if (h->math)
		return notSupported;
	if (n < 0 || lda < n || lda < 1 || incx < 1 || diag != 0)
		return invalidValue;
	std::function<void()> work = [=] {
		bool lower = (fill == 0) == (t == 0);
		for (int s = 0; s < n; s++) {
			int i = lower ? s : n - 1 - s;
			T sum = x[size_t(i) * incx];
			for (int p = lower ? 0 : i + 1; p < (lower ? i : n); p++)
				sum -= at(A, lda, t, i, p) * x[size_t(p) * incx];
			x[size_t(i) * incx] = sum / at(A, lda, 0, i, i);
		}
	};
	mercer_sim_queue(h->stream, &work);
	return 0;
}

template <class T> int trsm(Handle *h, int side, int fill, int t, int diag, int m, int n, const T *alphaAt, const T *A, int lda, T *B, int ldb)
{
	if (!h || !h->stream || h->context != mercer_sim_context())
		return notInitialised;
	if (h->math)
		return notSupported;
	int order = side ? n : m, columns = side ? m : n;
	if (m < 0 || n < 0 || lda < order || ldb < m || lda < 1 || ldb < 1 || diag != 0)
		return invalidValue;
	T alpha = *alphaAt;
	std::function<void()> work = [=] {
		// X op(A) = B is solved as op(A)ᵀ Xᵀ = Bᵀ.
		bool transposed = (t != 0) != (side != 0), lower = (fill == 0) != transposed;
		auto a = [&](size_t i, size_t j) { return transposed ? A[j + i * size_t(lda)] : A[i + j * size_t(lda)]; };
		auto b = [&](size_t i, size_t j) -> T & { return side ? B[j + i * size_t(ldb)] : B[i + j * size_t(ldb)]; };
		for (int c = 0; c < columns; c++)
			for (int s = 0; s < order; s++) {
				int i = lower ? s : order - 1 - s;
				T sum = alpha * b(i, c);
				for (int p = lower ? 0 : i + 1; p < (lower ? i : order); p++)
					sum -= a(i, p) * b(p, c);
				b(i, c) = sum / a(i, i);
			}
	};
	mercer_sim_queue(h->stream, &work);
	return 0;
}

} // namespace

EXPORT int cublasCreate_v2(Handle **h)
{
	if (!mercer_sim_context())
		return notInitialised;
	*h = new Handle{};
	(*h)->context = mercer_sim_context();
	return 0;
}

EXPORT int cublasDestroy_v2(Handle *h)
{
	delete h;
	return 0;
}

EXPORT int cublasGetVersion_v2(Handle *, int *v)
{
	*v = 120000;
	return 0;
}

EXPORT int cublasSetStream_v2(Handle *h, void *s)
{
	h->stream = s;
	return 0;
}

EXPORT int cublasSetMathMode(Handle *h, int mode)
{
	h->math = mode;
	return mode == 0 || mode == 3 ? 0 : invalidValue;
}

EXPORT int cublasSetAtomicsMode(Handle *, int) { return 0; }

// The simulated cublasGemmEx supports only factors in FP16 with a result in float32.
EXPORT int cublasGemmEx(Handle *h, int tA, int tB, int m, int n, int k, const float *alphaAt, const uint16_t *A, int typeA, int lda, const uint16_t *B, int typeB, int ldb, const float *betaAt, float *C, int typeC, int ldc, int compute, int algorithm)
{
	const int half = 2, float32 = 0, inFloat32 = 68;
	if (!h || !h->stream || h->context != mercer_sim_context())
		return notInitialised;
	if (typeA != half || typeB != half || typeC != float32 || compute != inFloat32 || algorithm != -1)
		return notSupported;
	if (m < 0 || n < 0 || k < 0 || lda < (tA ? k : m) || ldb < (tB ? n : k) || ldc < m || lda < 1 || ldb < 1 || ldc < 1)
		return invalidValue;
	float alpha = *alphaAt, beta = *betaAt;
	std::function<void()> work = [=] {
		for (size_t j = 0; j < size_t(n); j++)
			for (size_t i = 0; i < size_t(m); i++) {
				float sum = 0;
				for (size_t p = 0; p < size_t(k); p++)
					sum += single(at(A, lda, tA, i, p)) * single(at(B, ldb, tB, p, j));
				float &c = C[i + j * size_t(ldc)];
				c = beta == 0 ? alpha * sum : alpha * sum + beta * c;
			}
	};
	mercer_sim_queue(h->stream, &work);
	return 0;
}

#define BOTH(T, L)                                                                                                                                                                              \
	EXPORT int cublas##L##gemm_v2(Handle *h, int a, int b, int m, int n, int k, const T *x, const T *A, int lda, const T *B, int ldb, const T *y, T *C, int ldc)                        \
	{                                                                                                                                                                                   \
		return gemm<T>(h, a, b, m, n, k, x, A, lda, B, ldb, y, C, ldc);                                                                                                             \
	}                                                                                                                                                                                   \
	EXPORT int cublas##L##gemv_v2(Handle *h, int t, int m, int n, const T *a, const T *A, int lda, const T *x, int ix, const T *b, T *y, int iy) { return gemv<T>(h, t, m, n, a, A, lda, x, ix, b, y, iy); } \
	EXPORT int cublas##L##syrk_v2(Handle *h, int f, int t, int n, int k, const T *x, const T *A, int lda, const T *y, T *C, int ldc) { return syrk<T>(h, f, t, n, k, x, A, lda, y, C, ldc); } \
	EXPORT int cublas##L##symm_v2(Handle *h, int s, int f, int m, int n, const T *x, const T *A, int lda, const T *B, int ldb, const T *y, T *C, int ldc)                                \
	{                                                                                                                                                                                   \
		return symm<T>(h, s, f, m, n, x, A, lda, B, ldb, y, C, ldc);                                                                                                                \
	}                                                                                                                                                                                   \
	EXPORT int cublas##L##trsv_v2(Handle *h, int f, int t, int d, int n, const T *A, int lda, T *x, int ix) { return trsv<T>(h, f, t, d, n, A, lda, x, ix); } \
	EXPORT int cublas##L##trsm_v2(Handle *h, int s, int f, int t, int d, int m, int n, const T *x, const T *A, int lda, T *B, int ldb) { return trsm<T>(h, s, f, t, d, m, n, x, A, lda, B, ldb); }

BOTH(float, S)
BOTH(double, D)
