//go:build static || !linux || !(amd64 || arm64)

package peer

import (
	"fmt"
	"runtime"
)

func openBLAS([]string) (*Library, error) { return nil, unreachable() }
func blis([]string) (*Library, error)     { return nil, unreachable() }
func mkl([]string) (*Library, error)      { return nil, unreachable() }

func unreachable() error {
	return fmt.Errorf("%w: this build for %s/%s opens no shared libraries: use a build for linux/amd64 or linux/arm64 without the tag static", ErrMissing, runtime.GOOS, runtime.GOARCH)
}
