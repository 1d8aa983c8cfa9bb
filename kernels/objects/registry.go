package objects

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/mercer-go/mercer/kernels"
)

var (
	mu     sync.RWMutex
	list   []kernels.Description
	builds = map[string]func(map[string]float64) (Kernel, error){}
)

// Register adds a kernel to Parse and Catalogue. build returns the kernel with the given parameter
// values, or an error. Register panics if the name is already registered.
func Register(d kernels.Description, build func(values map[string]float64) (Kernel, error)) {
	mu.Lock()
	defer mu.Unlock()
	if builds[d.Name] != nil {
		panic(fmt.Sprintf("objects: Register: kernel %q is registered twice", d.Name))
	}
	builds[d.Name] = build
	list = append(list, d)
	slices.SortFunc(list, func(a, b kernels.Description) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
}

// Catalogue describes every kernel that Parse knows, by name.
func Catalogue() []kernels.Description {
	mu.RLock()
	defer mu.RUnlock()
	return slices.Clone(list)
}

// IsObjectKernel reports whether text begins with the name of a kernel that Parse accepts, or with a numeric weight.
func IsObjectKernel(text string) bool {
	_, offset := weight(text)
	name := strings.ToLower(strings.TrimLeftFunc(text[offset:], unicode.IsSpace))
	if end := strings.IndexFunc(name, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '_' }); end >= 0 {
		name = name[:end]
	}
	return slices.ContainsFunc(Catalogue(), func(d kernels.Description) bool {
		return d.Name == name || slices.Contains(d.Aliases, name)
	})
}

// Parse reads a kernel from its text, such as subsequence(length=3,decay=0.5), or a Sum of kernels, such as
// spectrum(length=2) + 0.5*spectrum(length=3). An error in the text is a *kernels.ParseError.
func Parse(text string) (Kernel, error) { return parseSum(text) }

func parseOne(text string) (Kernel, error) {
	d, values, err := kernels.ParseNamed(text, Catalogue())
	if err != nil {
		return nil, err
	}
	mu.RLock()
	build := builds[d.Name]
	mu.RUnlock()
	k, err := build(values)
	if err == nil {
		err = k.Check()
	}
	if err != nil {
		return nil, err
	}
	return k, nil
}
