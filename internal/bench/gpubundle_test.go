package bench

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/internal/required"
)

// TestGPUBundleManifest checks that `make gpu-bundle` builds exactly the programs that the script runs.
func TestGPUBundleManifest(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, recipe, _ := strings.Cut(string(makefile), "\ngpu-bundle:")
	recipe, _, _ = strings.Cut(recipe, "\n\n")
	var built []string
	for _, m := range regexp.MustCompile(`-o '\$\(BUNDLE\)/([a-z.]+)' (\./\S+)`).FindAllStringSubmatch(recipe, -1) {
		built = append(built, m[1])
		if sources, _ := filepath.Glob(filepath.Join("..", "..", m[2], "*.go")); len(sources) == 0 {
			t.Errorf("%s is built of %s, where there is no Go", m[1], m[2])
		}
	}
	if !strings.Contains(recipe, "install -m 755 bench/gpubundle.sh '$(BUNDLE)/run'") {
		t.Error("the script is not installed as run")
	}
	script, err := os.ReadFile("../../bench/gpubundle.sh")
	if err != nil {
		t.Fatal(err)
	}
	var run []string
	for _, m := range regexp.MustCompile(`\$programs/([a-z.]+)"`).FindAllStringSubmatch(string(script), -1) {
		run = append(run, m[1])
	}
	slices.Sort(built)
	slices.Sort(run)
	if run = slices.Compact(run); !slices.Equal(built, run) {
		t.Errorf("the Makefile builds %v, the script runs %v", built, run)
	}
}

// minimalPath returns a folder with the programs that the script needs on every machine.
func minimalPath(t *testing.T) string {
	folder := t.TempDir()
	for _, name := range []string{"sh", "awk", "basename", "cat", "chmod", "cp", "cut", "date", "dirname", "grep", "gunzip", "gzip", "mkdir", "mktemp", "mv", "paste", "rm", "tail", "timeout", "tr", "env"} {
		path, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(path, filepath.Join(folder, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// TestGPUBundleScript runs the script with programs that record their arguments. The script must run every step
// that fits the budget and write three files, and fail if a step fails, if no test runs, or if cuSOLVER or a GPU
// is missing.
func TestGPUBundleScript(t *testing.T) {
	required.Program(t, "sh", "sh")
	required.Program(t, "sh", "gzip")
	script, err := filepath.Abs("../../bench/gpubundle.sh")
	if err != nil {
		t.Fatal(err)
	}
	const fake = `#!/bin/sh
echo "$(basename "$0") $*" >>"$LOG"
case "$(basename "$0") $*" in
$FAILS) exit 1 ;;
*-test.bench*) echo 'BenchmarkX/op=gemm-2 1 500 ns/op 52.5 TFLOP/s' ;;
*.test*) [ -n "${NOTESTS-}" ] || printf '    --- PASS: TestX/a"b (0.25s)\n--- PASS: TestX (1.00s)\n' ;;
'mercer devices') echo "cuda/0 driver, libcublas.so.13, ${SOLVER-libcusolver.so.12}" ;;
*report*) for page in "$@"; do :; done; echo '# page' >"$page" ;;
'mercer bench '*) printf '{"kind":\n"fit"}' ;;
esac
`
	packed := new(strings.Builder)
	z := gzip.NewWriter(packed)
	z.Write([]byte(fake))
	z.Close()
	type step struct {
		Name, Outcome, Note string
		Tests               []struct {
			Name, Outcome string
			Seconds       float64
		}
		Figures []struct {
			Name   string
			Values map[string]float64
		}
		Measurement struct{ Kind string }
	}
	for _, test := range required.Subset(6, []struct {
		name, fails string
		args, env   []string
		step, want  string // expected outcome of a step
		message     string // expected message about a step that is not started
		ok          bool
	}{
		{name: "tiny", args: []string{"--size", "tiny"}, step: "peers", want: "passed", ok: true},
		{name: "full", args: []string{"--size", "full"}, step: "tests", want: "passed", ok: true},
		{name: "no time", args: []string{"--budget", "24s"}, step: "roofline", want: "left out", ok: true},
		{name: "a test fails", fails: "cuda.test*-test.short*", step: "card", want: "FAILED"},
		{name: "what a machine lacks is reported", step: "prototypes", want: "left out", env: []string{"PATH=" + minimalPath(t)}, ok: true},
		{name: "no test runs", env: []string{"NOTESTS=yes"}, step: "libraries", want: "FAILED"},
		{name: "a measurement fails", fails: "*bench fit*", step: "peers", want: "FAILED"},
		{name: "no cuSOLVER", env: []string{"SOLVER="}, step: "machine", want: "FAILED"},
		{name: "no GPU", fails: "*--device cuda/0", message: "there is no GPU to measure"},
		{name: "unknown size", args: []string{"--size", "huge"}, message: "the choices are: tiny, quick, full"},
		{name: "no number", args: []string{"--budget", "9 minutes"}, message: "want seconds"},
		{name: "a value is missing", args: []string{"--out"}, message: "--out needs a value"},
	}) {
		t.Run(test.name, func(t *testing.T) {
			bundle := t.TempDir()
			for _, name := range []string{"mercer", "cuda.test", "driver.test"} {
				if err := os.WriteFile(filepath.Join(bundle, name+".gz"), []byte(packed.String()), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(script, filepath.Join(bundle, "run")); err != nil {
				t.Fatal(err)
			}
			log, out := filepath.Join(bundle, "log"), filepath.Join(bundle, "out")
			args := test.args
			if test.step != "" {
				args = append(args, "--out", out)
			}
			c := exec.Command(filepath.Join(bundle, "run"), args...)
			c.Env = append(append(os.Environ(), "LOG="+log, "FAILS="+test.fails), test.env...)
			c.Dir = t.TempDir() // the script must not depend on the current folder
			text, err := c.CombinedOutput()
			if (err == nil) != test.ok || !strings.Contains(string(text), test.message) {
				t.Errorf("%v, want %q in\n%s", err, test.message, text)
			}
			if test.step == "" {
				return
			}
			files, _ := filepath.Glob(filepath.Join(out, "*"))
			hidden, _ := filepath.Glob(filepath.Join(out, ".*"))
			if len(files) != 3 || len(hidden) != 0 {
				t.Errorf("the files are %v %v, want three", files, hidden)
			}
			var results struct{ Steps []step }
			data, err := os.ReadFile(filepath.Join(out, "results.json"))
			if err == nil {
				err = json.Unmarshal(data, &results)
			}
			if err != nil {
				t.Fatalf("%v in\n%s", err, data)
			}
			i := slices.IndexFunc(results.Steps, func(s step) bool { return s.Name == test.step })
			if i < 0 || results.Steps[i].Outcome != test.want {
				t.Fatalf("step %s is not %s:\n%s", test.step, test.want, data)
			}
			if !test.ok || test.want == "left out" {
				return
			}
			for _, s := range results.Steps {
				switch s.Name {
				case "card":
					if len(s.Tests) != 2 || s.Tests[0].Name != `TestX/a"b` || s.Tests[0].Outcome != "PASS" || s.Tests[0].Seconds != 0.25 {
						t.Errorf("the tests are %+v", s.Tests)
					}
				case "roofline":
					if len(s.Figures) != 1 || s.Figures[0].Values["TFLOP/s"] != 52.5 {
						t.Errorf("the figures are %+v", s.Figures)
					}
				case "peers":
					if s.Measurement.Kind != "fit" {
						t.Errorf("the measurement is %+v", s.Measurement)
					}
				}
			}
		})
	}
}
