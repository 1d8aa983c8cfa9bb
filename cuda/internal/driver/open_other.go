//go:build !linux || !(amd64 || arm64)

package driver

import (
	"fmt"
	"runtime"
)

var errSystem = fmt.Errorf("libraries are opened on linux/amd64 and linux/arm64 only, this is %s/%s", runtime.GOOS, runtime.GOARCH)

func openLibrary(string) (uintptr, error)         { return 0, errSystem }
func findSymbol(uintptr, string) (uintptr, error) { return 0, errSystem }
func callC(uintptr, ...uintptr) uintptr           { panic("driver: no library is open") }
