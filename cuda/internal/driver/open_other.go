//go:build static || !linux || !(amd64 || arm64)

package driver

import (
	"fmt"
	"runtime"
)

var errSystem = fmt.Errorf("this build for %s/%s cannot open shared libraries: use a build for linux/amd64 or linux/arm64 without the tag static", runtime.GOOS, runtime.GOARCH)

func openLibrary(string) (uintptr, error)         { return 0, errSystem }
func findSymbol(uintptr, string) (uintptr, error) { return 0, errSystem }
func callC(uintptr, ...uintptr) uintptr           { panic("driver: no library is open") }
