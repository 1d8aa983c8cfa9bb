package cuda

import (
	"flag"
	"regexp"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/cuda/cudatest"
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/cuda/internal/ptx"
)

// interpret replaces launches in the test by interpretation of the PTX for the given compute capability. A fault,
// such as a race, makes the test fail.
func interpret(t *testing.T, target int) *cudatest.Interpreter {
	Need(t)
	original, err := library()
	if err != nil {
		t.Fatal(err)
	}
	text, err := ptx.For(target/10, target%10)
	if err != nil {
		t.Fatal(err)
	}
	const seed = 1
	t.Logf("seed %d", seed)
	m, err := cudatest.NewInterpreter(text, seed)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	names := map[uintptr]string{}
	stringAt := func(p uintptr) string { // stringAt reads a C string
		var b []byte
		for ; *pointerTo[byte](p) != 0; p++ {
			b = append(b, *pointerTo[byte](p))
		}
		return string(b)
	}
	api := *original
	api.Call = func(s *driver.Symbol, args ...uintptr) int32 {
		mu.Lock()
		defer mu.Unlock()
		if s.Name == "cuLaunchKernel" {
			// Earlier work of the stream may not have run yet, because the stream may be delayed.
			if err := original.Wait(driver.Stream(args[8])); err != nil {
				t.Error(err)
			}
			extra := pointerTo[[4]uintptr](args[10])
			packed := unsafe.Slice(pointerTo[byte](extra[1]), *pointerTo[uintptr](extra[3]))
			grid, threads := [3]int{int(args[1]), int(args[2]), int(args[3])}, [3]int{int(args[4]), int(args[5]), int(args[6])}
			if err := m.Launch(names[args[0]], grid, threads, packed); err != nil {
				t.Error(err)
				return 719 // CUDA_ERROR_LAUNCH_FAILED
			}
			return 0
		}
		r := original.Call(s, args...)
		if r != 0 {
			return r
		}
		switch s.Name {
		case "cuModuleGetFunction":
			names[*pointerTo[uintptr](args[0])] = stringAt(args[2])
		case "cuMemAlloc_v2":
			m.Allocate(*pointerTo[uint64](args[0]), uint64(args[1]))
		case "cuMemFree_v2":
			m.Free(uint64(args[0]))
		}
		return 0
	}
	previous := library
	library = func() (*driver.API, error) { return &api, nil }
	t.Cleanup(func() { library = previous })
	return m
}

// pointerTo returns a pointer to the memory at an address.
func pointerTo[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

var interpretAll = flag.Bool("interpret-all", false, "TestInterpretedPTX runs the whole suite of the backend")

// TestInterpretedPTX runs the PTX of the package in an interpreter, with blocks and threads in random order and the
// largest errors that NVIDIA's manual allows. The results must agree with packages ref and kernels within the
// bounds of the suite. No function may have a race or access memory that is not its own.
//
// Without -interpret-all it runs a few tests, which together call every function.
func TestInterpretedPTX(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: interpreting takes a minute; package cudatest tests the interpreter")
	}
	t.Run("70", func(t *testing.T) {
		interpret(t, 70)
		TestSymmetricKernelProduct(t)
	})
	m := interpret(t, 90)
	t.Run("suite", func(t *testing.T) {
		executable := regexp.MustCompile("^(AddDiag|ColAxpy|ColDot|Convert|FixedGram|FixedSymm|GramKernels|GramMul|PotrfExact|TrsmExact)$")
		leave := func(test string) bool { return !executable.MatchString(test) }
		if *interpretAll { // these tests change the number of workers; a GPU has no workers
			leave = func(test string) bool { return strings.HasSuffix(test, "Threads") }
		}
		backendtest.Suite{LargeN: 70, Fewer: true, RequirePacked: true, Leave: leave, Open: func(t testing.TB, c backend.Config) backend.Device {
			dev, err := openAt(cudatest.DriverOnly, c)
			return backendtest.Closed(t, dev, err)
		}}.Run(t)
	})
	if *interpretAll {
		t.Run("solver", func(t *testing.T) {
			SmallCuts(t)
			leave := func(test string) bool { return !concerned[cudatest.WithBlas].MatchString(test) }
			backendtest.Suite{LargeN: 70, Fewer: true, RequirePacked: true, Leave: leave, Open: func(t testing.TB, c backend.Config) backend.Device {
				dev, err := openAt(cudatest.WithSolver, c)
				return backendtest.Closed(t, dev, err)
			}}.Run(t)
		})
	}
	t.Run("thin", TestThin)
	t.Run("few features", TestFewFeatures)
	t.Run("symmetric", TestSymmetricKernelProduct)
	t.Run("forms", TestFormsOfKernelProduct)
	var never []string
	for _, name := range m.Entries() {
		if m.Ran[name] == 0 {
			never = append(never, name)
		}
	}
	if len(never) > 0 {
		t.Errorf("these functions did not run: %v", never)
	}
}
