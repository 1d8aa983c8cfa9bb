package cpu

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// useMercer is a test file for a package of gonum: all of its tests run on
// Mercer's BLAS and LAPACK then.
const useMercer = `package %s

import (
	"testing"

	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"

	"github.com/mercer-go/mercer/cpu"
)

func init() {
	blas64.Use(cpu.BLAS{})
	blas32.Use(cpu.BLAS{})
	lapack64.Use(cpu.LAPACK{})
}

func TestMercerIsUsed(t *testing.T) {
	if _, ok := blas64.Implementation().(cpu.BLAS); !ok {
		t.Fatal("blas64 does not use Mercer")
	}
}
`

// gonumUsers are the packages of gonum beside mat and lapack whose tests call BLAS.
var gonumUsers = []string{
	"optimize", "optimize/convex/lp", "optimize/functions", "spatial/barneshut", "spatial/r3", "spatial/transform", "spatial/vptree",
	"stat", "stat/distmat", "stat/distmv", "stat/distuv", "stat/mds", "stat/samplemv", "stat/sampleuv", "stat/spatial",
}

// TestGonumOwnTests runs the tests of gonum's own packages mat and lapack, and of
// gonumUsers, with Mercer registered, in a copy of gonum's module. Those of lapack
// run on gonum's LAPACK over Mercer's BLAS, and on Mercer's LAPACK where it has a
// routine of its own. The network is not used. Gonum's tests run in their short form. For the one that is
// skipped see TestTorgersonScalingDiffersByRounding.
func TestGonumOwnTests(t *testing.T) {
	if testing.Short() {
		t.Skip("gonum's own tests take some six minutes of processor time")
	}
	gonum, err := output(".", "go", "list", "-m", "-f", "{{.Dir}}", "gonum.org/v1/gonum")
	if err != nil || gonum == "" {
		t.Fatalf("the source of gonum's module is not here: %v", err)
	}
	mod, err := output(".", "go", "env", "GOMOD")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	copied := filepath.Join(dir, "gonum")
	if err := os.CopyFS(copied, os.DirFS(gonum)); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	write("go.mod", read(mod)+"\nreplace gonum.org/v1/gonum => "+copied+"\n")
	write("go.sum", read(filepath.Join(filepath.Dir(mod), "go.sum")))
	// Package cpu imports mat and lapack/gonum, so that only external tests there can
	// import cpu.
	write("gonum/mat/mercer_test.go", fmt.Sprintf(useMercer, "mat_test"))
	write("gonum/lapack/gonum/mercer_test.go", fmt.Sprintf(useMercer, "gonum_test"))
	suite := read(filepath.Join(copied, "lapack/gonum/lapack_test.go"))
	for _, edit := range [][2]string{
		{"package gonum\n", "package gonum_test\n"},
		{"import (\n", "import (\n\t\"github.com/mercer-go/mercer/cpu\"\n"},
		{"var impl = Implementation{}\n", "var impl = cpu.LAPACK{}\n"},
	} {
		if !strings.Contains(suite, edit[0]) {
			t.Fatalf("gonum's lapack_test.go has changed: it has no %q", edit[0])
		}
		suite = strings.Replace(suite, edit[0], edit[1], 1)
	}
	own := regexp.MustCompile(`(?m)^func \(impl LAPACK\) ([DS]\w+)\(`).FindAllStringSubmatch(read("lapack.go"), -1)
	kept := 0
	suite = regexp.MustCompile(`(?ms)^func Test(\w+)\(t \*testing\.T\) \{.*?^\}\n`).ReplaceAllStringFunc(suite, func(test string) string {
		for _, routine := range own {
			if strings.HasPrefix(test, "func Test"+routine[1]+"(") {
				kept++
				return test
			}
		}
		return ""
	})
	if kept < len(own)/2 {
		t.Fatalf("gonum's lapack_test.go has changed: it has tests of %d of the %d routines", kept, len(own))
	}
	write("gonum/lapack/gonum/mercer_lapack_test.go", suite)

	args := []string{"test", "-short", "-vet=off", "-skip", "^TestTorgersonScaling$", "-modfile", filepath.Join(dir, "go.mod"),
		"gonum.org/v1/gonum/mat", "gonum.org/v1/gonum/lapack/gonum"}
	for _, p := range gonumUsers {
		write("gonum/"+p+"/mercer_test.go", fmt.Sprintf(useMercer, filepath.Base(p)))
		args = append(args, "gonum.org/v1/gonum/"+p)
	}
	got, err := output(filepath.Dir(mod), "go", args...)
	if err != nil {
		t.Errorf("%v\n%s", err, got)
	}
}

// output runs a command in a directory, without the network, and returns what
// it prints.
func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
