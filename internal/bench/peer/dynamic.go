//go:build linux && (amd64 || arm64) && !static

package peer

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/mercer-go/mercer/backend"
)

// library is an opened shared library.
type library struct {
	name, path string
	handle     uintptr
}

// open opens a library with one of the names in files, from locations, or from the folders of the system's loader.
func open(name string, files, locations []string) (library, error) {
	for _, location := range locations {
		info, err := os.Stat(location)
		if err != nil {
			continue
		}
		for _, file := range files {
			path := filepath.Join(location, file)
			if !info.IsDir() {
				if stem, _, _ := strings.Cut(file, ".so"); !strings.HasPrefix(filepath.Base(location), stem) {
					continue // location is the file of another library
				}
				path = location
			}
			if _, err := os.Stat(path); err == nil {
				return load(name, path)
			}
		}
	}
	for _, file := range files {
		l, err := load(name, file)
		if err == nil {
			return l, nil
		}
		if !strings.Contains(err.Error(), ": "+file+": cannot open") {
			return l, err // there is such a file, but it cannot be loaded
		}
	}
	looked := append(slices.Clip(locations), "the folders of the system's loader")
	return library{}, fmt.Errorf("%w: %s; looked in %s", ErrMissing, strings.Join(files, ", "), strings.Join(looked, ", "))
}

// load opens a library. Its symbols remain private: two libraries with the same symbols must not call each other.
func load(name, path string) (library, error) {
	handle, err := dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return library{}, fmt.Errorf("bench: %s: %w", name, err)
	}
	return library{name: name, path: path, handle: handle}, nil
}

// reload loads l again after setting a variable in the environment of C, which os.Setenv does not change.
func (l library) reload(variable, value string) (library, error) {
	p, err := purego.Dlsym(purego.RTLD_DEFAULT, "setenv")
	if err == nil {
		var setenv func(name, value string, overwrite int32) int32
		purego.RegisterFunc(&setenv, p)
		setenv(variable, value, 1)
		err = purego.Dlclose(l.handle)
	}
	if err != nil {
		return l, fmt.Errorf("bench: %s: %w", l.name, err)
	}
	return load(l.name, l.path)
}

// dlopen locks the goroutine to its thread, for which the loader stores the reason of a failure.
func dlopen(path string, mode int) (uintptr, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return purego.Dlopen(path, mode)
}

func (l library) symbol(name string) (uintptr, error) {
	p, err := purego.Dlsym(l.handle, name)
	if err != nil {
		return 0, fmt.Errorf("bench: %s: %s has no %s", l.name, l.path, name)
	}
	return p, nil
}

// bind makes the given Go functions call the symbols with the given names.
func (l library) bind(functions map[string]any) error {
	for name, f := range functions {
		p, err := l.symbol(name)
		if err != nil {
			return err
		}
		purego.RegisterFunc(f, p)
	}
	return nil
}

// call calls a function whose arguments are all pointers. alive stays reachable until the function returns.
func call(function uintptr, alive any, arguments ...uintptr) {
	purego.SyscallN(function, arguments...)
	runtime.KeepAlive(alive)
}

func ptr[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

func data[T backend.Float](h backend.Host[T]) uintptr { return ptr(unsafe.SliceData(h.Data)) }
