package main

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/learners"
)

// sourceTexts returns every string in the sources of some folders of the repository, with its
// position. Parts joined by + form one text, with … for computed parts.
func sourceTexts(t *testing.T, folders ...string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	set := token.NewFileSet()
	var concatenated func(e ast.Expr) string
	concatenated = func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.BasicLit:
			if s, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
				return s
			}
		case *ast.BinaryExpr:
			if e.Op == token.ADD {
				return concatenated(e.X) + concatenated(e.Y)
			}
		}
		return "…"
	}
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join("..", "..", folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "test"+string(filepath.Separator)) {
				return err
			}
			file, err := parser.ParseFile(set, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				e, ok := n.(ast.Expr)
				if !ok {
					return true
				}
				switch e.(type) {
				case *ast.BasicLit, *ast.BinaryExpr:
					texts[set.Position(e.Pos()).String()+" "+fmt.Sprint(e.End())] = concatenated(e)
					_, isSum := e.(*ast.BinaryExpr)
					return isSum && concatenated(e) == "…"
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return texts
}

// librarySources are the folders whose errors every front end shows.
var librarySources = []string{"solvers", "learners", "dataset", "kernels", "backend", "cpu", "cuda", "gonum",
	"internal/adjoint", "internal/band", "internal/evidence", "internal/glm", "internal/krylov", "internal/lowrank", "internal/lsq", "internal/neighbors",
	"internal/numeric", "internal/online", "internal/run", "internal/sparse", "internal/stream", "internal/svm"}

var (
	groupPattern     = regexp.MustCompile(`\{[^{}]*\$[^{}]*\}`)
	parameterPattern = regexp.MustCompile(`\$([a-zA-Z-]+(?:=[a-z]+)?)`)
)

// TestAdviceNamesParametersByMarks checks that advice in the texts of the library writes each parameter as $name,
// which each front end replaces by its own name, and that message.Parameters lists the parameter.
func TestAdviceNamesParametersByMarks(t *testing.T) {
	knownParameters := message.Parameters()
	var names []string
	for _, d := range learners.Catalogue() {
		for _, p := range d.Parameters {
			names = append(names, regexp.QuoteMeta(p.Name))
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	writtenOut := regexp.MustCompile(`\b(raise|lower|increase|decrease|reduce|set|use fewer|use more)( the)? (` + strings.Join(names, "|") + `)\b|--[a-z]`)
	// The advice in these files is shown only to callers that have the parameters.
	exempt := map[string]string{
		"dataset/dialect.go":             "checks the flags of the commands",
		"kernels/trees/subtree.go":       "decay is a parameter of the kernel",
		"kernels/strings/subsequence.go": "decay and length are parameters of the kernel",
	}
	groups := 0
	for position, text := range sourceTexts(t, librarySources...) {
		for _, m := range groupPattern.FindAllString(text, -1) {
			groups++
			for _, p := range parameterPattern.FindAllStringSubmatch(m, -1) {
				if name, _, _ := strings.Cut(p[1], "="); !slices.Contains(knownParameters, p[1]) && !slices.Contains(knownParameters, name) {
					t.Errorf("%s: advice names $%s, which package message does not know: %q", position, p[1], text)
				}
			}
		}
		remaining := groupPattern.ReplaceAllString(text, "")
		file := strings.Split(filepath.ToSlash(strings.TrimPrefix(position, filepath.Join("..", "..")+string(filepath.Separator))), ":")[0]
		if w := writtenOut.FindString(remaining); w != "" && exempt[file] == "" {
			t.Errorf("%s: %q is advice with a name written out: write {raise $name}: %q", position, w, text)
		}
	}
	if groups < 40 {
		t.Errorf("only %d pieces of advice were found", groups)
	}
}

// valid maps each parameter that advice names to a valid value.
var valid = map[string]string{
	"lambda": "10", "lambdas": "10", "tol": "0.1", "iterations": "100000", "C": "0.5", "rate": "1e-5", "nu": "0.1", "centers": "5", "features": "5",
	"kernel": "gaussian(sigma=30)", "solver": "auto", "memory": "4GB", "folds": "2", "task": "classification", "na-values": "none", "categorical": "a", "drop": "a",
	"accuracy": "1e6", "bound": "true", "keep-default-na": "false", "decimal": ".", "thousands": ",", "delimiter": ",",
}

// TestAdviceCanBeFollowed checks the advice in errors of the library for every command and every learner. The flag
// or parameter that the advice names must exist, and a call with it must not end with a usage error. In Go, the
// error of a learner must name only parameters of this learner.
func TestAdviceCanBeFollowed(t *testing.T) {
	var advice []string
	for _, text := range sourceTexts(t, librarySources...) {
		advice = append(advice, groupPattern.FindAllString(text, -1)...)
	}
	slices.Sort(advice)
	advice = slices.Compact(advice)
	t.Chdir(t.TempDir())
	if err := os.WriteFile("data.csv", []byte(everyData()), 0o666); err != nil {
		t.Fatal(err)
	}
	writeWithout(t, "data.csv", "number.csv", "class")
	writeWithout(t, "data.csv", "class.csv", "number")
	dev, err := backend.Open("ref", backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	x, y := mat.NewDense(6, 2, []float64{1, 2, 2, 1, 3, 5, 4, 3, 5, 9, 6, 7}), mat.NewDense(6, 1, []float64{-1, 1, -1, 1, -1, 1})
	anyLearner := map[string]bool{}
	for _, d := range learners.Catalogue() {
		for _, p := range d.Parameters {
			anyLearner[p.Name] = true
		}
	}
	words := map[string]string{} // maps a plain name in a Go error to its parameter
	for _, name := range message.Parameters() {
		if anyLearner[name] {
			words[message.Plain(name)] = name
		}
	}
	root := new(app).root()
	flag := regexp.MustCompile(`(mercer )?--([a-z][a-z-]*|C\b)( [a-z]+)?`)
	tried := map[string]bool{}
	for i, d := range learners.Catalogue() {
		for j, text := range advice {
			if required.FewCases() && (i+j)%5 != 0 {
				continue
			}
			// The fit returns the cause of the canceled context in the same form as an error of the solver.
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(message.Errorf("fault: " + text))
			fit, err := d.Make("", nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = fit(ctx, dev, x, y, learners.Options{})
			if err == nil || !strings.Contains(err.Error(), "fault") {
				t.Fatalf("%s: the fit ends with %v", d.Name, err)
			}
			columns := strings.ReplaceAll(err.Error(), "features or outputs", "columns") // here "features" means the columns of x, not the parameter
			for word, name := range words {
				if _, has := d.Parameter(name); !has && regexp.MustCompile(`(raise|lower|fewer|,|or) `+word+`\b`).MatchString(columns) {
					t.Errorf("%s in Go: the learner has no %s: %v", d.Name, name, err)
				}
			}
			for _, c := range root.Commands() {
				if c.Flag("target") == nil || c.Flag("learner") == nil {
					continue
				}
				message := (&app{command: c}).oneLine(err)
				for _, m := range flag.FindAllStringSubmatch(message, -1) {
					name := m[2]
					_, has := d.Parameter(name)
					f := c.Flag(name)
					switch {
					case f == nil:
						t.Errorf("mercer %s --learner %s: there is no --%s: %s", c.Name(), d.Name, name, message)
					case anyLearner[name] && !has && c.Name() != "tune":
						t.Errorf("mercer %s --learner %s: the learner has no --%s: %s", c.Name(), d.Name, name, message)
					}
					if name == "text" || name == "tfidf" { // the flags must be given together: columns.txtar tests this advice
						continue
					}
					if c.Name() == "fit" && valid[name] == "" {
						t.Errorf("--%s is advice, and this test has no value to try", name)
					}
					if c.Name() != "fit" || tried[d.Name+name] || d.Supports(learners.Novelty) {
						continue
					}
					tried[d.Name+name] = true
					value := valid[name]
					if p, _ := d.Parameter(name); m[3] != "" && slices.Contains(p.Choices, m[3][1:]) {
						value = m[3][1:]
					}
					target := "number"
					if !d.Supports(learners.Regression) || name == "task" {
						target = "class"
					}
					if name == "task" && !d.Supports(learners.Classification) {
						continue // the advice is about a target of classes or of numbers, and this learner takes only numbers
					}
					var out, errs bytes.Buffer
					args := []string{"fit", "--quiet", "--device", "ref", "--learner", d.Name, "--target", target, "--model", "m.st", "--" + name + "=" + value, target + ".csv"}
					if code := run(args, nil, &out, &errs); code == 2 {
						t.Errorf("%s: mercer %q: %s", message, args, errs.String())
					}
				}
			}
		}
	}
	if len(tried) < 50 && !required.FewCases() || len(tried) < 10 {
		t.Errorf("only %d flags were tried", len(tried))
	}
}
