// A simulated driver API without a GPU. Device memory is memory of the process; a guard page behind
// each allocation must not be accessed. A call returns an error if a real driver returns one.
//
// The first, third, … stream of a context is late: its work runs only when the host waits for the
// stream, for an event recorded after the work, or for another stream that waits for such an event.
// Results are therefore wrong if a host buffer is changed too early or if no wait for an event was
// queued. The other streams are early: their work runs as soon as it is queued, before all work of
// other streams for which it does not wait.

#include "cuda_cpu.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <sys/mman.h>
#include <cstdlib>
#include <unistd.h>

typedef int CUresult;
enum {
	SUCCESS = 0,
	INVALID_VALUE = 1,
	OUT_OF_MEMORY = 2,
	NOT_INITIALIZED = 3,
	INVALID_DEVICE = 101,
	INVALID_CONTEXT = 201,
	NO_BINARY = 209,
	INVALID_PTX = 218,
	INVALID_HANDLE = 400,
	NOT_FOUND = 500,
	ILLEGAL_ADDRESS = 700,
};

namespace {

std::map<std::string, sim::Kernel> &registry()
{
	static std::map<std::string, sim::Kernel> r;
	return r;
}

std::mutex mu;
bool initialised;
const size_t total = size_t(3) << 30;
struct Stream;
struct Allocation {
	void *base;
	size_t mapped, bytes;
	std::map<Stream *, uint64_t> copies; // position of the last copy that uses the memory, by stream
};

// Gpu is a device with its primary context; the context's handle is the address of the Gpu. An
// object made in one context is invalid in another.
struct Gpu {
	int retained;
	size_t used;
	std::map<uintptr_t, Allocation> device;
	std::set<void *> streams, events;
	unsigned made; // number of streams made so far
	std::map<void *, std::set<std::string>> modules; // the modules, with the names of the functions in each
	std::map<void *, const sim::Kernel *> functions;
};

// Stream holds the work of a stream. The stream's handle is the address of the Stream.
struct Stream {
	std::recursive_mutex running;
	std::mutex mu;
	std::deque<std::function<void()>> work;
	uint64_t queued = 0, done = 0;
	bool early = false;

	// add queues f and returns its position in the queue.
	uint64_t add(std::function<void()> f)
	{
		uint64_t place;
		{
			std::lock_guard<std::mutex> lock(mu);
			work.push_back(std::move(f));
			place = ++queued;
		}
		if (early)
			drain();
		return place;
	}

	// reach runs the work up to position n.
	void reach(uint64_t n)
	{
		std::lock_guard<std::recursive_mutex> one(running);
		for (;;) {
			std::function<void()> f;
			{
				std::lock_guard<std::mutex> lock(mu);
				if (done >= n || work.empty())
					return;
				f = std::move(work.front());
				work.pop_front();
			}
			f();
			std::lock_guard<std::mutex> lock(mu);
			done++;
		}
	}

	void drain() { reach(UINT64_MAX); }

	// reached reports whether the work up to position n has run.
	bool reached(uint64_t n)
	{
		std::lock_guard<std::mutex> lock(mu);
		return done >= n;
	}
};

// Event holds the stream and the position at which the event was last recorded. Streams are never
// deleted, because an event may outlive its stream.
struct Event {
	Stream *stream = nullptr;
	uint64_t place = 0;
};
const int count = 2;
Gpu gpus[count];
std::map<uintptr_t, Allocation> host; // page-locked in every context
thread_local Gpu *context;
std::mutex running; // device functions of all devices share the fibers

size_t limit()
{
	const char *text = getenv("MERCER_SIM_MEMORY");
	return text ? strtoull(text, nullptr, 10) : total;
}

#define NEED_INIT          \
	if (!initialised)  \
		return NOT_INITIALIZED;
#define NEED_CONTEXT                         \
	NEED_INIT                            \
	if (!context || !context->retained)  \
		return INVALID_CONTEXT;

// streams returns the streams of a context.
std::vector<Stream *> streams(Gpu *g)
{
	std::lock_guard<std::mutex> lock(mu);
	std::vector<Stream *> list;
	for (void *s : g->streams)
		list.push_back(static_cast<Stream *>(s));
	return list;
}

void drain(Gpu *g)
{
	for (Stream *s : streams(g))
		s->drain();
}

bool map(size_t bytes, Allocation &a)
{
	size_t page = sysconf(_SC_PAGESIZE);
	a.bytes = bytes;
	a.mapped = (bytes + page - 1) / page * page + page;
	a.base = mmap(nullptr, a.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (a.base == MAP_FAILED)
		return false;
	mprotect(static_cast<char *>(a.base) + a.mapped - page, page, PROT_NONE);
	return true;
}

// start returns the first address of the allocated memory, which ends at the guard page after
// rounding its size up to a multiple of 8 bytes.
uintptr_t start(const Allocation &a)
{
	size_t page = sysconf(_SC_PAGESIZE);
	return reinterpret_cast<uintptr_t>(a.base) + a.mapped - page - (a.bytes + 7) / 8 * 8;
}

bool inside(const std::map<uintptr_t, Allocation> &m, uintptr_t p, size_t bytes)
{
	auto it = m.upper_bound(p);
	if (it == m.begin())
		return false;
	--it;
	return p + bytes <= it->first + (it->second.bytes + 7) / 8 * 8;
}

} // namespace

const sim::Kernel *sim::find(const std::string &name)
{
	auto it = registry().find(name);
	return it == registry().end() ? nullptr : &it->second;
}

void sim::add(const std::string &name, Kernel kernel) { registry()[name] = std::move(kernel); }

#define EXPORT extern "C" __attribute__((visibility("default")))

// The simulated cuBLAS and cuSOLVER call the next functions.
EXPORT void *mercer_sim_context() { return context && context->retained ? context : nullptr; }
EXPORT void mercer_sim_queue(void *stream, std::function<void()> *work) { static_cast<Stream *>(stream)->add(*work); }

EXPORT CUresult cuInit(unsigned flags)
{
	if (flags != 0)
		return INVALID_VALUE;
	initialised = true;
	return SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int *v)
{
	*v = 12040;
	return SUCCESS;
}

EXPORT CUresult cuGetErrorName(CUresult e, const char **s)
{
	static const std::map<int, const char *> names{
		{1, "CUDA_ERROR_INVALID_VALUE"}, {2, "CUDA_ERROR_OUT_OF_MEMORY"}, {3, "CUDA_ERROR_NOT_INITIALIZED"},
		{101, "CUDA_ERROR_INVALID_DEVICE"}, {201, "CUDA_ERROR_INVALID_CONTEXT"}, {218, "CUDA_ERROR_INVALID_PTX"},
		{400, "CUDA_ERROR_INVALID_HANDLE"}, {500, "CUDA_ERROR_NOT_FOUND"}, {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
		{999, "CUDA_ERROR_UNKNOWN"}};
	auto it = names.find(e);
	if (it == names.end())
		return INVALID_VALUE;
	*s = it->second;
	return SUCCESS;
}

EXPORT CUresult cuGetErrorString(CUresult e, const char **s)
{
	*s = "as the simulated driver says";
	return e == SUCCESS ? INVALID_VALUE : SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *n)
{
	NEED_INIT
	*n = count;
	return SUCCESS;
}

EXPORT CUresult cuDeviceGet(int *d, int ordinal)
{
	NEED_INIT
	if (ordinal < 0 || ordinal >= count)
		return INVALID_DEVICE;
	*d = ordinal;
	return SUCCESS;
}

EXPORT CUresult cuDeviceGetName(char *name, int len, int)
{
	strncpy(name, "Simulated GPU", len);
	return SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, int)
{
	*bytes = limit();
	return SUCCESS;
}

EXPORT CUresult cuDeviceGetAttribute(int *v, int attribute, int)
{
	switch (attribute) {
	case 16: // multiprocessors
		*v = 2;
		break;
	case 13: // clock in kHz: so low that steps are short
		*v = 10000;
		break;
	case 36: // memory clock in kHz; the next attribute is the width of the memory bus in bits
		*v = 100000;
		break;
	case 37:
		*v = 64;
		break;
	case 75:
		*v = 9;
		break;
	case 76:
		*v = 0;
		break;
	case 87:
		*v = 2;
		break;
	default:
		return INVALID_VALUE;
	}
	return SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(void **c, int d)
{
	NEED_INIT
	if (d < 0 || d >= count)
		return INVALID_DEVICE;
	std::lock_guard<std::mutex> lock(mu);
	gpus[d].retained++;
	*c = &gpus[d];
	return SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(int d)
{
	std::lock_guard<std::mutex> lock(mu);
	if (d < 0 || d >= count || gpus[d].retained == 0)
		return INVALID_CONTEXT;
	gpus[d].retained--; // queued work never runs after this
	return SUCCESS;
}

EXPORT CUresult cuCtxSetCurrent(void *c)
{
	NEED_INIT
	context = static_cast<Gpu *>(c);
	return SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(void **c)
{
	*c = context;
	return SUCCESS;
}

EXPORT CUresult cuCtxSynchronize()
{
	NEED_CONTEXT
	drain(context);
	return SUCCESS;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *free, size_t *all)
{
	NEED_CONTEXT
	std::lock_guard<std::mutex> lock(mu);
	*all = limit();
	*free = limit() - context->used;
	return SUCCESS;
}

EXPORT CUresult cuMemAlloc_v2(uintptr_t *p, size_t bytes)
{
	NEED_CONTEXT
	if (bytes == 0)
		return INVALID_VALUE;
	std::lock_guard<std::mutex> lock(mu);
	Allocation a;
	if (bytes > limit() - context->used || !map(bytes, a))
		return OUT_OF_MEMORY;
	// Fill the memory with NaN, so that elements which no device function writes are not 0.
	memset(reinterpret_cast<void *>(start(a)), 0xff, bytes);
	context->used += bytes;
	*p = start(a);
	context->device[*p] = a;
	return SUCCESS;
}

EXPORT CUresult cuMemFree_v2(uintptr_t p)
{
	NEED_CONTEXT
	drain(context); // a real driver waits for the queued work here
	std::lock_guard<std::mutex> lock(mu);
	auto it = context->device.find(p);
	if (it == context->device.end())
		return INVALID_VALUE;
	context->used -= it->second.bytes;
	munmap(it->second.base, it->second.mapped);
	context->device.erase(it);
	return SUCCESS;
}

EXPORT CUresult cuMemAllocHost_v2(void **p, size_t bytes)
{
	NEED_CONTEXT
	std::lock_guard<std::mutex> lock(mu);
	Allocation a;
	if (bytes == 0 || !map(bytes, a))
		return OUT_OF_MEMORY;
	*p = reinterpret_cast<void *>(start(a));
	host[start(a)] = a;
	return SUCCESS;
}

EXPORT CUresult cuMemFreeHost(void *p)
{
	NEED_CONTEXT
	std::lock_guard<std::mutex> lock(mu);
	auto it = host.find(reinterpret_cast<uintptr_t>(p));
	if (it == host.end())
		return INVALID_VALUE;
	for (auto [stream, place] : it->second.copies)
		if (!stream->reached(place))
			return INVALID_VALUE; // a queued copy still uses the memory
	munmap(it->second.base, it->second.mapped);
	host.erase(it);
	return SUCCESS;
}

struct Copy2D {
	size_t srcX, srcY;
	int srcType;
	const void *srcHost;
	uintptr_t srcDevice;
	void *srcArray;
	size_t srcPitch, dstX, dstY;
	int dstType;
	void *dstHost;
	uintptr_t dstDevice;
	void *dstArray;
	size_t dstPitch, width, height;
};
static_assert(sizeof(Copy2D) == 128, "CUDA_MEMCPY2D");

EXPORT CUresult cuMemcpy2DAsync_v2(const Copy2D *c, void *stream)
{
	NEED_CONTEXT
	std::unique_lock<std::mutex> lock(mu);
	if (!context->streams.count(stream))
		return INVALID_HANDLE;
	if (c->width == 0 || c->height == 0)
		return SUCCESS;
	if (c->srcPitch < c->width || c->dstPitch < c->width || std::max(c->srcPitch, c->dstPitch) > INT32_MAX)
		return INVALID_VALUE;
	uintptr_t from = c->srcType == 1 ? reinterpret_cast<uintptr_t>(c->srcHost) : c->srcDevice;
	uintptr_t to = c->dstType == 1 ? reinterpret_cast<uintptr_t>(c->dstHost) : c->dstDevice;
	size_t fromBytes = (c->height - 1) * c->srcPitch + c->width, toBytes = (c->height - 1) * c->dstPitch + c->width;
	if (!inside(c->srcType == 1 ? host : context->device, from, fromBytes) || !inside(c->dstType == 1 ? host : context->device, to, toBytes))
		return INVALID_VALUE;
	lock.unlock();
	Stream *s = static_cast<Stream *>(stream);
	uint64_t place = s->add([from, to, c = *c] {
		for (size_t i = 0; i < c.height; i++)
			memcpy(reinterpret_cast<char *>(to) + i * c.dstPitch, reinterpret_cast<const char *>(from) + i * c.srcPitch, c.width);
	});
	lock.lock();
	for (auto [type, p] : {std::pair(c->srcType, from), std::pair(c->dstType, to)})
		if (type == 1) {
			uint64_t &last = std::prev(host.upper_bound(p))->second.copies[s];
			last = std::max(last, place);
		}
	return SUCCESS;
}

EXPORT CUresult cuMemcpyAsync(uintptr_t to, uintptr_t from, size_t n, void *stream)
{
	NEED_CONTEXT
	std::unique_lock<std::mutex> lock(mu);
	if (!context->streams.count(stream))
		return INVALID_HANDLE;
	if (n == 0)
		return SUCCESS;
	for (uintptr_t p : {to, from})
		if (!inside(context->device, p, n) && !inside(host, p, n))
			return INVALID_VALUE;
	lock.unlock();
	Stream *s = static_cast<Stream *>(stream);
	uint64_t place = s->add([=] { memmove(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), n); });
	lock.lock();
	for (uintptr_t p : {to, from})
		if (inside(host, p, n)) {
			uint64_t &last = std::prev(host.upper_bound(p))->second.copies[s];
			last = std::max(last, place);
		}
	return SUCCESS;
}

EXPORT CUresult cuMemcpyDtoDAsync_v2(uintptr_t to, uintptr_t from, size_t n, void *stream)
{
	NEED_CONTEXT
	std::unique_lock<std::mutex> lock(mu);
	if (!context->streams.count(stream))
		return INVALID_HANDLE;
	if (!inside(context->device, to, n) || !inside(context->device, from, n))
		return INVALID_VALUE;
	lock.unlock();
	static_cast<Stream *>(stream)->add([=] { memmove(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), n); });
	return SUCCESS;
}

// The next three functions are not used by Mercer, but by other programs that use the driver in the
// same process.

EXPORT CUresult cuCtxGetDevice(int *d)
{
	NEED_CONTEXT
	*d = context - gpus;
	return SUCCESS;
}

EXPORT CUresult cuMemcpyHtoD_v2(uintptr_t to, const void *from, size_t n)
{
	NEED_CONTEXT
	std::lock_guard<std::mutex> lock(mu);
	if (!inside(context->device, to, n))
		return INVALID_VALUE;
	memcpy(reinterpret_cast<void *>(to), from, n);
	return SUCCESS;
}

EXPORT CUresult cuMemcpyDtoH_v2(void *to, uintptr_t from, size_t n)
{
	NEED_CONTEXT
	std::lock_guard<std::mutex> lock(mu);
	if (!inside(context->device, from, n))
		return INVALID_VALUE;
	memcpy(to, reinterpret_cast<void *>(from), n);
	return SUCCESS;
}

EXPORT CUresult cuMemsetD8Async(uintptr_t p, unsigned char v, size_t n, void *stream)
{
	NEED_CONTEXT
	std::unique_lock<std::mutex> lock(mu);
	if (!context->streams.count(stream))
		return INVALID_HANDLE;
	if (!inside(context->device, p, n))
		return INVALID_VALUE;
	lock.unlock();
	static_cast<Stream *>(stream)->add([=] { memset(reinterpret_cast<void *>(p), v, n); });
	return SUCCESS;
}

// handle allocates a T, adds its address to set and returns the address as a new handle.
template <class T> void *handle(std::set<void *> &set)
{
	std::lock_guard<std::mutex> lock(mu);
	void *p = new T;
	set.insert(p);
	return p;
}

static bool known(const std::set<void *> &set, void *p)
{
	std::lock_guard<std::mutex> lock(mu);
	return set.count(p) > 0;
}

EXPORT CUresult cuModuleLoadDataEx(void **m, const void *image, unsigned, int *, void **)
{
	NEED_CONTEXT
	const char *from = static_cast<const char *>(image);
	std::string all;
	std::set<std::string> names;
	if (!memcmp(from, "\177ELF", 4)) { // code: all of it up to the end of its tables
		if (getenv("MERCER_SIM_NO_CODE"))
			return NO_BINARY;
		auto word = [&](int at) { uint64_t v; memcpy(&v, from + at, 8); return size_t(v); };
		auto half = [&](int at) { uint16_t v; memcpy(&v, from + at, 2); return size_t(v); };
		all.assign(from, std::max(word(32) + half(54) * half(56), word(40) + half(58) * half(60)));
		for (const char *c = all.data(); (c = static_cast<const char *>(memmem(c, all.data() + all.size() - c, ".text.", 6))); c += 6)
			names.insert(std::string(c + 6)); // names end with 0
	} else {
		all = from;
		for (size_t at = 0; (at = all.find(".visible .entry ", at)) != std::string::npos; at++)
			names.insert(all.substr(at + 16, all.find('(', at) - at - 16));
	}
	if (!names.count("gemm_f64"))
		return INVALID_PTX;
	std::lock_guard<std::mutex> lock(mu);
	*m = malloc(1);
	context->modules[*m] = names;
	return SUCCESS;
}

EXPORT CUresult cuModuleUnload(void *m)
{
	NEED_CONTEXT
	drain(context);
	std::lock_guard<std::mutex> lock(mu);
	return context->modules.erase(m) ? SUCCESS : INVALID_HANDLE;
}

EXPORT CUresult cuModuleGetFunction(void **f, void *m, const char *name)
{
	NEED_CONTEXT
	std::lock_guard<std::mutex> lock(mu);
	auto it = context->modules.find(m);
	if (it == context->modules.end())
		return INVALID_HANDLE;
	const sim::Kernel *k = sim::find(name);
	// A function must be both in the code compiled for the processor and in the PTX or code that a
	// GPU would be given.
	if (!k || !it->second.count(name))
		return NOT_FOUND;
	*f = const_cast<sim::Kernel *>(k);
	context->functions[*f] = k;
	return SUCCESS;
}

EXPORT CUresult cuFuncSetAttribute(void *, int, int) { return SUCCESS; }

EXPORT CUresult cuFuncGetAttribute(int *v, int, void *)
{
	*v = 0;
	return SUCCESS;
}

EXPORT CUresult cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned, void *stream, void **params, void **extra)
{
	NEED_CONTEXT
	if (!known(context->streams, stream))
		return INVALID_HANDLE;
	const sim::Kernel *k;
	{
		std::lock_guard<std::mutex> lock(mu);
		auto it = context->functions.find(f);
		if (it == context->functions.end())
			return INVALID_HANDLE;
		k = it->second;
	}
	if (params || !extra || extra[0] != reinterpret_cast<void *>(1) || extra[2] != reinterpret_cast<void *>(2) || extra[4])
		return INVALID_VALUE;
	if (gx == 0 || gy == 0 || gz == 0 || gy > 65535 || gz > 65535 || bx * by * bz > 1024 || bx * by * bz == 0)
		return INVALID_VALUE;
	size_t size = *static_cast<size_t *>(extra[3]);
	if (size > 4096)
		return INVALID_VALUE;
	auto run = (*k)({gx, gy, gz}, {bx, by, bz}, static_cast<const unsigned char *>(extra[1]), size);
	if (!run)
		return INVALID_VALUE;
	static_cast<Stream *>(stream)->add([run] {
		std::lock_guard<std::mutex> lock(running);
		run();
	});
	return SUCCESS;
}

EXPORT CUresult cuStreamCreate(void **s, unsigned)
{
	NEED_CONTEXT
	*s = handle<Stream>(context->streams);
	static_cast<Stream *>(*s)->early = context->made++ % 2;
	return SUCCESS;
}

EXPORT CUresult cuStreamDestroy_v2(void *s)
{
	NEED_CONTEXT
	if (!known(context->streams, s))
		return INVALID_HANDLE;
	static_cast<Stream *>(s)->drain();
	std::lock_guard<std::mutex> lock(mu);
	context->streams.erase(s);
	return SUCCESS;
}

EXPORT CUresult cuStreamSynchronize(void *s)
{
	NEED_CONTEXT
	if (!known(context->streams, s))
		return INVALID_HANDLE;
	static_cast<Stream *>(s)->drain();
	return SUCCESS;
}

EXPORT CUresult cuEventCreate(void **e, unsigned)
{
	NEED_CONTEXT
	*e = handle<Event>(context->events);
	return SUCCESS;
}

EXPORT CUresult cuEventDestroy_v2(void *e)
{
	NEED_CONTEXT
	std::lock_guard<std::mutex> lock(mu);
	if (!context->events.erase(e))
		return INVALID_HANDLE;
	delete static_cast<Event *>(e);
	return SUCCESS;
}

// recorded sets at to a copy of the event e, or returns INVALID_HANDLE for an unknown event.
static CUresult recorded(void *e, Event &at)
{
	std::lock_guard<std::mutex> lock(mu);
	if (!context->events.count(e))
		return INVALID_HANDLE;
	at = *static_cast<Event *>(e);
	return SUCCESS;
}

EXPORT CUresult cuStreamWaitEvent(void *s, void *e, unsigned)
{
	NEED_CONTEXT
	Event at;
	if (!known(context->streams, s) || recorded(e, at) != SUCCESS)
		return INVALID_HANDLE;
	if (at.stream)
		static_cast<Stream *>(s)->add([at] { at.stream->reach(at.place); });
	return SUCCESS;
}

EXPORT CUresult cuEventRecord(void *e, void *s)
{
	NEED_CONTEXT
	if (!known(context->streams, s) || !known(context->events, e))
		return INVALID_HANDLE;
	Stream *stream = static_cast<Stream *>(s);
	std::lock_guard<std::mutex> lock(mu);
	std::lock_guard<std::mutex> other(stream->mu);
	*static_cast<Event *>(e) = {stream, stream->queued};
	return SUCCESS;
}

EXPORT CUresult cuEventSynchronize(void *e)
{
	NEED_CONTEXT
	Event at;
	if (recorded(e, at) != SUCCESS)
		return INVALID_HANDLE;
	if (at.stream)
		at.stream->reach(at.place);
	return SUCCESS;
}

EXPORT CUresult cuEventQuery(void *e) { return cuEventSynchronize(e); }

EXPORT CUresult cuEventElapsedTime(float *ms, void *a, void *b)
{
	NEED_CONTEXT
	if (!known(context->events, a) || !known(context->events, b))
		return INVALID_HANDLE;
	*ms = 0;
	return SUCCESS;
}
