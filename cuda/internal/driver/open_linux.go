//go:build linux && (amd64 || arm64) && !static

package driver

import (
	"runtime"

	"github.com/ebitengine/purego"
)

// errSystem is the reason why this build cannot open libraries; here it is nil.
var errSystem error

// openLibrary stays on one thread, because the loader stores the reason for a failure per thread.
// It binds symbols immediately, and hides them from other libraries.
func openLibrary(path string) (uintptr, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func findSymbol(library uintptr, name string) (uintptr, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return purego.Dlsym(library, name)
}

func callC(function uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(function, args...)
	return r
}
