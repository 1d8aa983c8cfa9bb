package bench

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/bench/peer"
	"github.com/mercer-go/mercer/internal/bench/pypeer"
	"github.com/mercer-go/mercer/internal/suggest"
)

// A Benchmark specifies a measurement. A zero field selects the default of the Kind. An option for
// which the Kind has no default gives an error.
type Benchmark struct {
	Kind       string
	Data       string   // data of the kind fit: "dense", the default, or "sparse"
	Texts      string   // for Data "sparse": file of a table with the columns text and target; target has two classes
	Images     string   // for the kind mnist: folder of the four files of MNIST
	Names      []string // the routines, operations, fits or solvers to measure
	Precisions []string // the elements may be "float64" and "float32"
	Sizes      []int    // values of n
	Widths     []int    // for the kind crossover: values of m; for scale: values of M at the largest n
	Features   int      // number of features, d
	Centers    int      // for the kind fit: M of nystrom, by default 10√n; for scale: M while n varies, by default the middle of Widths
	Threads    []int    // numbers of threads; only the kind blas accepts several
	Devices    []string // names for backend.Open
	Peers      []string // libraries to compare with
	Places     []string // folders or files to search first for shared libraries: see peer.Open
	Pythons    []string // Python interpreters to search for libraries; nil selects pypeer.Interpreters()
	Memory     int64    // maximum memory of the matrices in bytes; 0 selects 80 % of the memory that the process may use
	// Limit is the maximum expected time of a run; longer runs are skipped. The expected time is the
	// time of the implementation's last run, multiplied by the ratio of the numbers of operations.
	Limit  time.Duration
	Quick  bool // use the smaller defaults of the Kind
	Runner Runner
}

// A Kind is a kind of benchmark.
type Kind struct {
	Name       string
	Option     string    // name of the option that sets Benchmark.Names, such as "routine"
	Names      []string  // all possible elements of Benchmark.Names
	Defaults   Benchmark // default options; empty Names mean all names; Precisions and Peers also list all possible values
	Quick      Benchmark // the defaults that differ for Benchmark.Quick
	TakesMany  bool      // whether Threads may have several elements
	OneDevice  bool      // whether Devices must have exactly one name
	HasCenters bool
	devices    func() []string
	run        func(context.Context, Benchmark) (*Result, error)
}

// Kinds lists the kinds that can be measured.
func Kinds() []Kind {
	precisions := []string{"float64", "float32"}
	return []Kind{
		{
			Name: BLASKind, Option: "routine", Names: Routines(), TakesMany: true, run: runBLAS, devices: bestDevice,
			Defaults: Benchmark{
				Names: []string{"gemm", "syrk", "trsm", "potrf"}, Precisions: precisions, Peers: peer.Names(),
				Sizes: []int{256, 512, 1024, 2048, 4096}, Threads: slices.Compact([]int{1, runtime.GOMAXPROCS(0)}),
			},
			Quick: Benchmark{Sizes: []int{128, 256, 512, 1024}},
		},
		{
			Name: CrossoverKind, run: runCrossover, devices: bestDevice,
			Defaults: Benchmark{Sizes: []int{64, 128, 256, 512, 1024, 2048, 4096}, Widths: []int{64, 128, 256, 512, 1024, 2048, 4096}},
			Quick:    Benchmark{Sizes: []int{64, 128, 256, 512, 1024, 2048}, Widths: []int{64, 128, 256, 512, 1024, 2048}},
		},
		{
			Name: FitKind, Option: "fit", Names: []string{"ridge", "nystrom", "svr", "neighbors", "file", "linear", "lasso", "logistic"}, HasCenters: true, run: runFit, devices: bestDevices,
			Defaults: Benchmark{Precisions: precisions, Sizes: []int{1000, 2000, 4000, 8000}, Features: 50, Peers: slices.DeleteFunc(append([]string{"gonum"}, pypeer.Names()...), func(name string) bool { return name == "libsvm" })},
			Quick:    Benchmark{Sizes: []int{500, 1000, 2000}},
		},
		{
			Name: ScaleKind, Option: "solver", Names: scaledNames(), OneDevice: true, HasCenters: true, run: runScale, devices: bestDevice,
			Defaults: Benchmark{Sizes: []int{1000, 2000, 4000, 8000, 16000}, Widths: []int{100, 200, 400, 800, 1600}, Features: 50, Limit: time.Minute},
			Quick:    Benchmark{Sizes: []int{500, 1000, 2000, 4000}, Widths: []int{50, 100, 200, 400}, Limit: 3 * time.Second},
		},
		{
			Name: DevicesKind, Option: "operation", Names: []string{"gram", "mul", "factor", "fit", "solve"}, run: runDevices, devices: usableDevices,
			Defaults: Benchmark{Precisions: precisions, Sizes: []int{256, 512, 1024, 2048, 4096, 8192}, Features: 50, Peers: []string{"torch", "cupy"}, Limit: 20 * time.Second},
			Quick:    Benchmark{Sizes: []int{256, 512, 1024, 2048}, Limit: time.Second},
		},
		{
			Name: MNISTKind, Option: "fit", Names: []string{"ridge", "nystrom", "svc"}, HasCenters: true, run: runMNIST, devices: bestDevice,
			Defaults: Benchmark{Precisions: []string{"float64"}, Sizes: []int{10000, 60000}, Centers: 3000, Peers: []string{sklearn}},
			Quick:    Benchmark{Sizes: []int{1000, 2000}, Centers: 300},
		},
	}
}

// sparse returns the kind with the options of Data "sparse".
func (k Kind) sparse() *Kind {
	k.Names = sparseFits
	k.Defaults = Benchmark{Precisions: []string{"float64"}, Peers: sparsePeers}
	k.Quick, k.HasCenters = Benchmark{}, false
	return &k
}

// KindOf returns the kind with the given name, or nil if there is none.
func KindOf(name string) *Kind {
	return find(Kinds(), func(k *Kind) bool { return k.Name == name })
}

func bestDevice() []string { return []string{""} }

// bestDevices selects the best processor and every usable GPU.
func bestDevices() []string {
	return append([]string{"cpu"}, slices.DeleteFunc(usableDevices(), func(name string) bool { return !strings.HasPrefix(name, "cuda/") })...)
}

func usableDevices() (names []string) {
	for _, d := range backend.Report() {
		if d.Err == nil && d.Device != "ref" {
			names = append(names, d.Device)
		}
	}
	return names
}

// An OptionError reports an option of a Benchmark that its Kind does not accept.
type OptionError struct {
	Kind, Option string // for example "blas" and "routine"
	Problem      string // for example `"gem" is not known, did you mean gemm?; the choices are: gemm, …`
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("bench: %s: %s: %s", e.Kind, e.Option, e.Problem)
}

// Run runs the benchmark. It returns an error if a device cannot be opened, if a case exceeds the memory, if a result
// of Mercer or of a BLAS library is wrong, or if ctx is done. If another library fails, Run omits it from the case.
func (b Benchmark) Run(ctx context.Context) (*Result, error) {
	if err := b.Fill(); err != nil {
		return nil, err
	}
	return KindOf(b.Kind).run(ctx, b)
}

// Fill sets zero options to their defaults, and returns an *OptionError for an invalid option. It
// sorts names in the order of the Kind, and numbers in ascending order, and removes duplicates.
func (b *Benchmark) Fill() error {
	k := KindOf(b.Kind)
	if k == nil {
		return fmt.Errorf("bench: no benchmark is called %q", b.Kind)
	}
	refuse := func(option, format string, a ...any) error {
		return &OptionError{Kind: b.Kind, Option: option, Problem: fmt.Sprintf(format, a...)}
	}
	const untaken = "is not an option of this benchmark"
	switch sparse := b.Data == sparseData; {
	case b.Data != "" && b.Kind != FitKind:
		return refuse("data", untaken)
	case !sparse && b.Data != "" && b.Data != "dense":
		return refuse("data", "must be dense or sparse, got %q", b.Data)
	case sparse && b.Texts == "":
		return refuse("texts", "is needed with sparse data: a table with the columns text and target")
	case !sparse && b.Texts != "":
		return refuse("texts", "is used only with sparse data")
	case b.Kind == MNISTKind && b.Images == "":
		return refuse("images", "is needed: the folder of MNIST's files train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, t10k-…")
	case b.Kind != MNISTKind && b.Images != "":
		return refuse("images", untaken)
	case sparse:
		k = k.sparse()
	}
	d, quick := k.Defaults, k.Quick
	if !b.Quick {
		quick = Benchmark{}
	}
	for _, o := range []struct {
		name              string
		value             *[]string
		choices, defaults []string
	}{
		{k.Option, &b.Names, k.Names, orElse(d.Names, k.Names)},
		{"precision", &b.Precisions, d.Precisions, d.Precisions},
		{"peers", &b.Peers, d.Peers, d.Peers},
	} {
		for _, name := range *o.value {
			if len(o.choices) == 0 {
				return refuse(o.name, untaken)
			}
			if !slices.Contains(o.choices, name) {
				hint := ""
				if nearest := suggest.Nearest(name, o.choices); nearest != "" {
					hint = ", did you mean " + nearest + "?"
				}
				return refuse(o.name, "%q is not known%s; the choices are: %s", name, hint, strings.Join(o.choices, ", "))
			}
		}
		*o.value = selected(o.choices, orElse(*o.value, o.defaults))
	}
	for _, o := range []struct {
		name            string
		value           *[]int
		defaults, quick []int
	}{
		{"n", &b.Sizes, d.Sizes, quick.Sizes},
		{"m", &b.Widths, d.Widths, quick.Widths},
		{"threads", &b.Threads, orElse(d.Threads, []int{runtime.GOMAXPROCS(0)}), nil},
	} {
		if len(o.defaults) == 0 && len(*o.value) > 0 {
			return refuse(o.name, untaken)
		}
		*o.value = slices.Compact(slices.Sorted(slices.Values(orElse(*o.value, orElse(o.quick, o.defaults)))))
		if n := *o.value; len(n) > 0 && n[0] < 1 {
			return refuse(o.name, "must be ≥ 1, got %d", n[0])
		}
	}
	b.Devices = orElse(b.Devices, k.devices())
	switch {
	case len(b.Threads) > 1 && !k.TakesMany:
		return refuse("threads", "this benchmark takes one number, got %d", len(b.Threads))
	case len(b.Devices) > 1 && k.OneDevice:
		return refuse("device", "this benchmark takes one device, got %d", len(b.Devices))
	case b.Features < 0:
		return refuse("d", "must be ≥ 1, got %d", b.Features)
	case b.Centers < 0:
		return refuse("centers", "must be ≥ 0, got %d", b.Centers)
	case b.Limit < 0:
		return refuse("limit", "must be ≥ 0, got %v", b.Limit)
	case b.Features > 0 && d.Features == 0:
		return refuse("d", untaken)
	case b.Centers > 0 && !k.HasCenters:
		return refuse("centers", untaken)
	case b.Limit > 0 && d.Limit == 0:
		return refuse("limit", untaken)
	}
	b.Features = cmp.Or(b.Features, d.Features)
	b.Limit = cmp.Or(b.Limit, quick.Limit, d.Limit)
	b.Centers = cmp.Or(b.Centers, quick.Centers, d.Centers)
	return nil
}

func selected(choices, names []string) []string {
	return slices.DeleteFunc(slices.Clone(choices), func(name string) bool { return !slices.Contains(names, name) })
}

func orElse[T any](list, defaults []T) []T {
	if list == nil {
		return defaults
	}
	return list
}

// tasks returns a Task for each case {option, precision, threads, n} of b. start creates the entries of one case.
func (b *Benchmark) tasks(start func(ctx context.Context, name, precision string, threads, n int) ([]Entry, error)) []Task {
	var list []Task
	option := KindOf(b.Kind).Option
	for _, name := range b.Names {
		for _, precision := range b.Precisions {
			if precision == "float32" && slices.Contains(onlyFloat64, name) {
				continue
			}
			for _, threads := range b.Threads {
				for _, n := range b.Sizes {
					list = append(list, Task{
						Case:   Case{{option, name}, {"precision", precision}, {"threads", strconv.Itoa(threads)}, {"n", strconv.Itoa(n)}},
						Weight: math.Pow(float64(n), 2.5),
						Start:  func(ctx context.Context) ([]Entry, error) { return start(ctx, name, precision, threads, n) },
					})
				}
			}
		}
	}
	return list
}

var onlyFloat64 = []string{"solve", "nystrom", "svr", "neighbors", "file", "linear", "lasso", "logistic"}
