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

// useMercer is a test file to add to a package of gonum, so that all of its tests run on Mercer's BLAS and LAPACK.
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

// gonumUsers are mat and the packages of gonum's optimize, spatial and stat that import mat.
var gonumUsers = []string{
	"mat", "optimize", "optimize/convex/lp", "optimize/functions", "spatial/r3", "spatial/transform",
	"stat", "stat/distmat", "stat/distmv", "stat/mds", "stat/samplemv", "stat/spatial",
}

// TestGonumOwnTests runs the tests of gonum's packages lapack/gonum and gonumUsers with Mercer registered, in a
// copy of gonum's module. The tests of lapack run on gonum's LAPACK over Mercer's BLAS, and on Mercer's LAPACK for
// its routines. Gonum's tests run in their short form, with 500 of 40,000 random linear programs. Omitted are
// TestTorgersonScaling (see TestTorgersonScalingDiffersByRounding), the tests of Dlaqr04 and Dlaqr23, which the
// tests of Dhseqr and Dgeev cover, the covariance of a million draws, and the orders of p = 200 in the GSVD tests.
func TestGonumOwnTests(t *testing.T) {
	if testing.Short() {
		t.Skip("gonum's own tests take about three minutes of processor time")
	}
	gonum, err := output(".", "go", "list", "-m", "-f", "{{.Dir}}", "gonum.org/v1/gonum")
	if err != nil || gonum == "" {
		t.Fatalf("the source of gonum's module is not available: %v", err)
	}
	mod, err := output(".", "go", "env", "GOMOD")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	copyDir := filepath.Join(dir, "gonum")
	if err := os.CopyFS(copyDir, os.DirFS(gonum)); err != nil {
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
	write("go.mod", read(mod)+"\nreplace gonum.org/v1/gonum => "+copyDir+"\n")
	write("go.sum", read(filepath.Join(filepath.Dir(mod), "go.sum")))
	edited := func(name string, edits ...[2]string) string {
		t.Helper()
		text := read(filepath.Join(copyDir, name))
		for _, edit := range edits {
			if !strings.Contains(text, edit[0]) {
				t.Fatalf("gonum's %s has changed: it has no %q", name, edit[0])
			}
			text = strings.ReplaceAll(text, edit[0], edit[1])
		}
		return text
	}
	const programs = "optimize/convex/lp/simplex_test.go"
	write("gonum/"+programs, edited(programs, [2]string{"testRandomSimplex(t, 20000,", "testRandomSimplex(t, 250,"}))
	suite := edited("lapack/gonum/lapack_test.go",
		[2]string{"package gonum\n", "package gonum_test\n"},
		[2]string{"import (\n", "import (\n\t\"github.com/mercer-go/mercer/cpu\"\n"},
		[2]string{"var impl = Implementation{}\n", "var impl = cpu.LAPACK{}\n"})
	routines := regexp.MustCompile(`(?m)^func \(impl LAPACK\) ([DS]\w+)\(`).FindAllStringSubmatch(read("lapack.go"), -1)
	numTests := 0
	suite = regexp.MustCompile(`(?ms)^func Test(\w+)\(t \*testing\.T\) \{.*?^\}\n`).ReplaceAllStringFunc(suite, func(test string) string {
		for _, routine := range routines {
			if strings.HasPrefix(test, "func Test"+routine[1]+"(") {
				numTests++
				return test
			}
		}
		return ""
	})
	if numTests < len(routines)/2 {
		t.Fatalf("gonum's lapack_test.go has changed: it has tests of %d of the %d routines", numTests, len(routines))
	}
	write("gonum/lapack/gonum/mercer_lapack_test.go", suite)

	args := []string{"test", "-short", "-vet=off", "-skip", "^Test(TorgersonScaling|Dlaqr04|Dlaqr23|NormalRandCov)$|^TestGSVD$/_200_", "-modfile", filepath.Join(dir, "go.mod"),
		"gonum.org/v1/gonum/lapack/gonum"}
	// Package cpu imports mat and lapack/gonum, so only external tests in those packages can import cpu.
	write("gonum/lapack/gonum/mercer_test.go", fmt.Sprintf(useMercer, "gonum_test"))
	for _, p := range gonumUsers {
		write("gonum/"+p+"/mercer_test.go", fmt.Sprintf(useMercer, filepath.Base(p)+"_test"))
		args = append(args, "gonum.org/v1/gonum/"+p)
	}
	got, err := output(filepath.Dir(mod), "go", args...)
	if err != nil {
		t.Errorf("%v\n%s", err, got)
	}
}

// output runs a command in a directory, without the network, and returns its output.
func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod -trimpath", "GOPROXY=off", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
