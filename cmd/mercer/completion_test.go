package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mercer-go/mercer/internal/required"
)

// completed lists typed command lines, in which "\t" is the tab key. For each line, the shell must call mercer with
// args.
var completed = []struct {
	typed string
	args  []string
}{
	{"mercer expl\t", []string{"explain"}},
	{"mercer help plot cali\t", []string{"help", "plot", "calibration"}},
	{"mercer serve --tls-c\t", []string{"serve", "--tls-cert"}},
	{"mercer fit --kernel gaus\t", []string{"fit", "--kernel", "gaussian(sigma=2)"}},
	{"mercer fit --kernel=gaus\t", []string{"fit", "--kernel=gaussian(sigma=2)"}},
	{"mercer fit --learner kernel-ri\t", []string{"fit", "--learner", "kernel-ridge"}},
	{"mercer fit --learner logistic --solver lb\t", []string{"fit", "--learner", "logistic", "--solver", "lbfgs"}},
	{"mercer fit --solver mi\t", []string{"fit", "--solver", "mixed"}},
	{"mercer fit t.csv --target num\t", []string{"fit", "t.csv", "--target", "number"}},
	{"mercer fit t.csv --target wei\t", []string{"fit", "t.csv", "--target", "weight in kg"}},
	{"mercer evaluate --model mod\t my\t", []string{"evaluate", "--model", "model.safetensors", "my table.csv"}},
	{"mercer predict --model=mod\t", []string{"predict", "--model=model.safetensors"}},
}

// TestShellsComplete types command lines with the tab key into interactive shells, in a terminal of script(1).
func TestShellsComplete(t *testing.T) {
	const library = "/usr/share/bash-completion/bash_completion"
	for shell, c := range map[string]struct {
		rc   string
		call string
	}{
		"bash": {"source " + library + "\nsource <(mercer completion bash)\n", "bash --noprofile --rcfile .zshrc -i"},
		"zsh":  {"autoload -U compinit\ncompinit -u -D\nsource <(mercer completion zsh)\n", "zsh -d -i"},
	} {
		t.Run(shell, func(t *testing.T) {
			if runtime.GOOS != "linux" {
				required.SkipOrFail(t, shell, "script has other flags outside Linux")
			}
			required.Program(t, shell, shell)
			script := required.Program(t, shell, "script")
			if _, err := os.Stat(library); shell == "bash" && err != nil {
				required.SkipOrFail(t, shell, err)
			}
			folder := completionFolder(t)
			// This shell function passes calls of the completion scripts to the command, and prints every other call.
			rc := c.rc + `mercer() { case $1 in (__complete*) command mercer "$@";; (*) printf 'called'; printf ' <%s>' "$@"; echo;; esac; }` + "\n"
			if err := os.WriteFile(filepath.Join(folder, ".zshrc"), []byte(rc), 0o666); err != nil {
				t.Fatal(err)
			}
			var typed, want strings.Builder
			for _, line := range completed {
				typed.WriteString(line.typed + "\n")
				want.WriteString("called <" + strings.Join(line.args, "> <") + ">\n")
			}
			out := inShell(t, folder, typed.String()+"exit\n", script, "-qec", c.call, os.DevNull)
			got := strings.Join(regexp.MustCompile(`called <.*>`).FindAllString(out, -1), "\n") + "\n"
			if got != want.String() {
				t.Errorf("called\n%swant\n%sthe terminal has\n%q", got, want.String(), out)
			}
		})
	}
	t.Run("fish", func(t *testing.T) {
		fish := required.Program(t, "fish", "fish")
		folder := completionFolder(t)
		words := func(typed string) string {
			return inShell(t, folder, "", fish, "--no-config", "-c", "mercer completion fish | source; complete -C $argv[1]", typed)
		}
		for _, line := range completed {
			typed, _, isPrefix := strings.Cut(strings.TrimSuffix(line.typed, "\t"), "\t")
			word, _, _ := strings.Cut(strings.TrimSuffix(words(typed), "\n"), "\t") // for commands and flags, a tab and a help text follow the word
			if want := line.args[len(line.args)-1]; word != want && !isPrefix {
				t.Errorf("%s: %q, want %q", typed, word, want)
			}
		}
		const want = "--labels\tFILE of the labels of an IDX file (default: found by the name of the images)\n" +
			"--lambda\tλ of (K + λI)α = y, not scaled by the number of rows\n" +
			"--lambdas\tλ of each target, instead of lambda\n"
		if got := words("mercer fit --la"); got != want {
			t.Errorf("fit --la: %q, want %q", got, want)
		}
	})
}

// completionFolder returns a new folder with two tables and a file of a model.
func completionFolder(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"t.csv", "my table.csv", "model.safetensors"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("a,number,weight in kg\n1,2,3\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// inShell runs a program in a folder that is also the home folder, with mercer on the path, and returns its output.
func inShell(t *testing.T, folder, input string, program string, args ...string) string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Stdin = folder, strings.NewReader(input)
	cmd.Env = append(os.Environ(), "PATH="+commandFolder(t), asCommand+"=1", "HOME="+folder, "ZDOTDIR="+folder, "TERM=dumb", "LC_ALL=C.UTF-8")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil || errs.Len() > 0 {
		t.Fatalf("%v: %v\n%s%s", cmd, err, out.String(), errs.String())
	}
	return out.String()
}
