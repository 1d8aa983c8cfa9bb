package driver

import (
	"strings"
	"testing"
	"unsafe"
)

// TestBuffersDoNotMove checks that memory which the driver reads and writes does not move if the stack of the
// calling goroutine grows before the call. It tries every depth of calls, because the frames of the callers
// determine when it grows.
func TestBuffersDoNotMove(t *testing.T) {
	const device, function, image = "NVIDIA H200", "gram_mul_sqdist_f64", ".version 7.8"
	const errorLog = "ptxas error"
	pointer := func(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }
	write := func(p uintptr, size int, text string) {
		b := unsafe.Slice((*byte)(pointer(p)), size)
		b[copy(b, text)] = 0
	}
	var depth int
	var moved int
	api := API{symbols: driverTable}
	api.Call = func(s *Symbol, args ...uintptr) int32 {
		grow(100)
		switch s.Name {
		case "cuDeviceGetName":
			write(args[0], int(args[1]), device)
		case "cuModuleGetFunction":
			if goString(args[2]) != function {
				moved++
			}
		case "cuModuleLoadDataEx":
			if goString(args[1]) != image {
				moved++
			}
			options := (*[16]uint64)(pointer(args[4]))
			write(uintptr(options[0]), int(options[1]), errorLog)
			return 218
		}
		return 0
	}
	for depth = range 400 {
		done := make(chan struct{})
		go func() { // a goroutine with a new stack
			defer close(done)
			atDepth(depth, func() {
				if name, err := api.Name(0); name != device || err != nil {
					t.Errorf("depth %d: the name is %q, %v", depth, name, err)
				}
			})
		}()
		<-done
		done = make(chan struct{})
		go func() {
			defer close(done)
			atDepth(depth, func() { api.Function(0, function) })
		}()
		<-done
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := api.Load([]byte(image)); err == nil || !strings.Contains(err.Error(), errorLog) {
			t.Errorf("the log of the compiler: %v", err)
		}
	}()
	<-done
	if moved > 0 {
		t.Errorf("%d of 401 texts had moved when they were read", moved)
	}
}

// grow recurses through n frames of 1 KB.
//
//go:noinline
func grow(n int) byte {
	var frame [1024]byte
	frame[n%len(frame)] = 1
	if n == 0 {
		return frame[len(frame)-1]
	}
	return grow(n-1) + frame[n%7]
}

// atDepth calls f below n stack frames.
//
//go:noinline
func atDepth(n int, f func()) int {
	if n == 0 {
		f()
		return 0
	}
	return atDepth(n-1, f) + 1
}
