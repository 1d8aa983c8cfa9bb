package ptx

import (
	"compress/gzip"
	"fmt"
	"io"
)

// For returns the PTX for a GPU of a compute capability: the newest that it
// runs.
func For(major, minor int) ([]byte, error) {
	for _, target := range Targets {
		if target <= 10*major+minor {
			return read(target)
		}
	}
	return nil, fmt.Errorf("compute capability %d.%d is too old: %d.%d is needed", major, minor, Targets[len(Targets)-1]/10, Targets[len(Targets)-1]%10)
}

func read(target int) ([]byte, error) {
	f, err := compiled.Open(File(target))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}
