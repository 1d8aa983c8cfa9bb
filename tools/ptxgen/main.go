// Command ptxgen compiles the device functions of package cuda to PTX and, for GPUs on which the driver should not
// have to compile PTX, to GPU code:
//
//	go run ./ptxgen FOLDER     (in folder tools)
//
// FOLDER holds NVRTC 11.8: libnvrtc.so.11.2 and libnvrtc-builtins.so.11.8. The generated files are checked in;
// ptxgen_test.go fails if they differ from the program's output or, without NVRTC, if the sources have changed.
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	folder = "../cuda/internal/ptx"
	// mainFile is the source that includes all other sources.
	mainFile = "mercer.cu"
	// hashFile holds the hash of the sources from which the PTX was made.
	hashFile = "sources.sha256"
)

// targets and compiled are the lists of package ptx of the same names.
var (
	targets  = []int{70, 80, 90}
	compiled = []int{90, 80}
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./ptxgen FOLDER-OF-NVRTC-11.8")
		os.Exit(2)
	}
	files, err := generate(os.Args[1], folder)
	for name, text := range files {
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), text, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ptxgen:", err)
		os.Exit(1)
	}
}

func generate(libraries, folder string) (map[string][]byte, error) {
	sources, err := read(folder)
	if err != nil {
		return nil, err
	}
	compiler, err := open(libraries)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{hashFile: []byte(hash(sources) + "\n")}
	for _, target := range targets {
		text, err := compiler.compile(sources, false, fmt.Sprintf("--gpu-architecture=compute_%d", target), "--std=c++14")
		if err == nil {
			files[fmt.Sprintf("mercer_%d.ptx.gz", target)], err = pack(text)
		}
		if err != nil {
			return nil, fmt.Errorf("compute_%d: %w", target, err)
		}
	}
	for _, target := range compiled {
		code, err := compiler.compile(sources, true, fmt.Sprintf("--gpu-architecture=sm_%d", target), "--std=c++14")
		if err == nil {
			files[fmt.Sprintf("mercer_%d.cubin.gz", target)], err = pack(code)
		}
		if err != nil {
			return nil, fmt.Errorf("sm_%d: %w", target, err)
		}
	}
	return files, nil
}

func pack(text []byte) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(text); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func read(folder string) (map[string]string, error) {
	sources := map[string]string{}
	for _, pattern := range []string{"*.cu", "*.cuh"} {
		paths, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			sources[filepath.Base(path)] = string(text)
		}
	}
	if sources[mainFile] == "" {
		return nil, fmt.Errorf("%s has no %s", folder, mainFile)
	}
	return sources, nil
}

func names(sources map[string]string) []string {
	var list []string
	for name := range sources {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// hash returns the hash of the names and the texts of all sources.
func hash(sources map[string]string) string {
	h := sha256.New()
	for _, name := range names(sources) {
		fmt.Fprintf(h, "%s %d\n%s", name, len(sources[name]), sources[name])
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// isHeader reports whether a source is included by others.
func isHeader(name string) bool { return strings.HasSuffix(name, ".cuh") }
