// These definitions let the device functions, which are written in CUDA C++, compile unchanged for
// the CPU. The threads of a block are fibers that switch at __syncthreads; blocks run one after the
// other, so static memory can represent shared memory.
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

// Only one thread runs at a time, so a plain update is atomic.
inline void atomicMax(unsigned long long *at, unsigned long long v) { *at = std::max(*at, v); }

namespace sim {

// launch runs body for every thread of every block. If barriers is false, it runs the threads
// without fibers, one after the other.
void launch(Dim3 grid, Dim3 block, bool barriers, const std::function<void()> &body);

// half converts a float to FP16, ties to even.
inline uint16_t half(float x)
{
	uint16_t sign = std::signbit(x) ? 0x8000 : 0;
	if (std::isnan(x))
		return 0x7fff;
	double size = std::fabs(x);
	if (size >= 65520) // half of the way to what would be the next number
		return sign | 0x7c00;
	// Adjacent numbers of FP16 differ by 2^(e−10), which is at least 2^−24.
	int e = size == 0 ? -14 : std::max(std::ilogb(size), -14);
	int steps = int(std::nearbyint(std::ldexp(size, 10 - e)));
	return sign + ((e + 14) << 10) + steps;
}

// A Kernel copies the arguments from a packed buffer and returns a function that runs the device
// function in every thread, or nullptr if the size of the buffer is not the size of the parameters.
using Kernel = std::function<std::function<void()>(Dim3 grid, Dim3 block, const unsigned char *args, size_t size)>;

// find returns the device function with the given name, or nullptr if there is none.
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
		// A list in braces is evaluated from left to right.
		std::tuple<std::decay_t<A>...> values{argument<std::decay_t<A>>(args, at)...};
		if (at != size)
			return nullptr;
		return [=] { launch(grid, block, barriers, [&] { std::apply(f, values); }); };
	};
}

} // namespace sim
