//go:build !(linux && (amd64 || arm64))

package peer

import (
	"fmt"
	"runtime"
)

func openBLAS([]string) (*Library, error) { return nil, unreachable() }
func blis([]string) (*Library, error)     { return nil, unreachable() }
func mkl([]string) (*Library, error)      { return nil, unreachable() }

func unreachable() error {
	return fmt.Errorf("%w: libraries are not opened on %s/%s", ErrMissing, runtime.GOOS, runtime.GOARCH)
}
