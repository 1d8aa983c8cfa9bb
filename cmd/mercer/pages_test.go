package main

import (
	"bytes"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mercer-go/mercer/internal/required"
)

var (
	// inlineCommand matches a command within the text of a page.
	inlineCommand = regexp.MustCompile("`(mercer [^`]*)`")
	// console matches a block of commands, each after "$ ", with their output.
	console = regexp.MustCompile("(?s)(```console\n)(.*?)(```)")
	// prompt matches a command of a console block. A command continues after a line that ends with a backslash.
	prompt      = regexp.MustCompile(`(?m)^\$ ((?:[^\n]*\\\n)*[^\n]*)\n`)
	pagePicture = regexp.MustCompile(`\]\((?:\.\./)?pictures/([^)]*\.svg)\)`)
)

// TestPages runs every command under "Pictures" of docs/learners.md and every console block of docs/guide. The
// output of a command must equal the output on the page (see sameOutput). Each picture must have the words of its copy
// in docs/pictures, and this folder must have no other pictures. With -update the test replaces the outputs and the
// pictures.
func TestPages(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	guide, err := filepath.Glob(filepath.Join(root, "docs/guide/*.md"))
	if err != nil || len(guide) < 10 {
		t.Fatalf("%d pages in docs/guide, %v", len(guide), err)
	}
	path := commandFolder(t)
	var linked []string
	t.Run("pages", func(t *testing.T) {
		for i, page := range append(guide, filepath.Join(root, "docs/learners.md")) {
			data, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			text := string(data)
			var pictures []string
			for _, m := range pagePicture.FindAllStringSubmatch(text, -1) {
				pictures = append(pictures, m[1])
			}
			linked = append(linked, pictures...)
			if required.FewCases() && !*update && i%6 != 0 {
				continue
			}
			t.Run(filepath.Base(page), func(t *testing.T) {
				t.Parallel()
				folder := tablesOf(t, root)
				shell := func(command string) string {
					c := exec.Command("sh", "-c", command)
					c.Dir, c.Env = folder, append(os.Environ(), "PATH="+path, asCommand+"=1")
					var errs bytes.Buffer
					c.Stderr = &errs
					out, err := c.Output()
					if err != nil {
						t.Errorf("%s: %v\n%s%s", command, err, out, errs.String())
					}
					return string(out)
				}
				if filepath.Base(page) == "serving.md" {
					shell = askServer(t, folder, shell)
				}
				if filepath.Base(page) == "exchange.md" {
					shell = exchangeModels(t, folder, text, shell)
				}
				if filepath.Base(page) == "learners.md" {
					for _, m := range inlineCommand.FindAllStringSubmatch(section(t, text, "Pictures"), -1) {
						shell(m[1])
					}
				} else if updated := runBlocks(t, text, shell); *update && updated != text {
					if err := os.WriteFile(page, []byte(updated), 0o666); err != nil {
						t.Error(err)
					}
				}
				samePictures(t, folder, filepath.Join(root, "docs/pictures"), pictures)
			})
		}
	})
	slices.Sort(linked)
	var storedNames []string
	list, err := filepath.Glob(filepath.Join(root, "docs/pictures/*.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range list {
		storedNames = append(storedNames, filepath.Base(name))
	}
	slices.Sort(storedNames)
	if d := cmp.Diff(slices.Compact(linked), storedNames); d != "" {
		t.Errorf("pictures on the pages (-) and in docs/pictures (+):\n%s", d)
	}
}

// askServer returns a function that runs the commands of the page about mercer serve. Before the first request it
// starts the server, on a free port.
func askServer(t *testing.T, folder string, shell func(command string) string) func(command string) string {
	var c *serving
	return func(command string) string {
		const address = "http://127.0.0.1:8080/"
		if strings.Contains(command, address) {
			required.Program(t, "curl", "curl")
			if c == nil {
				c = startServing(t, filepath.Join(folder, "diabetes.safetensors"))
			}
			command = strings.ReplaceAll(command, address, c.url)
		}
		return shell(command)
	}
}

// exchangeModels returns a function that runs the commands of the page about models of other programs, until a
// program, such as svm-train, is missing. It writes the page's program for Node.js to a file.
func exchangeModels(t *testing.T, folder, page string, shell func(command string) string) func(command string) string {
	_, program, _ := strings.Cut(page, "```js\n")
	program, _, _ = strings.Cut(program, "```")
	script := filepath.Join(folder, "predict.js")
	if err := os.WriteFile(script, []byte(program), 0o666); err != nil {
		t.Fatal(err)
	}
	return func(command string) string {
		switch {
		case strings.HasPrefix(command, "node "):
			c := required.ONNXRuntime(t, script)
			c.Dir = folder
			out, err := c.Output()
			if err != nil {
				t.Error(err)
			}
			return string(out)
		case strings.HasPrefix(command, "svm-train "):
			required.Program(t, "libsvm", "svm-train")
		}
		return shell(command)
	}
}

// section returns the text under a heading of the second level, up to the next such heading.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, text, _ := strings.Cut(page, "\n## "+heading+"\n")
	text, _, ok := strings.Cut(text, "\n## ")
	if !ok {
		t.Fatalf("there is no section %s that another one follows", heading)
	}
	return text
}

// commandFolder returns a value for PATH. Its first folder contains mercer, a link to this test binary, which
// behaves as the command if the environment variable asCommand is set.
func commandFolder(t *testing.T) string {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Symlink(executable, filepath.Join(folder, "mercer")); err != nil {
		t.Fatal(err)
	}
	return folder + string(os.PathListSeparator) + os.Getenv("PATH")
}

// tablesOf copies the tables of the repository to a new folder, with their paths, and returns the folder.
func tablesOf(t *testing.T, root string) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"docs/pictures", "testdata"} {
		tables, err := filepath.Glob(filepath.Join(root, name, "*.csv"))
		if err != nil || len(tables) == 0 {
			t.Fatalf("no tables in %s: %v", name, err)
		}
		if err := os.MkdirAll(filepath.Join(folder, name), 0o777); err != nil {
			t.Fatal(err)
		}
		for _, table := range tables {
			data, err := os.ReadFile(table)
			if err == nil {
				err = os.WriteFile(filepath.Join(folder, name, filepath.Base(table)), data, 0o666)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return folder
}

// runBlocks runs the commands in the console blocks of a page, and returns the page with the new outputs where they
// differ.
func runBlocks(t *testing.T, page string, shell func(command string) string) string {
	t.Helper()
	return console.ReplaceAllStringFunc(page, func(block string) string {
		m := console.FindStringSubmatch(block)
		matches := prompt.FindAllStringSubmatchIndex(m[2], -1)
		if len(matches) == 0 || matches[0][0] != 0 {
			t.Errorf("a console block does not begin with a command:\n%s", block)
			return block
		}
		var text strings.Builder
		for i, pos := range matches {
			end := len(m[2])
			if i+1 < len(matches) {
				end = matches[i+1][0]
			}
			command, want := m[2][pos[2]:pos[3]], m[2][pos[1]:end]
			got := shell(command)
			if ok := sameOutput(want, got); !ok && !*update {
				t.Errorf("%s\nprints (+) what the page does not show (-); make pictures writes the page anew:\n%s", command, cmp.Diff(want, got))
			} else if !ok {
				want = got
			}
			text.WriteString(m[2][pos[0]:pos[1]] + want)
		}
		return m[1] + text.String() + m[3]
	})
}

var (
	// measuredText matches parts of an output that differ between runs or between machines: times, memory, the
	// device, numbers of iterations, residuals at the level of rounding, proven errors, and costs or residuals
	// after the name of a solver.
	measuredText = regexp.MustCompile(`(?m)^time  .*(?:\n {9}.*)*|^(?:steps|rows of K|evaluations)  .*|[0-9.]+ (?:µs|ms|s|min|B|KiB|MiB|GiB)\b|cpu/[a-z0-9]+|[0-9]+ threads?|residual +[0-9.e-]+|"(?:seconds|processor_seconds|planned_bytes|peak_bytes|proven_error(?:_of_alpha)?)": [0-9.e-]+|^proven error.*|\b[0-9.]+e-1[0-9]\b|\b(?:dual|primal|kalman|modes|mixed|cg) +[0-9.]+e[-+][0-9]+`)
	pageNumber   = regexp.MustCompile(`[-−]?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?`)
)

// sameOutput reports whether the output of a command equals the output on a page. A line "…" of the page matches
// any number of lines. Spaces and measured parts are not compared. Integers must be equal. Other numbers may differ
// by at most one unit of the last digit shown, or by a relative 1e-4 if more than eight digits are shown, because
// the results of searches for the σ and λ of a Gaussian process differ by up to 9e-5.
func sameOutput(want, got string) bool {
	split := func(text string) (lines []string) {
		for line := range strings.SplitSeq(strings.TrimSpace(measuredText.ReplaceAllString(text, "@")), "\n") {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
		return lines
	}
	return sameLines(split(want), split(got))
}

func sameLines(want, got []string) bool {
	switch {
	case len(want) == 0:
		return len(got) == 0
	case want[0] == "…":
		return sameLines(want[1:], got) || len(got) > 0 && sameLines(want, got[1:])
	}
	return len(got) > 0 && sameLine(want[0], got[0]) && sameLines(want[1:], got[1:])
}

func sameLine(want, got string) bool {
	if pageNumber.ReplaceAllString(want, "0") != pageNumber.ReplaceAllString(got, "0") {
		return false
	}
	values := pageNumber.FindAllString(got, -1)
	for i, printed := range pageNumber.FindAllString(want, -1) {
		if !sameNumber(printed, values[i]) {
			return false
		}
	}
	return true
}

func sameNumber(printed, value string) bool {
	parse := func(text string) (v, unit float64, digits int) {
		text = strings.ReplaceAll(text, "−", "-")
		v, _ = strconv.ParseFloat(text, 64)
		mantissa, exponent, _ := strings.Cut(text, "e")
		integer, fraction, _ := strings.Cut(mantissa, ".")
		e, _ := strconv.Atoi(exponent)
		return v, math.Pow10(e - len(fraction)), len(strings.TrimLeft(integer+fraction, "-0"))
	}
	a, unitA, digitsA := parse(printed)
	b, unitB, digitsB := parse(value)
	switch {
	case !strings.ContainsAny(printed+value, ".e"):
		return printed == value
	case max(digitsA, digitsB) > 8:
		return math.Abs(a-b) <= 1e-4*max(math.Abs(a), math.Abs(b))
	}
	return math.Abs(a-b) <= min(unitA, unitB)*(1+1e-9) // the factor allows for the rounding of a and b to float64
}

// samePictures compares the pictures that the commands of a page drew, in the first folder, with the files of the
// same names in the second folder. With -update it replaces the files in the second folder.
func samePictures(t *testing.T, folder, reference string, names []string) {
	t.Helper()
	for _, name := range names {
		picture, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Errorf("no command of the page draws %s: %v", name, err)
			continue
		}
		if *update {
			if err := os.WriteFile(filepath.Join(reference, name), picture, 0o666); err != nil {
				t.Error(err)
			}
			continue
		}
		got, want := wordsOf(t, filepath.Join(folder, name)), wordsOf(t, filepath.Join(reference, name))
		if !slices.Equal(got, want) {
			t.Errorf("%s: the command draws %q, docs/pictures has %q: run make pictures", name, got, want)
		}
	}
}

// TestSameOutput checks that a word, the number of lines, an integer, or a digit other than the last one makes
// outputs different.
func TestSameOutput(t *testing.T) {
	for _, test := range []struct {
		want, got string
		equal     bool
	}{
		{"rows  442\nRMSE  54.81\n", "rows 442\nRMSE    54.82\n", true},
		{"rows  442\nRMSE  54.81\n", "rows 442\nRMSE    54.83\n", false},
		{"rows  442\n", "rows  443\n", false},
		{"rows  442\n", "row  442\n", false},
		{"RMSE  61\n", "RMSE  60.99\n", true},
		{"RMSE  61\n", "RMSE  60.89\n", false},
		{"lambda  1e-05\n", "lambda  1e-06\n", false},
		{"233.58409405536023\n", "233.58409405536\n", true},
		{"233.58409405536023\n", "233.55\n", false},
		{"time  115.4 ms (gram 0.6 ms)\nmemory  444 KiB\n", "time  1.2 s (gram 12 ms)\nmemory  1.2 MiB\n", true},
		{"time  1.4 ms (solve 0.1\n            ms)\nmodel  m.st\n", "time  15.4 ms (solve 6 ms)\nmodel  m.st\n", true},
		{"solver  dual, residual 1.3e-15\n", "solver  dual, residual 2e-16\n", true},
		{"solver  dual, residual 1.3e-15\n", "solver  cg, residual 1.3e-15\n", false},
		{"a\n…\nz\n", "a\nb\nc\nz\n", true},
		{"a\n…\nz\n", "a\nb\nc\n", false},
		{"a\n…\n", "a\nb\n", true},
		{"a\n", "a\nb\n", false},
		{"", "b\n", false},
		{"", "", true},
	} {
		if got := sameOutput(test.want, test.got); got != test.equal {
			t.Errorf("sameOutput(%q, %q) = %t", test.want, test.got, got)
		}
	}
}

// wordsOf returns the texts of an SVG picture, except for numbers at ticks, which may depend on rounding.
func wordsOf(t *testing.T, name string) (texts []string) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Error(err)
	}
	for _, m := range regexp.MustCompile(`(?s)<text [^>]*>([^<]*)</text>`).FindAllSubmatch(data, -1) {
		if _, err := strconv.ParseFloat(string(m[1]), 64); err != nil {
			texts = append(texts, string(m[1]))
		}
	}
	return texts
}
