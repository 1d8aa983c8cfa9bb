package driver

import (
	"bytes"
	"fmt"
	"runtime"
	"unsafe"
)

// These are the driver's types of handles. A DevicePtr is an address in the memory of a device; the
// processor must not dereference it.
type (
	Device    int32
	DevicePtr uint64
	Context   uintptr
	Module    uintptr
	Function  uintptr
	Stream    uintptr
	Event     uintptr
)

// API is the driver API. Every method goes through Call, so that a test can record calls and make a call fail.
type API struct {
	Call func(s *Symbol, args ...uintptr) int32
	Path string // path of the library

	symbols []Symbol
}

// cell returns memory for the output of a C function, on the heap, because a variable on the stack may move.
//
//go:noinline
func cell() *[2]uint64 { return new([2]uint64) }

// buffer returns n bytes on the heap: without noinline, the compiler may place them on the stack.
//
//go:noinline
func buffer(n int) []byte { return make([]byte, n) }

func cString[S ~string | ~[]byte](text S) []byte {
	b := buffer(len(text) + 1)
	copy(b, text)
	return b
}

func address[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// invoke calls a function and returns an *Error if its result is not 0.
func (a *API) invoke(op int, args ...uintptr) error {
	s := &a.symbols[op]
	if r := a.Call(s, args...); r != 0 {
		return a.failure(s.Name, Result(r))
	}
	return nil
}

func (a *API) failure(op string, r Result) error {
	return &Error{Op: op, Code: int(r), Name: a.text(cuGetErrorName, r), Text: a.text(cuGetErrorString, r)}
}

func (a *API) text(op int, r Result) string {
	out := cell()
	if a.Call(&a.symbols[op], uintptr(uint32(r)), address(&out[0])) != 0 || out[0] == 0 {
		return ""
	}
	return goString(uintptr(out[0]))
}

// goString copies a C string of at most 4096 bytes.
func goString(p uintptr) string {
	s := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&p))), 4096)
	n := 0
	for n < len(s) && s[n] != 0 {
		n++
	}
	return string(s[:n])
}

// Init initializes the driver; it must be called once, before any other method.
func (a *API) Init() error { return a.invoke(cuInit, 0) }

// Version returns the newest CUDA version that the driver supports: 12040 means 12.4.
func (a *API) Version() (int, error) {
	out := cell()
	err := a.invoke(cuDriverGetVersion, address(&out[0]))
	return int(int32(out[0])), err
}

func (a *API) DeviceCount() (int, error) {
	out := cell()
	err := a.invoke(cuDeviceGetCount, address(&out[0]))
	return int(int32(out[0])), err
}

func (a *API) Device(ordinal int) (Device, error) {
	out := cell()
	err := a.invoke(cuDeviceGet, address(&out[0]), uintptr(uint32(ordinal)))
	return Device(int32(out[0])), err
}

func (a *API) Name(d Device) (string, error) {
	text := buffer(256)
	err := a.invoke(cuDeviceGetName, address(&text[0]), uintptr(len(text)-1), uintptr(uint32(d)))
	runtime.KeepAlive(text)
	name, _, _ := bytes.Cut(text, []byte{0})
	return string(name), err
}

// TotalMem returns the size of the device's memory in bytes.
func (a *API) TotalMem(d Device) (int64, error) {
	out := cell()
	err := a.invoke(cuDeviceTotalMem, address(&out[0]), uintptr(uint32(d)))
	return int64(out[0]), err
}

// Attribute is a CUdevice_attribute.
type Attribute int32

const (
	ClockRate           Attribute = 13 // in kHz
	MultiprocessorCount Attribute = 16
	MemoryClockRate     Attribute = 36 // in kHz
	MemoryBusWidth      Attribute = 37 // in bits
	ComputeMajor        Attribute = 75
	ComputeMinor        Attribute = 76
	SingleToDoubleRatio Attribute = 87
)

func (a *API) Attribute(d Device, attribute Attribute) (int, error) {
	out := cell()
	err := a.invoke(cuDeviceGetAttribute, address(&out[0]), uintptr(attribute), uintptr(uint32(d)))
	return int(int32(out[0])), err
}

// RetainPrimary returns the primary context of a device, which all users of the device in this
// process share. ReleasePrimary releases it.
func (a *API) RetainPrimary(d Device) (Context, error) {
	out := cell()
	err := a.invoke(cuDevicePrimaryCtxRetain, address(&out[0]), uintptr(uint32(d)))
	return Context(out[0]), err
}

func (a *API) ReleasePrimary(d Device) error {
	return a.invoke(cuDevicePrimaryCtxRelease, uintptr(uint32(d)))
}

// SetCurrent makes c the context of the calling thread.
func (a *API) SetCurrent(c Context) error { return a.invoke(cuCtxSetCurrent, uintptr(c)) }

// Synchronize waits for all work in the current context.
func (a *API) Synchronize() error { return a.invoke(cuCtxSynchronize) }

// MemInfo returns the free and the total memory of the current context's device, in bytes.
func (a *API) MemInfo() (free, total int64, err error) {
	out := cell()
	err = a.invoke(cuMemGetInfo, address(&out[0]), address(&out[1]))
	return int64(out[0]), int64(out[1]), err
}

func (a *API) MemAlloc(bytes int64) (DevicePtr, error) {
	out := cell()
	err := a.invoke(cuMemAlloc, address(&out[0]), uintptr(bytes))
	return DevicePtr(out[0]), err
}

func (a *API) MemFree(p DevicePtr) error { return a.invoke(cuMemFree, uintptr(p)) }

// AllocHost returns page-locked memory of the host. Copies to and from such memory run asynchronously.
func (a *API) AllocHost(bytes int) ([]byte, error) {
	out := cell()
	if err := a.invoke(cuMemAllocHost, address(&out[0]), uintptr(bytes)); err != nil {
		return nil, err
	}
	p := uintptr(out[0])
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&p))), bytes), nil
}

func (a *API) FreeHost(memory []byte) error {
	return a.invoke(cuMemFreeHost, address(unsafe.SliceData(memory)))
}

// A Copy2D moves Height rows of Width bytes. In Src and in Dst, either Host or Device is set; Host
// must be page-locked memory.
type Copy2D struct {
	Src, Dst      Place
	Width, Height int
}

// A Place is the location of rows that are Pitch bytes apart.
type Place struct {
	Host   []byte
	Device DevicePtr
	Pitch  int
}

//go:noinline
func words() *[16]uint64 { return new([16]uint64) }

// mostPitch is the largest pitch, in bytes, that the driver accepts.
const mostPitch = 1<<31 - 1

// Copy queues a copy in a stream. Rows without gaps are copied as one long row, because the driver copies short
// rows many times more slowly.
func (a *API) Copy(c Copy2D, s Stream) error {
	if c.Height == 1 || c.Src.Pitch == c.Width && c.Dst.Pitch == c.Width {
		return a.invoke(cuMemcpyAsync, c.Dst.address(), c.Src.address(), uintptr(c.Width)*uintptr(c.Height), uintptr(s))
	}
	if max(c.Src.Pitch, c.Dst.Pitch) <= mostPitch {
		return a.copy(c, s)
	}
	for i := range c.Height {
		row := Copy2D{Src: c.Src.row(i, c.Width), Dst: c.Dst.row(i, c.Width), Width: c.Width, Height: 1}
		if err := a.Copy(row, s); err != nil {
			return err
		}
	}
	return nil
}

// address returns the start address of a place. Page-locked memory and device memory share one address space.
func (p Place) address() uintptr {
	if p.Host != nil {
		return address(unsafe.SliceData(p.Host))
	}
	return uintptr(p.Device)
}

// row returns the location of row i.
func (p Place) row(i, width int) Place {
	if p.Host != nil {
		return Place{Host: p.Host[i*p.Pitch:], Pitch: width}
	}
	return Place{Device: p.Device + DevicePtr(i*p.Pitch), Pitch: width}
}

func (a *API) copy(c Copy2D, s Stream) error {
	const host, device = 1, 2
	m := words() // the fields of a CUDA_MEMCPY2D
	fill := func(p Place, first int) {
		if p.Host != nil {
			m[first+2], m[first+3] = host, uint64(address(unsafe.SliceData(p.Host)))
		} else {
			m[first+2], m[first+4] = device, uint64(p.Device)
		}
		m[first+6] = uint64(p.Pitch)
	}
	fill(c.Src, 0)
	fill(c.Dst, 7)
	m[14], m[15] = uint64(c.Width), uint64(c.Height)
	err := a.invoke(cuMemcpy2DAsync, address(&m[0]), uintptr(s))
	runtime.KeepAlive(m)
	return err
}

// Clear queues an operation that sets bytes to 0.
func (a *API) Clear(p DevicePtr, bytes int64, s Stream) error {
	return a.invoke(cuMemsetD8Async, uintptr(p), 0, uintptr(bytes), uintptr(s))
}

// Load loads code for the GPU of the current context, or PTX, which the driver compiles for that
// GPU. If loading fails, the error contains the driver's message.
func (a *API) Load(image []byte) (Module, error) {
	const errorLog, errorLogSize = 5, 6
	text, log := cString(image), buffer(8192)
	m := words() // two options, and then the values of the options
	m[0] = errorLog | errorLogSize<<32
	m[1], m[2] = uint64(address(&log[0])), uint64(len(log))
	out := cell()
	err := a.invoke(cuModuleLoadDataEx, address(&out[0]), address(&text[0]), 2, address(&m[0]), address(&m[1]))
	runtime.KeepAlive(text)
	runtime.KeepAlive(log)
	runtime.KeepAlive(m)
	said, _, _ := bytes.Cut(log, []byte{0})
	if err != nil && len(said) > 0 {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(said))
	}
	return Module(out[0]), err
}

func (a *API) Unload(m Module) error { return a.invoke(cuModuleUnload, uintptr(m)) }

func (a *API) Function(m Module, name string) (Function, error) {
	text := cString(name)
	out := cell()
	err := a.invoke(cuModuleGetFunction, address(&out[0]), uintptr(m), address(&text[0]))
	runtime.KeepAlive(text)
	if err != nil {
		err = fmt.Errorf("%w: function %s", err, name)
	}
	return Function(out[0]), err
}

// NewStream returns a stream that does not wait for the default stream.
func (a *API) NewStream() (Stream, error) {
	const nonBlocking = 1
	out := cell()
	err := a.invoke(cuStreamCreate, address(&out[0]), nonBlocking)
	return Stream(out[0]), err
}

func (a *API) DestroyStream(s Stream) error { return a.invoke(cuStreamDestroy, uintptr(s)) }

// Wait waits until all queued work of the stream is done.
func (a *API) Wait(s Stream) error { return a.invoke(cuStreamSynchronize, uintptr(s)) }

// NewEvent returns an event, with a time stamp if it is timed.
func (a *API) NewEvent(timed bool) (Event, error) {
	const disableTiming = 2
	flags := uintptr(disableTiming)
	if timed {
		flags = 0
	}
	out := cell()
	err := a.invoke(cuEventCreate, address(&out[0]), flags)
	return Event(out[0]), err
}

func (a *API) DestroyEvent(e Event) error { return a.invoke(cuEventDestroy, uintptr(e)) }

// Record queues the event e in the stream s. The event occurs when all work queued before it is done.
func (a *API) Record(e Event, s Stream) error { return a.invoke(cuEventRecord, uintptr(e), uintptr(s)) }

// WaitEvent waits until e has occurred; WaitInStream makes a stream wait for e.
func (a *API) WaitEvent(e Event) error { return a.invoke(cuEventSynchronize, uintptr(e)) }

func (a *API) WaitInStream(s Stream, e Event) error {
	return a.invoke(cuStreamWaitEvent, uintptr(s), uintptr(e), 0)
}
