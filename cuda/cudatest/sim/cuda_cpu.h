// CUDA C++ for the processor: the device functions are compiled as they are. The
// threads of a block are fibers that take turns at __syncthreads; blocks run one
// after the other, so that shared memory is static memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

using std::isinf;

#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(...)
#define __noinline__ __attribute__((noinline))
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) alignas(n)

struct Dim3 {
	unsigned x, y, z;
};

extern Dim3 threadIdx, blockIdx, blockDim, gridDim;

extern "C" void __syncthreads();

// Threads take turns, so that nothing comes between.
inline void atomicMax(unsigned long long *at, unsigned long long v) { *at = std::max(*at, v); }

namespace sim {

// launch runs body for every thread of every block; without barriers, one thread
// after the other.
void launch(Dim3 grid, Dim3 block, bool barriers, const std::function<void()> &body);

// half is a float in FP16, rounded to nearest, ties to even.
inline uint16_t half(float x)
{
	uint16_t sign = std::signbit(x) ? 0x8000 : 0;
	if (std::isnan(x))
		return 0x7fff;
	double size = std::fabs(x);
	if (size >= 65520) // half of the way to what would be the next number
		return sign | 0x7c00;
	// Numbers are 2 to the e−10 apart, the smallest of them 2 to the −24.
	int e = size == 0 ? -14 : std::max(std::ilogb(size), -14);
	int steps = int(std::nearbyint(std::ldexp(size, 10 - e)));
	return sign + ((e + 14) << 10) + steps;
}

// A kernel reads its arguments from the packed buffer, at once, and returns what runs
// it in every thread; nothing when they are not of the size that its parameters have.
using Kernel = std::function<std::function<void()>(Dim3 grid, Dim3 block, const unsigned char *args, size_t size)>;

// find returns a device function by its name, or nullptr.
const Kernel *find(const std::string &name);
void add(const std::string &name, Kernel kernel);

template <class A> A argument(const unsigned char *args, size_t &at)
{
	at = (at + alignof(A) - 1) / alignof(A) * alignof(A);
	A v;
	std::memcpy(&v, args + at, sizeof v);
	at += sizeof v;
	return v;
}

template <class... A> Kernel kernel(bool barriers, void (*f)(A...))
{
	return [barriers, f](Dim3 grid, Dim3 block, const unsigned char *args, size_t size) -> std::function<void()> {
		size_t at = 0;
		// Braces: from left to right.
		std::tuple<std::decay_t<A>...> values{argument<std::decay_t<A>>(args, at)...};
		if (at != size)
			return nullptr;
		return [=] { launch(grid, block, barriers, [&] { std::apply(f, values); }); };
	};
}

} // namespace sim
