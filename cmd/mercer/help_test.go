package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/learners"
)

// listedFlags returns the flags in the help of a call.
func listedFlags(t *testing.T, args ...string) map[string]bool {
	t.Helper()
	_, text, found := strings.Cut(help(t, append(args, "--help")...), "\nFlags:\n")
	if !found {
		t.Fatalf("mercer %s --help lists no flags", strings.Join(args, " "))
	}
	flags := map[string]bool{}
	for line := range strings.Lines(text) {
		if name, isFlag := strings.CutPrefix(strings.Replace(line, "  -h, ", "      ", 1), "      --"); isFlag { // any other line continues the description of the flag above it
			flags[strings.Fields(name)[0]] = true
		}
	}
	return flags
}

// TestHelpOfALearnerListsItsParameters checks that the help of a command lists no parameter of a learner without
// --learner, and only the parameters of the named learner with --learner.
func TestHelpOfALearnerListsItsParameters(t *testing.T) {
	parameters := map[string]bool{}
	for _, d := range learners.Catalogue() {
		for _, p := range d.Parameters {
			parameters[p.Name] = p.Name != "seed"
		}
	}
	for _, command := range []string{"fit", "cv", "plot curve", "plot validation"} {
		for _, d := range append(learners.Catalogue(), learners.Description{}) {
			args := strings.Fields(command)
			if d.Name != "" {
				args = append(args, "--learner", d.Name)
			}
			flags := listedFlags(t, args...)
			for name := range parameters {
				if _, has := d.Parameter(name); parameters[name] && flags[name] != has {
					t.Errorf("mercer %s --help: --%s is listed: %v", strings.Join(args, " "), name, flags[name])
				}
			}
		}
	}
}

// TestHelpListsNoFlagThatIsRefused checks that the help of a call lists no flag that the call always refuses.
func TestHelpListsNoFlagThatIsRefused(t *testing.T) {
	calls := []string{
		"fit", "fit --learner ridge", "fit --learner nystrom-ridge --stream", "fit --learner perceptron",
		"plot path", "plot path --learner ridge", "plot path --learner lasso", "plot epochs --learner logistic", "plot ball",
		"plot curve --model m.st", "plot boundary --learner svc", "compare --learner svc,logistic",
		"tune", "tune --learner svc", "tune --learner lasso", "tune --learner rvm", "tune --learner kernel-knn",
		"tune --by evidence", "tune --by loo", "tune --text t", "tune --kernel linear()", "tune --learner ridge", "kernels", "version",
		"fit --text t", "cv --tree t", "gram", "gram --features exact", "gram --features principal", "gram --distances", "gram --train r.csv", "gram --text t", "show",
	}
	hidden := 0
	calls = required.Subset(12, calls)
	for _, call := range calls {
		flags := listedFlags(t, strings.Fields(call)...)
		for _, f := range flagsOf(t, call) {
			value := "--" + f.Name
			if f.NoOptDefVal == "" {
				value += "=1"
			}
			var out, errs strings.Builder
			run(append(strings.Fields(call), "--quiet=false", value, "nosuch.csv"), strings.NewReader(""), &out, &errs)
			rejected := slices.ContainsFunc([]string{
				"has no effect", "writes no checkpoints", "needs the whole table", "has no epochs", "the path varies", "is fitted already",
				"cannot be held out with --stream", "cannot be read in passes", "has no kernel", "has no lambda", "has no intercept", "no parameter of the kernel varies", "gradient varies all", "gradient computes",
				"is for --by kfold", "does not vary the parameters of a kernel", "are tuned by --kernel", "is Euclidean",
				"which has no parameter", "is for --features", "cannot be combined with", "centering does not change", "matrix of TABLE with itself",
			}, func(text string) bool {
				return strings.Contains(errs.String(), "mercer: --"+f.Name+": ") && strings.Contains(errs.String(), text)
			})
			if strings.Contains(errs.String(), "is for --by kfold") && !strings.Contains(call, "--by ") || strings.Contains(errs.String(), "is for --features") && !strings.Contains(call, "--features ") {
				continue // the flag is listed: its help says that it is only for a value of --by or --features, and this call sets neither
			}
			if rejected && flags[f.Name] {
				t.Errorf("mercer %s --help lists --%s, which is refused: %s", call, f.Name, errs.String())
			}
			if rejected {
				hidden++
			}
		}
	}
	if hidden < 2*len(calls) {
		t.Errorf("%d flags were refused: the test compares little", hidden)
	}
}

// TestHelpOfAModelListsWhatItKnows checks the flags that only some models support: the help of predict and evaluate
// with --model lists such a flag only if this model supports it.
func TestHelpOfAModelListsWhatItKnows(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("t.csv", []byte("a,y,c\n0,1,u\n1,2,u\n2,0,v\n3,4,v\n4,3,v\n5,1,u\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	mercer := func(args ...string) (int, string) {
		var out, errs strings.Builder
		code := run(append(args, "--quiet"), strings.NewReader(""), &out, &errs)
		return code, errs.String()
	}
	for _, model := range []string{"kernel-ridge", "gaussian-process", "ridge", "ridge --intervals", "svr --calibrate 0.4", "logistic --task classification", "svc", "rvm", "perceptron"} {
		target := "y"
		if d, _ := learners.Find(strings.Fields(model)[0]); d.Tasks[0] == learners.Classification || strings.Contains(model, "--task") {
			target = "c"
		}
		if code, errs := mercer(append(strings.Fields("fit --target "+target+" --model m.st t.csv --learner"), strings.Fields(model)...)...); code != 0 {
			t.Fatalf("%s: %s", model, errs)
		}
		for _, command := range []string{"predict", "evaluate"} {
			flags := listedFlags(t, command, "--model", "m.st")
			for name, value := range map[string]string{"proba": "true", "decision": "true", "std": "true", "interval": "0.9"} {
				code, errs := mercer(command, "--model", "m.st", "--"+name+"="+value, "t.csv")
				if accepted := code != 2; flags[name] != accepted {
					t.Errorf("%s of %s lists --%s: %v; with it: %s", command, model, name, flags[name], errs)
				}
			}
		}
	}
	if text := help(t, "predict", "--model", "nosuch.st", "--help"); !strings.Contains(text, "\n--model: nosuch.st: ") {
		t.Errorf("help with a model that is not there:\n%s", text)
	}
}

// flagsOf returns the flags of a command, including hidden flags.
func flagsOf(t *testing.T, call string) []*pflag.Flag {
	t.Helper()
	c, _, err := (&app{}).root().Find(strings.Fields(call))
	if err != nil {
		t.Fatal(err)
	}
	c.InheritedFlags() // adds the inherited flags to Flags()
	var list []*pflag.Flag
	c.Flags().VisitAll(func(f *pflag.Flag) { list = append(list, f) })
	return list
}

// TestHelpOfAnUnknownLearnerIsWrongUse checks that the help for an unknown learner shows no other learner's flags.
func TestHelpOfAnUnknownLearnerIsWrongUse(t *testing.T) {
	for _, args := range []string{"fit --learner svd --help", "compare --learner svc,svd --help", "plot path --learner svc --help"} {
		var out, errs strings.Builder
		if code := run(strings.Fields(args), strings.NewReader(""), &out, &errs); code != 2 || !strings.HasPrefix(errs.String(), "mercer: --learner: ") || out.Len() > 0 {
			t.Errorf("mercer %s: %d: %s%s", args, code, errs.String(), out.String())
		}
	}
}
