//go:build linux && (amd64 || arm64) && !static

package peer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"
)

// Numbers of the layers of libmkl_rt: the interface with 32-bit integers, and the threads of GNU OpenMP.
const (
	interfaceLP64 = 0
	threadingGNU  = 3
)

// mklVersion is the struct MKLVersion of mkl_types.h.
type mklVersion struct {
	Major, Minor, Update         int32
	Status, Build, CPU, Platform *byte
}

func mkl(locations []string) (*Library, error) {
	l, err := open("mkl", []string{"libmkl_rt.so", "libmkl_rt.so.2", "libmkl_rt.so.1"}, locations)
	if err != nil {
		return nil, err
	}
	// MKL's GNU threads need the symbols of libgomp, and MKL opens its other libraries by name without a path.
	if _, err := dlopen("libgomp.so.1", purego.RTLD_NOW|purego.RTLD_GLOBAL); err != nil {
		return nil, fmt.Errorf("bench: mkl: its threads need libgomp: %w", err)
	}
	if folder := filepath.Dir(l.path); folder != "." {
		for _, name := range []string{"libmkl_core.so", "libmkl_gnu_thread.so", "libmkl_intel_lp64.so"} {
			paths, _ := filepath.Glob(filepath.Join(folder, name+"*"))
			for _, path := range paths {
				if _, err := dlopen(path, purego.RTLD_LAZY|purego.RTLD_GLOBAL); err != nil {
					return nil, fmt.Errorf("bench: mkl: %w", err)
				}
			}
		}
	}
	var layer, integers func(int32) int32
	var threads, dynamic func(int32)
	var version func(*mklVersion)
	var describe func(*byte, int32)
	if err := l.bind(map[string]any{
		"MKL_Set_Threading_Layer": &layer, "MKL_Set_Interface_Layer": &integers,
		"MKL_Set_Num_Threads": &threads, "MKL_Set_Dynamic": &dynamic,
		"MKL_Get_Version": &version, "MKL_Get_Version_String": &describe,
	}); err != nil {
		return nil, err
	}
	integers(interfaceLP64)
	if os.Getenv("MKL_THREADING_LAYER") == "" {
		layer(threadingGNU)
	}
	dynamic(0) // otherwise MKL may use fewer threads than requested
	var v mklVersion
	version(&v)
	text := make([]byte, 200)
	describe(&text[0], int32(len(text)))
	out := &Library{Name: l.name, Path: l.path, Spin: 30 * time.Millisecond} // MKL's threads spin for 10 to 20 ms on a processor of 2.6 GHz
	out.Detail = fmt.Sprintf("%s, code path %s", strings.TrimSpace(unix.ByteSliceToString(text)), unix.BytePtrToString(v.CPU))
	for _, name := range []string{"MKL_DEBUG_CPU_TYPE", "MKL_ENABLE_INSTRUCTIONS", "MKL_CBWR"} {
		if set := os.Getenv(name); set != "" {
			out.Detail += fmt.Sprintf(" (%s=%s)", name, set)
		}
	}
	return out, l.routines(out, func(n int) { threads(int32(n)) })
}
