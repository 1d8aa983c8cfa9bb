package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/tuning"
	"github.com/mercer-go/mercer/learners/validate"
)

// planSlack is the allowed difference between planned and peak memory, in addition to 10 % of the plan. It covers
// pages of the program, garbage, and memory that does not grow with the data.
const planSlack = 32 << 20

// planRows is the number of rows of the large table, for learners that would take minutes with the default number.
var planRows = map[string]int{"rvc": 500, "rvm": 1000, "gaussian-process": 2000, "lasso": 1000}

// planParameters are arguments that shorten the fit of a learner, and hardly change its peak memory.
var planParameters = map[string][]string{"gaussian-process": {"--restarts", "0"}, "rvc": {"--kernel", "gaussian(sigma=3)"}, "voted-perceptron": {"--epochs", "1"}}

// writePlanTable writes n rows with d features, a numeric target and a class.
func writePlanTable(t *testing.T, path string, n, d int, target string) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(n), uint64(d))) // the size of the table is the seed
	var b bytes.Buffer
	for j := range d {
		fmt.Fprintf(&b, "x%d,", j)
	}
	b.WriteString(target + "\n")
	for range n {
		x := make([]float64, d)
		for j := range x {
			x[j] = r.NormFloat64()
			fmt.Fprintf(&b, "%.6g,", x[j])
		}
		switch v := x[0] + x[1]*x[1]/2 - 0.5 + 0.3*r.NormFloat64(); {
		case target == "number":
			fmt.Fprintf(&b, "%.6g\n", v)
		case v > 0:
			b.WriteString("high\n")
		default:
			b.WriteString("low\n")
		}
	}
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// planCases returns the flags of each case in which a learner is fitted: its defaults, and each value of each
// parameter that has a list of values.
func planCases(d learners.Description, task learners.Task) [][]string {
	cases := [][]string{nil}
	if d.Name == "nystrom-ridge" && task == learners.Regression { // this case searches for one sigma per feature by derivatives
		cases = append(cases, []string{"--optimize", "--ard", "--centers", "100"})
	}
	for _, p := range d.Parameters {
		if p.Type != learners.ChoiceType {
			continue
		}
		for _, choice := range p.Choices {
			if choice == "kalman" || choice == "modes" { // these solvers need at most three features: see TestPlanOfFewFeatures
				continue
			}
			args := []string{"--" + p.Name, choice}
			if slices.Contains([]string{"operator", "preconditioner"}, p.Name) { // these parameters are used only by the iterative solver
				args = append(args, "--solver", "cg")
				if choice != "none" {
					args = append(args, "--rank", "200")
				}
			}
			cases = append(cases, args)
		}
	}
	return cases
}

// TestPlanIsThePeakOfTheProcess compares the memory that mercer fit plans with the peak memory of the process
// (VmHWM of proc_pid_status(5)), for every learner with each of its solvers and choices, at two sizes of the table.
func TestPlanIsThePeakOfTheProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		required.SkipOrFail(t, "proc", "the peak of a process is read from /proc")
	}
	required.Slow(t, "proc", "starts a process for each learner and solver")
	folder := t.TempDir()
	for _, large := range []bool{false, true} {
		for _, d := range learners.Catalogue() {
			for _, task := range d.Tasks {
				n, features := 300, 5
				if large {
					n, features = 3000, 10
					if rows, ok := planRows[d.Name]; ok {
						n = rows
					}
				}
				target := "number"
				if task == learners.Classification {
					target = "class"
				}
				for _, args := range planCases(d, task) {
					name := fmt.Sprintf("%s/%s/n=%d%s", d.Name, task, n, strings.Join(args, " "))
					t.Run(name, func(t *testing.T) {
						table := filepath.Join(folder, fmt.Sprintf("%s%d.csv", target, n))
						if _, err := os.Stat(table); err != nil {
							writePlanTable(t, table, n, features, target)
						}
						fit := []string{"--learner", d.Name, "--task", string(task)}
						if task != learners.Novelty {
							fit = append(fit, "--target", target)
						}
						fit = append(append(append(fit, needs[d.Name]...), planParameters[d.Name]...), args...)
						checkPlan(t, d, append(append([]string{"fit", "--model", filepath.Join(folder, "m.safetensors")}, fit...), table))
					})
				}
			}
		}
	}
}

// TestPlanOfFewFeatures checks the plans of the solvers that support only one to three features.
func TestPlanOfFewFeatures(t *testing.T) {
	if runtime.GOOS != "linux" {
		required.SkipOrFail(t, "proc", "the peak of a process is read from /proc")
	}
	d, err := learners.Find("kernel-ridge")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{300, 1_000_000} {
		if n > 300 {
			required.Slow(t, "proc", "reads two million cells")
		}
		table := filepath.Join(t.TempDir(), "number.csv")
		writePlanTable(t, table, n, 2, "number")
		for _, args := range [][]string{{"--solver", "kalman", "--drop", "x1", "--lambda", "0.1"}, {"--solver", "modes", "--tol", "1e-5", "--lambda", "10"}} {
			checkPlan(t, d, append([]string{"fit", "--model", filepath.Join(t.TempDir(), "m.safetensors"), "--learner", d.Name,
				"--kernel", "matern32(sigma=1)", "--target", "number", table}, args...))
		}
	}
}

// TestPlanOfWideTable checks the plans of all learners, of svc with probabilities, and of tune, for a table with
// ten times more features than rows.
func TestPlanOfWideTable(t *testing.T) {
	if runtime.GOOS != "linux" {
		required.SkipOrFail(t, "proc", "the peak of a process is read from /proc")
	}
	required.Slow(t, "proc", "reads 0.9 million cells for each learner")
	folder := t.TempDir()
	model := filepath.Join(folder, "m.safetensors")
	tables := map[string]string{}
	for _, target := range []string{"number", "class"} {
		tables[target] = filepath.Join(folder, target+".csv")
		writePlanTable(t, tables[target], 300, 3000, target)
	}
	check := func(d learners.Description, task learners.Task, args ...string) {
		t.Run(fmt.Sprintf("%s/%s/%s", d.Name, task, strings.Join(args, " ")), func(t *testing.T) {
			target := "number"
			if task == learners.Classification {
				target = "class"
			}
			args := append(args, "--model", model)
			if task != learners.Novelty {
				args = append(args, "--target", target)
			}
			args = append(args, tables[target])
			// The plans of these learners may exceed the peak. They count all columns that may become active, or
			// the Hessian matrix of a method that is rarely used.
			if slices.Contains([]string{"l0", "lasso", "logistic"}, d.Name) {
				planOf(t, args)
				return
			}
			checkPlan(t, d, args)
		})
	}
	for _, d := range learners.Catalogue() {
		for _, task := range d.Tasks {
			fit := append([]string{"fit", "--learner", d.Name, "--task", string(task)}, needs[d.Name]...)
			check(d, task, append(fit, planParameters[d.Name]...)...)
			if d.Name == "svc" {
				check(d, task, append(fit, "--probability")...)
				check(d, task, "tune", "--learner", d.Name, "--grid", "C=1,10", "--steps", "2")
			}
		}
	}
	for _, criterion := range tuning.Criteria {
		search := []string{"tune", "--by", criterion, "--rows", "0"}
		if criterion != string(tuning.Evidence) { // the maximization of the evidence uses derivatives, and has no steps
			search = append(search, "--steps", "2", "--lambdas", "0.1,1")
		}
		check(learners.Description{}, learners.Regression, search...)
	}
}

// TestPlanOfWideMatrix checks plans for a matrix with a hundred times more features than rows, whose kernel values
// take less memory than its copies. Each fitted model is then used by predict and evaluate.
func TestPlanOfWideMatrix(t *testing.T) {
	if runtime.GOOS != "linux" {
		required.SkipOrFail(t, "proc", "the peak of a process is read from /proc")
	}
	required.Slow(t, "proc", "fits 200 × 20,000 samples")
	const n, d = 200, 20000
	r := rand.New(rand.NewPCG(n, d)) // the size of the matrix is the seed
	x := make([]float64, n*d)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	for i := range n { // the first feature, x1, is the target
		x[i*d] = float64(i % 2)
	}
	folder := t.TempDir()
	table, model := filepath.Join(folder, "x.npy"), filepath.Join(folder, "m.safetensors")
	var b bytes.Buffer
	if err := dataset.WriteNPY(&b, x, n, d); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(table, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	cases := [][]string{
		{"fit", "--learner", "svc", "--probability"},
		{"tune", "--learner", "svc", "--kernel", "gaussian(sigma=200)", "--vary", "", "--grid", "C=1,10", "--folds", "3"},
		{"tune", "--steps", "2", "--lambdas", "0.1,1"},
	}
	for _, d := range learners.Catalogue() {
		cases = append(cases, append([]string{"fit", "--learner", d.Name}, wideParameters(d)...))
	}
	for _, args := range cases {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			// The number of threads is fixed, because the plan counts a workspace for each thread.
			args := append(args, "--threads", "2", "--model", model, table)
			if !slices.Contains(args, "one-class-svm") {
				args = append(args, "--target", "x1")
			}
			planned, peak := planOf(t, args)
			// The plan of svc counts copies of X for the shrinking heuristic, which a fit to so few rows does not use.
			if float64(planned) > 1.4*float64(peak) {
				t.Errorf("the process took only %d bytes, but %d were planned", peak, planned)
			}
			if args[0] == "fit" {
				checkPlansOfModel(t, args[2], model, table)
			}
		})
	}
}

// checkPlansOfModel checks the plans of evaluate and of predict, with each of the flags --std, --samples, --bound and
// --interval that the model supports.
func checkPlansOfModel(t *testing.T, learner, model, table string) {
	t.Helper()
	commands := [][]string{{"predict"}}
	if learner != "one-class-svm" { // a novelty model has no targets with which evaluate could compare
		commands = append(commands, []string{"evaluate"})
	}
	if learner == "ridge" { // one learner suffices: all of them read the blocks in the same way
		commands = append(commands, []string{"predict", "--stream"})
	}
	b, err := modelfile.Load(model)
	if err != nil {
		t.Fatal(err)
	}
	b.Model = validate.Scorable(b.Model)
	for flag, err := range map[string]error{
		"--std": predictFlags{std: true}.defined(b), "--bound": predictFlags{bound: true}.defined(b), "--interval=0.9": checkInterval(0.9, b), "--samples=1": predictFlags{samples: 1}.defined(b),
	} {
		if err == nil {
			commands = append(commands, []string{"predict", flag})
		}
	}
	for _, command := range commands {
		t.Log(command)
		checkPlan(t, learners.Description{}, append(command, "--threads", "2", "--model", model, table))
	}
}

// wideParameters are flags for a learner and a table with many times more features than rows. They avoid a search,
// and choose a case in which the fit needs all of the planned memory: with theta = 1e6 the bound of
// ridge-constrained is inactive.
func wideParameters(d learners.Description) []string {
	switch d.Name {
	case "gaussian-process":
		return []string{"--optimize=false"}
	case "l0":
		return []string{"--support", "2"}
	case "ridge-constrained":
		return []string{"--theta", "1e6"}
	case "rvc", "rvm", "kernel-logistic": // a given sigma, because its default, the median distance of dense rows, takes seconds
		return append(slices.Clone(needs[d.Name]), "--kernel", "gaussian(sigma=200)")
	}
	return append(slices.Clone(needs[d.Name]), planParameters[d.Name]...)
}

// TestPlanOfResamplingIsThePeak checks the plans of cv and bootstrap. A plan counts the whole table, and the rows and
// the fit of the largest model. A plan that exceeds --memory must give an error.
func TestPlanOfResamplingIsThePeak(t *testing.T) {
	if runtime.GOOS != "linux" {
		required.SkipOrFail(t, "proc", "the peak of a process is read from /proc")
	}
	required.Slow(t, "proc", "fits ten models of up to 3000 rows")
	table := filepath.Join(t.TempDir(), "number.csv")
	writePlanTable(t, table, 3000, 10, "number")
	d, err := learners.Find("kernel-ridge")
	if err != nil {
		t.Fatal(err)
	}
	fitted := checkPlan(t, d, []string{"fit", "--model", filepath.Join(t.TempDir(), "m.safetensors"), "--learner", d.Name, "--solver", "dual", "--target", "number", table})
	for _, command := range [][]string{{"cv", "--folds", "3"}, {"bootstrap", "--rounds", "6"}} {
		args := append(command, "--learner", d.Name, "--solver", "dual", "--target", "number", table)
		t.Run(command[0], func(t *testing.T) {
			// The matrix of the preceding model, 36 MB if it contains all rows, is freed before a fit.
			if planned := checkPlan(t, d, args); planned > fitted+planSlack/2 {
				t.Errorf("%d bytes are planned, %d for one fit", planned, fitted)
			}
			// The kernel values of a model of 2000 rows take 32 MB, or 16 MB in packed storage.
			out, err := output(t, append(args, "--memory", "12MB"))
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 || len(out) > 0 {
				t.Errorf("with 12 MB: %v, %s", err, out)
			}
		})
	}
}

// TestPlansOfTunePredictAndEvaluateAreThePeak checks the planned memory of tune with each criterion, and of predict
// and evaluate with a model of each learner on more rows than the model was fitted to, at two sizes.
func TestPlansOfTunePredictAndEvaluateAreThePeak(t *testing.T) {
	if runtime.GOOS != "linux" {
		required.SkipOrFail(t, "proc", "the peak of a process is read from /proc")
	}
	required.Slow(t, "proc", "starts a process for each criterion and learner, at two sizes")
	folder := t.TempDir()
	model := filepath.Join(folder, "m.safetensors")
	tables := map[string]string{}
	table := func(target string, n int) string {
		name := fmt.Sprintf("%s%d.csv", target, n)
		if tables[name] == "" {
			tables[name] = filepath.Join(folder, name)
			writePlanTable(t, tables[name], n, 10, target)
		}
		return tables[name]
	}
	run := func(t *testing.T, args ...string) {
		t.Helper()
		checkPlan(t, learners.Description{}, args)
	}
	for n, rows := range map[int]int{300: 2000, 2000: 200000} {
		for _, criterion := range tuning.Criteria {
			t.Run(fmt.Sprintf("tune/%s/n=%d", criterion, n), func(t *testing.T) {
				args := []string{"tune", "--target", "number", "--by", criterion, "--rows", "0", "--model", model}
				if criterion != string(tuning.Evidence) { // the maximization of the evidence uses derivatives, and has no steps
					args = append(args, "--steps", "4", "--lambdas", "0.01,0.1,1")
				}
				run(t, append(args, table("number", n))...)
			})
		}
		for _, d := range learners.Catalogue() {
			for _, task := range d.Tasks {
				t.Run(fmt.Sprintf("%s/%s/rows=%d", d.Name, task, rows), func(t *testing.T) {
					target := "number"
					if task == learners.Classification {
						target = "class"
					}
					fit := []string{"fit", "--model", model, "--learner", d.Name, "--task", string(task)}
					if task != learners.Novelty {
						fit = append(fit, "--target", target)
					}
					fit = append(append(append(fit, needs[d.Name]...), planParameters[d.Name]...), table(target, 300))
					if _, err := output(t, fit); err != nil {
						t.Fatal(err)
					}
					run(t, "predict", "--model", model, table(target, rows))
					run(t, "predict", "--stream", "--model", model, table(target, rows))
					if task != learners.Novelty {
						run(t, "evaluate", "--model", model, table(target, rows))
					}
				})
			}
		}
	}
	// If the table and its matrix exceed --memory, the command fails before it allocates the matrix.
	if _, err := output(t, []string{"fit", "--model", model, "--learner", "ridge", "--target", "number", table("number", 300)}); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"predict", "evaluate"} {
		_, err := output(t, []string{command, "--model", model, "--memory", "200KB", table("number", 2000)})
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 || bytes.Count(exit.Stderr, []byte("\n")) != 1 {
			t.Errorf("%s with 200 kB: %v", command, err)
		} else {
			t.Logf("%s with 200 kB: %s", command, exit.Stderr)
		}
	}
}

// TestPlanOfTexts checks the plan of a fit to texts. It must count the copy of the kernel values in the model.
func TestPlanOfTexts(t *testing.T) {
	if runtime.GOOS != "linux" {
		required.SkipOrFail(t, "proc", "the peak of a process is read from /proc")
	}
	required.Slow(t, "proc", "has 25 million kernel values")
	const n = 5000
	folder := t.TempDir()
	table := filepath.Join(folder, "t.csv")
	var b strings.Builder
	b.WriteString("word,y\n")
	for i := range n {
		fmt.Fprintf(&b, "w%b,%d\n", i+n, i%7)
	}
	if err := os.WriteFile(table, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	checkPlan(t, learners.Description{}, []string{"fit", "--text", "word", "--kernel", "spectrum(length=3)", "--target", "y", "--model", filepath.Join(folder, "m.safetensors"), table})
}

// TestPlanOfCompressedTable checks that the plan for a compressed file counts the size of the uncompressed table.
func TestPlanOfCompressedTable(t *testing.T) {
	if runtime.GOOS != "linux" {
		required.SkipOrFail(t, "proc", "the peak of a process is read from /proc")
	}
	required.Slow(t, "proc", "reads four million rows")
	folder := t.TempDir()
	table, model := filepath.Join(folder, "t.csv.gz"), filepath.Join(folder, "m.safetensors")
	trainTable := filepath.Join(folder, "number.csv")
	writePlanTable(t, trainTable, 300, 2, "number")
	if _, err := output(t, []string{"fit", "--learner", "ridge", "--target", "number", "--model", model, trainTable}); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	fmt.Fprint(z, "x0,x1,number\n", strings.Repeat("1,2,3\n3,5,7\n", 2_000_000))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(table, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"evaluate", "--model", model, table},
		{"evaluate", "--stream", "--model", model, table},
	} {
		checkPlan(t, learners.Description{}, args)
	}
}

// TestTunePlansItsLastFit checks that the plan of tune counts the kernel values of all rows, for its final fit.
func TestTunePlansItsLastFit(t *testing.T) {
	const n = 1500
	folder := t.TempDir()
	table, model := filepath.Join(folder, "t.csv"), filepath.Join(folder, "m.safetensors")
	var b strings.Builder
	b.WriteString("word,y\n")
	for i := range n {
		fmt.Fprintf(&b, "w%b,%d\n", i+n, i%7)
	}
	if err := os.WriteFile(table, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	planned := func(args ...string) int64 {
		t.Helper()
		out, err := output(t, append(args, "--target", "y", "--text", "word", "--kernel", "spectrum(length=3)", "--model", model, table))
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			t.Fatalf("%v: %s", err, exit.Stderr)
		} else if err != nil {
			t.Fatal(err)
		}
		var report struct {
			Planned int64 `json:"planned_bytes"`
		}
		if err := json.Unmarshal(out, &report); err != nil {
			t.Fatal(err)
		}
		return report.Planned
	}
	fit, search := planned("fit", "--lambda", "1"), planned("tune", "--rows", "200")
	// The plans may differ by a tenth of the kernel values that only the fit needs: 8·(n² − 200²) bytes.
	if difference := fit - search; float64(difference) > 0.1*8*(n*n-200*200) {
		t.Errorf("fit plans %d bytes, tune %d", fit, search)
	}
}

// output runs the command in a new process. If the command fails, the error contains its standard error output.
func output(t *testing.T, args []string) ([]byte, error) {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), executable, append(args, "--json", "--quiet")...)
	c.Env = append(os.Environ(), asCommand+"=1")
	return c.Output()
}

// checkPlan compares the planned memory of a command with its peak memory, and returns the planned memory.
func checkPlan(t *testing.T, d learners.Description, args []string) int64 {
	t.Helper()
	planned, peak := planOf(t, args)
	// The plan of a learner with a cache may exceed the peak, because it counts the maximum size of the cache.
	if _, cache := d.Parameter("cache"); !cache && planned > peak+planSlack+planned/10 {
		t.Errorf("the process took only %d bytes, but %d were planned", peak, planned)
	}
	return planned
}

// planOf runs mercer, returns the planned memory and the peak memory, and fails if the peak exceeds the plan.
func planOf(t *testing.T, args []string) (planned, peak int64) {
	t.Helper()
	out, err := output(t, args)
	exit := (*exec.ExitError)(nil)
	if errors.As(err, &exit) {
		t.Fatalf("%v: %s", err, exit.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Planned int64 `json:"planned_bytes"`
		Peak    int64 `json:"peak_bytes"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	t.Logf("planned %.1f MiB, peak %.1f MiB", float64(report.Planned)/(1<<20), float64(report.Peak)/(1<<20))
	if report.Planned == 0 || report.Peak == 0 {
		t.Fatalf("the report has no plan or no peak: %s", out)
	}
	if report.Peak > report.Planned+planSlack+report.Planned/10 {
		t.Errorf("the process took %d bytes, planned were %d", report.Peak, report.Planned)
	}
	return report.Planned, report.Peak
}

// writeSparsePlanTable writes n rows with classes and sparse features. As in texts, some columns are nonzero in
// many rows and most columns in one or two rows.
func writeSparsePlanTable(t *testing.T, path string, n, features int) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(n), uint64(features))) // the size of the table is the seed
	last := uint64(features - 1)
	words := rand.NewZipf(r, 1.1, 10, last)
	var b bytes.Buffer
	for i := range n {
		row := map[uint64]bool{uint64(i%2) + 1: true, last: i == 0}
		for range 80 {
			row[words.Uint64()] = true
		}
		b.WriteString([]string{"-1", "1"}[i%2])
		for _, c := range slices.Sorted(maps.Keys(row)) {
			if row[c] {
				fmt.Fprintf(&b, " %d:%.4g", c+1, 0.05+0.1*r.Float64())
			}
		}
		b.WriteString("\n")
	}
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestPlanOfSparseTable checks the plans of each learner for sparse samples, and of predict and evaluate with its
// model. A learner that needs dense samples makes a dense copy of 320 MB. The plans of the other learners must not
// include a dense copy, 360 MB. With a linear kernel, a plan must not include a cache of rows of K.
func TestPlanOfSparseTable(t *testing.T) {
	if runtime.GOOS != "linux" {
		required.SkipOrFail(t, "proc", "the peak of a process is read from /proc")
	}
	required.Slow(t, "proc", "fits every learner to thousands of sparse features")
	folder := t.TempDir()
	model := filepath.Join(folder, "m.safetensors")
	size := map[bool][2]int{false: {400, 100000}, true: {1500, 30000}} // number of rows and of features; the key is Description.Sparse
	table := func(size [2]int) string {
		path := filepath.Join(folder, fmt.Sprintf("%d.svm", size[1]))
		if _, err := os.Stat(path); err != nil {
			writeSparsePlanTable(t, path, size[0], size[1])
		}
		return path
	}
	for _, d := range learners.Catalogue() {
		type planCase struct {
			size [2]int
			args []string
		}
		cases := []planCase{{size[d.Sparse], wideParameters(d)}}
		if _, has := d.Parameter("kernel"); has && d.Sparse {
			cases = nil
			for _, kernel := range []string{"gaussian(sigma=1)", "linear()"} {
				cases = append(cases, planCase{size[true], append(wideParameters(d), "--kernel", kernel)})
			}
		}
		switch d.Name {
		case "ridge": // the table is smaller, because these fits make a dense copy
			cases = append(cases, planCase{[2]int{1500, 3000}, []string{"--std"}}, planCase{[2]int{1500, 3000}, []string{"--intervals"}})
		case "fourier-ridge": // a search also makes a dense copy
			cases = append(cases, planCase{size[false], []string{"--std"}}, planCase{[2]int{1500, 3000}, []string{"--optimize"}})
		case "nystrom-ridge":
			cases = append(cases, planCase{size[true], []string{"--std"}})
		}
		withRows := int64(0) // planned bytes of a fit with a cache of rows of K
		for _, c := range cases {
			t.Run(fmt.Sprintf("%s/d=%d/%s", d.Name, c.size[1], strings.Join(c.args, " ")), func(t *testing.T) {
				fit := []string{"fit", "--no-standardize", "--threads", "2", "--learner", d.Name, "--task", string(d.Tasks[0]), "--model", model}
				if d.Tasks[0] != learners.Novelty {
					fit = append(fit, "--target", "label")
				}
				fit = append(append(fit, c.args...), table(c.size))
				if d.Name == "lasso" { // the plan may exceed the peak, because the plan counts all columns that may become active
					planOf(t, fit)
					return
				}
				planned := checkPlan(t, d, fit)
				checkPlansOfModel(t, d.Name, model, table(c.size))
				if _, cache := d.Parameter("cache"); !cache || !slices.Contains(c.args, "linear()") {
					withRows = planned
				} else if n := int64(c.size[0]); planned > withRows-8*n*n/2 {
					t.Errorf("%d bytes are planned, %d with the rows of K, which coordinate descent does not take", planned, withRows)
				}
			})
		}
	}
}
