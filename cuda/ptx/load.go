package ptx

import (
	"compress/gzip"
	"fmt"
	"io"
	"sync"
)

// texts are those that have been unpacked.
var texts = struct {
	sync.Mutex
	of map[int][]byte
}{of: map[int][]byte{}}

// For returns the PTX for a GPU of a compute capability: the newest that it
// runs. Nobody may change it.
func For(major, minor int) ([]byte, error) {
	for _, target := range Targets {
		if target <= 10*major+minor {
			texts.Lock()
			defer texts.Unlock()
			if texts.of[target] == nil {
				text, err := read(target)
				if err != nil {
					return nil, err
				}
				texts.of[target] = text
			}
			return texts.of[target], nil
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
