// A simulated cuSOLVER: the Cholesky factorization in plain loops on a column-major matrix, queued
// in the stream of the handle.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>

extern "C" void *mercer_sim_context();
extern "C" void mercer_sim_queue(void *stream, std::function<void()> *work);

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

struct Handle {
	void *context, *stream;
};

// potrf treats a matrix that is not positive definite as cuSOLVER does: it returns the number, from
// 1, of the first pivot ≤ 0, stores NaN as its square root, and continues. It does not detect NaN,
// whose comparisons are false, or Inf, which has a square root (pytorch/pytorch#64818 and #121009).
template <class T> int potrf(int fill, int64_t n, T *A, int64_t lda)
{
	auto a = [&](int64_t i, int64_t j) -> T & { return fill ? A[j + i * lda] : A[i + j * lda]; };
	int info = 0;
	for (int64_t j = 0; j < n; j++) {
		T d = a(j, j);
		for (int64_t p = 0; p < j; p++)
			d -= a(j, p) * a(j, p);
		if (d <= 0 && !info)
			info = int(j + 1);
		a(j, j) = d == 0 ? std::nan("") : std::sqrt(d);
		for (int64_t i = j + 1; i < n; i++) {
			T s = a(i, j);
			for (int64_t p = 0; p < j; p++)
				s -= a(i, p) * a(j, p);
			a(i, j) = s / a(j, j);
		}
	}
	return info;
}

// workspace returns the size of the workspace in bytes, which is larger for the upper triangle.
size_t workspace(int fill) { return fill ? 4096 : 1024; }

} // namespace

EXPORT int cusolverDnCreate(Handle **h)
{
	if (!mercer_sim_context())
		return 1;
	*h = new Handle{};
	(*h)->context = mercer_sim_context();
	return 0;
}

EXPORT int cusolverDnDestroy(Handle *h)
{
	delete h;
	return 0;
}

EXPORT int cusolverDnSetStream(Handle *h, void *s)
{
	h->stream = s;
	return 0;
}

EXPORT int cusolverDnCreateParams(void **p)
{
	*p = new char;
	return 0;
}

EXPORT int cusolverDnDestroyParams(void *p)
{
	delete static_cast<char *>(p);
	return 0;
}

EXPORT int cusolverDnXpotrf_bufferSize(Handle *, void *, int fill, int64_t, int, const void *, int64_t, int, size_t *device, size_t *host)
{
	*device = workspace(fill);
	*host = 64;
	return 0;
}

EXPORT int cusolverDnXpotrf(Handle *h, void *, int fill, int64_t n, int tA, void *A, int64_t lda, int tC, void *work, size_t device, void *host, size_t hostBytes, int *info)
{
	if (!h || !h->stream || h->context != mercer_sim_context())
		return 1;
	if (n < 0 || lda < n || tA != tC || device < workspace(fill) || hostBytes < 64 || !work || !host)
		return 3;
	std::function<void()> queued = [=] {
		*info = tA == 1 ? potrf(fill, n, static_cast<double *>(A), lda) : potrf(fill, n, static_cast<float *>(A), lda);
	};
	mercer_sim_queue(h->stream, &queued);
	return 0;
}
