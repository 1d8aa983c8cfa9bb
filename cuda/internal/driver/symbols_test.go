package driver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/internal/required"
)

// tables lists, for each library, the header and the functions that Mercer calls.
var tables = []struct {
	header, library string
	symbols         []Symbol
	last            int
}{
	{"cuda.h", "stubs/libcuda.so", driverTable, cuEventSynchronize},
	{"cublas_v2.h", "libcublas.so", blasTable, cublasDtrsm},
	{"cusolverDn.h", "libcusolver.so", solverTable, cusolverXpotrf},
}

// toolkitRoot returns the folder of a CUDA release that MERCER_CUDA_TOOLKIT names, or skips the test.
func toolkitRoot(t *testing.T) string {
	root := os.Getenv("MERCER_CUDA_TOOLKIT")
	if root == "" {
		required.SkipOrFail(t, "cudatoolkit", "MERCER_CUDA_TOOLKIT does not name a folder with the include and lib of CUDA")
	}
	return root
}

// TestTables checks that the constants are the indices of the symbols, and that no symbol is listed twice.
func TestTables(t *testing.T) {
	seen := map[string]bool{}
	for _, table := range tables {
		if len(table.symbols) != table.last+1 {
			t.Errorf("%s: %d symbols, %d constants", table.header, len(table.symbols), table.last+1)
		}
		for _, s := range table.symbols {
			if seen[s.Name] {
				t.Errorf("%s is listed twice", s.Name)
			}
			seen[s.Name] = true
			if !strings.Contains(s.C, "(*)") {
				t.Errorf("%s: %q is not a pointer to a function", s.Name, s.C)
			}
		}
	}
	for i, name := range map[int]string{
		cuInit: "cuInit", cuMemAlloc: "cuMemAlloc_v2", cuMemcpy2DAsync: "cuMemcpy2DAsync_v2", cuLaunchKernel: "cuLaunchKernel",
		cuStreamCreate: "cuStreamCreate", cuStreamSynchronize: "cuStreamSynchronize", cuEventSynchronize: "cuEventSynchronize",
	} {
		if driverTable[i].Name != name {
			t.Errorf("symbol %d is %s, want %s", i, driverTable[i].Name, name)
		}
	}
	if blasTable[cublasDtrsm].Name != "cublasDtrsm_v2" || solverTable[cusolverXpotrf].Name != "cusolverDnXpotrf" {
		t.Error("a table has shifted")
	}
}

// TestPrototypes compiles the prototypes against NVIDIA's headers.
func TestPrototypes(t *testing.T) {
	root := toolkitRoot(t)
	cc := required.Program(t, "gcc", "gcc")
	var c strings.Builder
	for _, table := range tables {
		fmt.Fprintf(&c, "#include <%s>\n", table.header)
	}
	for _, table := range tables {
		for _, s := range table.symbols {
			fmt.Fprintf(&c, "_Static_assert(__builtin_types_compatible_p(__typeof__(&%s), %s), \"%s\");\n", s.Name, s.C, s.Name)
		}
	}
	c.WriteString("_Static_assert(sizeof(CUDA_MEMCPY2D) == 128, \"CUDA_MEMCPY2D\");\n")
	for field, offset := range map[string]int{
		"srcMemoryType": 16, "srcHost": 24, "srcDevice": 32, "srcPitch": 48,
		"dstMemoryType": 72, "dstHost": 80, "dstDevice": 88, "dstPitch": 104, "WidthInBytes": 112, "Height": 120,
	} {
		fmt.Fprintf(&c, "_Static_assert(__builtin_offsetof(CUDA_MEMCPY2D, %s) == %d, \"%s\");\n", field, offset, field)
	}
	file := filepath.Join(t.TempDir(), "prototypes.c")
	if err := os.WriteFile(file, []byte(c.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, "-fsyntax-only", "-I"+filepath.Join(root, "include"), file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// libraryOf returns the file of a library in the toolkit, with or without a version in its name.
func libraryOf(root, name string) string {
	for _, folder := range []string{"lib", "lib64"} {
		path := filepath.Join(root, folder, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
		if list, _ := filepath.Glob(path + ".[0-9]*"); len(list) > 0 {
			return list[0]
		}
	}
	return ""
}

// TestLibrariesHaveSymbols opens NVIDIA's own libraries, for which no GPU is needed, and looks up every symbol.
func TestLibrariesHaveSymbols(t *testing.T) {
	root := toolkitRoot(t)
	for _, dependency := range []string{"libcublasLt.so", "libcublas.so", "libnvJitLink.so", "libcusparse.so"} {
		if path := libraryOf(root, dependency); path != "" {
			if _, err := openLibrary(path); err != nil {
				t.Log(err)
			}
		}
	}
	for _, table := range tables {
		path := libraryOf(root, table.library)
		if path == "" {
			t.Logf("%s does not exist", table.library)
			continue
		}
		handle, err := openLibrary(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if _, err := system.bind(handle, path, table.symbols); err != nil {
			t.Error(err)
		}
	}
}
