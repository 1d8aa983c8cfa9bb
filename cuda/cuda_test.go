package cuda

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/cuda/cudatest"
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/internal/required"
)

// simulated is the folder of the simulated libraries, or "" if they could not be built.
var simulated string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

// run runs the tests, with the simulated libraries unless MERCER_REQUIRE requires a GPU, and fails if device
// objects remain at the end.
func run(m *testing.M) int {
	if os.Getenv("MERCER_CUDA_LIBDIR") != "" || required.Names("cuda") {
		return m.Run()
	}
	folder, err := os.MkdirTemp("", "mercer-cuda-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	if err := cudatest.Build(folder, cudatest.WithSolver); errors.Is(err, cudatest.ErrNoCompiler) {
		fmt.Println(err)
	} else if err != nil {
		fmt.Println(err)
		return 1
	} else {
		simulated = folder
		os.Setenv(driver.EnvLibraries, folder)
	}
	return m.Run()
}

// Need skips the test if there are neither simulated libraries nor a GPU.
func Need(t testing.TB) {
	t.Helper()
	if simulated != "" || os.Getenv("MERCER_CUDA_LIBDIR") != "" || required.Names("cuda") {
		return
	}
	required.SkipOrFail(t, "g++", cudatest.ErrNoCompiler)
}

// isSimulated reports whether a device is simulated by package cudatest.
func isSimulated(dev backend.Device) bool { return dev.Info().Processor == "Simulated GPU" }

// openAt opens the device with only the libraries of the given level.
func openAt(level cudatest.Level, c backend.Config) (backend.Device, error) {
	dev, err := backend.Open("cuda/0", c)
	if err != nil {
		return nil, err
	}
	d := dev.(*device)
	d.exec.do(func() {
		if s := d.libraries.Solver; s != nil && level < cudatest.WithSolver {
			err = errors.Join(err, s.Close())
			d.libraries.Solver, d.libraries.SolverErr = nil, errors.New("left out")
		}
		if b := d.libraries.Blas; b != nil && level < cudatest.WithBlas {
			err = errors.Join(err, b.Close())
			d.libraries.Blas, d.libraries.BlasErr = nil, errors.New("left out")
		}
	})
	return dev, err
}

// The conformance suite tests matrices with 16 bits per element only if the backend implements FixedBackend.
var (
	_ backend.FixedBackend[float32] = (*queue[float32])(nil)
	_ backend.FixedBackend[float64] = (*queue[float64])(nil)
)

// concerned lists, for each level, the conformance tests whose results depend on cuBLAS or cuSOLVER. The levels
// with cuBLAS omit GemmExact, because it tests tiles of the device function.
var concerned = map[cudatest.Level]*regexp.Regexp{
	cudatest.DriverOnly: regexp.MustCompile(""),
	cudatest.WithBlas:   regexp.MustCompile("GemmRounding|NaNGemm|Syrk|Symm(Exact|Rounding)?$|Trsm|Potrf|Packed(Exact|Rounding|Failure|Leading|Large)|Products|Solves|Progress|Cancel|Concurrent"),
	cudatest.WithSolver: regexp.MustCompile("Potrf|Packed(Exact|Failure|Leading|Large)|Progress|Cancel"),
}

func TestConformance(t *testing.T) {
	Need(t)
	for level, name := range []string{"driver", "blas", "solver"} {
		if testing.Short() && level == int(cudatest.WithBlas) {
			continue // the other two levels call every function that this level calls
		}
		t.Run(name, func(t *testing.T) {
			if level > int(cudatest.DriverOnly) {
				SmallCuts(t)
			} else {
				previous := cuts.minThin
				cuts.minThin = 1 // then every product with a small number of columns is divided into two launches
				defer func() { cuts.minThin = previous }()
			}
			leave := func(test string) bool {
				return strings.HasSuffix(test, "Threads") || test == "GemmExact" && testing.Short() || !concerned[cudatest.Level(level)].MatchString(test)
			}
			backendtest.Suite{LargeN: 200, Fewer: level > int(cudatest.DriverOnly) || testing.Short(), RequirePacked: true, Leave: leave, Open: func(t testing.TB, c backend.Config) backend.Device {
				dev, err := openAt(cudatest.Level(level), c)
				return backendtest.Closed(t, dev, err)
			}}.Run(t)
		})
	}
}
