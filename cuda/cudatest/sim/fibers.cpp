// The threads of a block run as fibers. Between two barriers they run one after the other, in
// ascending order in one launch and in descending order in the next. If a barrier is missing
// between a write by one thread and a read by another thread, the read therefore precedes the write
// in one of two consecutive launches. All threads of a block must reach the same number of
// barriers.

#include "cuda_cpu.h"

#include <ucontext.h>
#include <cstdio>
#include <cstdlib>

Dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace {

constexpr size_t stackBytes = 64 << 10;

#if defined(__x86_64__)
// sim_swap saves the callee-saved registers and continues on another stack.
extern "C" void sim_swap(void **from, void *to);
asm(R"(
.text
.globl sim_swap
.type sim_swap, @function
sim_swap:
	pushq %rbp
	pushq %rbx
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
	movq %rsp, (%rdi)
	movq %rsi, %rsp
	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %rbx
	popq %rbp
	ret
.size sim_swap, .-sim_swap
.section .note.GNU-stack,"",@progbits
.text
)");

struct Fiber {
	void *sp = nullptr;
	std::vector<unsigned char> stack;
};

void *scheduler;
void enter();

void prepare(Fiber &f)
{
	if (f.stack.empty())
		f.stack.resize(stackBytes);
	auto top = reinterpret_cast<uintptr_t>(f.stack.data() + f.stack.size()) & ~uintptr_t(15);
	auto *p = reinterpret_cast<void **>(top);
	*--p = nullptr; // the stack is as after a call
	*--p = reinterpret_cast<void *>(&enter);
	for (int i = 0; i < 6; i++)
		*--p = nullptr;
	f.sp = p;
}

void resume(Fiber &f) { sim_swap(&scheduler, f.sp); }
void yield(Fiber &f) { sim_swap(&f.sp, scheduler); }
#else
struct Fiber {
	ucontext_t context;
	std::vector<unsigned char> stack;
};

ucontext_t scheduler;
void enter();

void prepare(Fiber &f)
{
	if (f.stack.empty())
		f.stack.resize(stackBytes);
	getcontext(&f.context);
	f.context.uc_stack.ss_sp = f.stack.data();
	f.context.uc_stack.ss_size = f.stack.size();
	f.context.uc_link = nullptr;
	makecontext(&f.context, &enter, 0);
}

void resume(Fiber &f) { swapcontext(&scheduler, &f.context); }
void yield(Fiber &f) { swapcontext(&f.context, &scheduler); }
#endif

std::vector<Fiber> fibers;
std::vector<char> finished;
size_t current;
const std::function<void()> *body;

void enter()
{
	for (;;) {
		(*body)();
		finished[current] = 1;
		yield(fibers[current]);
	}
}

} // namespace

extern "C" void __syncthreads() { yield(fibers[current]); }

// diverged ends the process because the threads of a block have reached different numbers of
// barriers. On a GPU the block would hang, or would read values that have not been written.
static void diverged(const char *what)
{
	fprintf(stderr, "cudatest: block (%u, %u, %u): %s\n", blockIdx.x, blockIdx.y, blockIdx.z, what);
	abort();
}

void sim::launch(Dim3 grid, Dim3 block, bool barriers, const std::function<void()> &f)
{
	auto place = [&](size_t i) { threadIdx = {unsigned(i % block.x), unsigned(i / block.x % block.y), unsigned(i / block.x / block.y)}; };
	size_t count = size_t(block.x) * block.y * block.z;
	if (fibers.size() < count)
		fibers.resize(count);
	body = &f;
	static bool backwards;
	backwards = !backwards;
	auto nth = [&](size_t i) { return backwards ? count - 1 - i : i; };
	gridDim = grid;
	blockDim = block;
	for (unsigned z = 0; z < grid.z; z++)
		for (unsigned y = 0; y < grid.y; y++)
			for (unsigned x = 0; x < grid.x; x++) {
				blockIdx = {x, y, z};
				if (!barriers) {
					for (size_t i = 0; i < count; i++) {
						place(nth(i));
						f();
					}
					continue;
				}
				finished.assign(count, 0);
				for (size_t i = 0; i < count; i++)
					prepare(fibers[i]);
				// Each round runs every thread to its next barrier or to its end.
				for (size_t left = count; left > 0;) {
					size_t ended = 0;
					for (size_t i = 0; i < count; i++) {
						current = nth(i);
						place(current);
						resume(fibers[current]);
						if (finished[current])
							ended++;
					}
					if (ended && ended < count)
						diverged("some of its threads have ended, others wait at a barrier");
					left -= ended;
				}
			}
}
