package driver

import (
	"encoding/binary"
	"math"
	"runtime"
)

// Args holds the arguments of a device function, packed as C aligns them, for any number of launches: the driver
// copies the arguments before Launch returns. Use NewArgs to make Args, because the driver gets their address.
type Args struct {
	buf   [4096]byte
	size  uintptr
	extra [5]uintptr // not pointers, because two elements are the constants 1 and 2
}

// NewArgs returns Args on the heap, where the garbage collector does not move them.
//
//go:noinline
func NewArgs() *Args {
	const bufferPointer, bufferSize = 1, 2
	a := new(Args)
	a.extra = [5]uintptr{bufferPointer, address(&a.buf[0]), bufferSize, address(&a.size)}
	return a
}

// Reset removes all arguments.
func (a *Args) Reset() *Args {
	a.size = 0
	return a
}

// extend returns the memory of the next argument, whose size is n bytes, a power of two.
func (a *Args) extend(n uintptr) []byte {
	a.size = (a.size + n - 1) &^ (n - 1)
	b := a.buf[a.size : a.size+n]
	a.size += n
	return b
}

// The next methods add an argument: pointer, int, long long, float or double.

func (a *Args) Ptr(p DevicePtr) *Args {
	binary.LittleEndian.PutUint64(a.extend(8), uint64(p))
	return a
}

func (a *Args) Int(v int) *Args {
	binary.LittleEndian.PutUint32(a.extend(4), uint32(int32(v)))
	return a
}

func (a *Args) Long(v int) *Args {
	binary.LittleEndian.PutUint64(a.extend(8), uint64(int64(v)))
	return a
}

func (a *Args) Float(v float32) *Args {
	binary.LittleEndian.PutUint32(a.extend(4), math.Float32bits(v))
	return a
}

func (a *Args) Double(v float64) *Args {
	binary.LittleEndian.PutUint64(a.extend(8), math.Float64bits(v))
	return a
}

// Bytes adds a struct that is passed by value, aligned to 8 bytes.
func (a *Args) Bytes(b []byte) *Args {
	a.size = (a.size + 7) &^ 7
	a.size += uintptr(copy(a.buf[a.size:], b))
	return a
}

// Grid holds the numbers of blocks and of threads per block with which a function runs.
type Grid struct {
	Blocks  [3]int
	Threads [3]int
	Shared  int // number of bytes of dynamic shared memory per block
}

// Launch queues a device function.
func (a *API) Launch(f Function, g Grid, s Stream, args *Args) error {
	err := a.invoke(cuLaunchKernel, uintptr(f),
		uintptr(max(g.Blocks[0], 1)), uintptr(max(g.Blocks[1], 1)), uintptr(max(g.Blocks[2], 1)),
		uintptr(max(g.Threads[0], 1)), uintptr(max(g.Threads[1], 1)), uintptr(max(g.Threads[2], 1)),
		uintptr(g.Shared), uintptr(s), 0, address(&args.extra[0]))
	runtime.KeepAlive(args)
	return err
}
