package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/internal/required"
)

// TestGPUBundleManifest: `make gpu-bundle` builds the programs that the script runs,
// of packages that exist, and no others.
func TestGPUBundleManifest(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, recipe, _ := strings.Cut(string(makefile), "\ngpu-bundle:")
	recipe, _, _ = strings.Cut(recipe, "\n\n")
	var built []string
	for _, m := range regexp.MustCompile(`-o '\$\(BUNDLE\)/([a-z.]+)' (\./\S+)`).FindAllStringSubmatch(recipe, -1) {
		built = append(built, m[1])
		if sources, _ := filepath.Glob(filepath.Join("..", m[2], "*.go")); len(sources) == 0 {
			t.Errorf("%s is built of %s, where there is no Go", m[1], m[2])
		}
	}
	if !strings.Contains(recipe, "install -m 755 bench/gpubundle.sh '$(BUNDLE)/run'") {
		t.Error("the script is not installed as run")
	}
	script, err := os.ReadFile("gpubundle.sh")
	if err != nil {
		t.Fatal(err)
	}
	var run []string
	for _, m := range regexp.MustCompile(`(?m)^\t?step [a-z-]+ ([a-z.]+)|\$here/([a-z.]+)"`).FindAllStringSubmatch(string(script), -1) {
		run = append(run, m[1]+m[2])
	}
	slices.Sort(built)
	slices.Sort(run)
	if run = slices.Compact(run); !slices.Equal(built, run) {
		t.Errorf("the Makefile builds %v, the script runs %v", built, run)
	}
}

// TestGPUBundleScript runs the script with programs that record their arguments: it
// makes every step, writes the pages of measurements, and fails when a step does,
// when no test has run, and without a GPU.
func TestGPUBundleScript(t *testing.T) {
	required.Program(t, "sh", "sh")
	script, err := filepath.Abs("gpubundle.sh")
	if err != nil {
		t.Fatal(err)
	}
	const fake = `#!/bin/sh
echo "$(basename "$0") $*" >>"$LOG"
case "$(basename "$0") $*" in
$FAILS) exit 1 ;;
*.test*) [ -n "${NOTESTS-}" ] || echo '--- PASS: TestX (0.00s)' ;;
*report*) touch "$5" ;;
esac
`
	for _, test := range []struct {
		name, fails string
		args, env   []string
		steps       int
		want        string
		ok          bool
	}{
		{name: "tiny", args: []string{"--size", "tiny"}, steps: 6, want: "fit          passed", ok: true},
		{name: "full", args: []string{"--size", "full"}, steps: 8, want: "largest      passed", ok: true},
		{name: "no GPU", fails: "*--device cuda/0", want: "there is no GPU to measure"},
		{name: "a test fails", fails: "cuda.test*", steps: 6, want: "tests        FAILED"},
		{name: "no test runs", env: []string{"NOTESTS=yes"}, steps: 6, want: "libraries    FAILED"},
		{name: "a measurement fails", fails: "*bench fit*", steps: 6, want: "fit          FAILED"},
		{name: "unknown size", args: []string{"--size", "huge"}, want: "there are: tiny, quick, full"},
		{name: "a value is missing", args: []string{"--out"}, want: "--out needs a value"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bundle := t.TempDir()
			for _, name := range []string{"mercer", "cuda.test", "driver.test"} {
				if err := os.WriteFile(filepath.Join(bundle, name), []byte(fake), 0o777); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(script, filepath.Join(bundle, "run")); err != nil {
				t.Fatal(err)
			}
			log, out := filepath.Join(bundle, "log"), filepath.Join(bundle, "out")
			args := test.args
			if test.steps > 0 {
				args = append(args, "--out", out)
			}
			c := exec.Command(filepath.Join(bundle, "run"), args...)
			c.Env = append(append(os.Environ(), "LOG="+log, "FAILS="+test.fails), test.env...)
			c.Dir = t.TempDir() // it must not matter where it is called
			text, err := c.CombinedOutput()
			if (err == nil) != test.ok || !strings.Contains(string(text), test.want) {
				t.Errorf("%v, want %q in\n%s", err, test.want, text)
			}
			if test.steps == 0 {
				return
			}
			summary, err := os.ReadFile(filepath.Join(out, "summary.txt"))
			if lines := strings.Count(string(summary), "\n"); err != nil || lines != test.steps {
				t.Errorf("%v: %d steps, want %d:\n%s", err, lines, test.steps, summary)
			}
			if _, err := os.Stat(filepath.Join(out, "devices.html")); err != nil {
				t.Error(err)
			}
		})
	}
}
