package ptx

import (
	"compress/gzip"
	"fmt"
	"io"
	"sync"
)

// texts caches the decompressed files.
var texts = struct {
	sync.Mutex
	byFile map[string][]byte
}{byFile: map[string][]byte{}}

// For returns the newest PTX that a GPU of a compute capability can run. The result must not be changed.
func For(major, minor int) ([]byte, error) {
	for _, target := range Targets {
		if target <= 10*major+minor {
			return read(File(target))
		}
	}
	return nil, fmt.Errorf("compute capability %d.%d is too old: Mercer needs %d.%d", major, minor, Targets[len(Targets)-1]/10, Targets[len(Targets)-1]%10)
}

// Code returns the code for a GPU of a compute capability, or nil if there is only PTX for
// it. The result must not be changed.
func Code(major, minor int) ([]byte, error) {
	for _, target := range Compiled {
		if target/10 == major && target%10 <= minor {
			return read(CodeFile(target))
		}
	}
	return nil, nil
}

// read returns the decompressed contents of a file, from the cache after the first call.
func read(file string) ([]byte, error) {
	texts.Lock()
	defer texts.Unlock()
	if text := texts.byFile[file]; text != nil {
		return text, nil
	}
	f, err := compiled.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	texts.byFile[file] = text
	return text, nil
}
