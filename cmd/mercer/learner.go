package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
)

// learnerFlags are the flags of all commands that fit a learner.
type learnerFlags struct {
	tableFlags
	learner    string
	paramTexts map[string]string  // values of the learner's parameters in the call
	settings   *learners.Settings // the values in paramTexts, parsed by the method check
	textbook   bool               // --textbook: neither standardize the numbers nor shuffle the rows
	stream     bool               // the table is read in passes; only fit sets it

	models  []string                         // model files to draw, instead of fitting a learner
	several bool                             // --learner accepts a comma-separated list of names
	takes   func(learners.Description) error // returns an error for learners that the command does not accept; may be nil
}

// tableFlags are the flags about the roles of the columns of a table.
type tableFlags struct {
	targets, categorical []string
	drop                 []string
	weightFlags
	task, missing string
	noStandardize bool
	seed          uint64
	gram          bool // the table is a Gram matrix: --kernel 'precomputed()'
}

func (f *tableFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringArrayVar(&f.targets, "target", nil, "`COLUMN` to learn; may be given several times")
	flags.BoolVar(&f.noStandardize, "no-standardize", false, "do not standardize numbers")
	flags.StringVar(&f.missing, "missing", "", "missing cells: impute or refuse (default: impute)")
	flags.StringSliceVar(&f.drop, "drop", nil, "`COLUMNS` to leave out, such as identifiers and dates")
	flags.StringSliceVar(&f.categorical, "categorical", nil, "`COLUMNS` of CSV whose cells are categories, even if they are numbers")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of all random choices")
}

func (f *tableFlags) check() error {
	switch {
	case slices.Contains(f.targets, ""):
		return usagef("--target: the name of the column is empty")
	case duplicate(f.targets) != "":
		return usagef("--target: %q is given twice", duplicate(f.targets))
	case f.missing != "" && f.missing != "impute" && f.missing != "refuse":
		return usagef("--missing: want impute or refuse, got %q", f.missing)
	}
	if slices.Contains(f.drop, "") {
		return usagef("--drop: the name of a column is empty")
	}
	return f.weightFlags.check()
}

func (f *tableFlags) rules(task learners.Task) dataset.Rules {
	return dataset.Rules{
		Drop: f.drop, Weight: f.weight, Categorical: f.categorical,
		Targets: f.targets, Labels: task == learners.Classification, AnyLabels: f.task == string(learners.Classification),
		Standardize: !f.noStandardize && !f.gram, RefuseMissing: f.missing == "refuse", Gram: f.gram,
	}
}

// defaultLearner is the learner of mercer fit if none is named.
const defaultLearner = "kernel-ridge"

// learnerName is the value of --learner: the name of a learner that the command supports.
type learnerName struct{ *learnerFlags }

func (l learnerName) Type() string { return "string" }

func (l learnerName) String() string {
	if l.learnerFlags == nil { // package pflag calls String on a zero value
		return ""
	}
	return l.learner
}

func (l learnerName) Set(text string) error {
	names := []string{text}
	if l.several {
		names = strings.Split(text, ",")
	}
	for _, name := range names {
		if strings.HasPrefix(name, "--") {
			return fmt.Errorf("needs a value, but the next argument is %s", name)
		}
		d, err := learners.Find(strings.TrimSpace(name))
		if err != nil {
			return fmt.Errorf("no learner is called %q%s; \"mercer learners\" lists all learners", name, didYouMean("", name, l.names()))
		}
		if l.takes != nil {
			if err := l.takes(d); err != nil {
				return err
			}
		}
	}
	l.learner = text
	return nil
}

// names returns the names of the learners that the command accepts.
func (f *learnerFlags) names() []string {
	return learnersThat(func(d learners.Description) bool { return f.takes == nil || f.takes(d) == nil })
}

// description returns the description of the learner of --learner, whose name has been checked.
func (f *learnerFlags) description() learners.Description {
	d, _ := learners.Find(f.learner)
	return d
}

// add adds the flags to a command. --help shows only the parameters of the learner that the command line names.
func (f *learnerFlags) add(c *cobra.Command) {
	if f.paramTexts = map[string]string{}; f.takes == nil {
		f.learner = defaultLearner
	}
	flags := c.Flags()
	flags.Var(learnerName{f}, "learner", "`NAME` of the learner; --learner NAME --help shows its flags")
	f.tableFlags.add(flags)
	f.weightFlags.add(flags)
	flags.StringVar(&f.task, "task", "", "regression or classification, for learners of both (default: classification of texts, regression of numbers)")
	flags.BoolVar(&f.textbook, "textbook", false, "as in the examples of textbooks: --no-standardize and --no-shuffle together")
	for _, d := range append([]learners.Description{f.description()}, learners.Catalogue()...) {
		for _, p := range d.Parameters {
			if p.Name == "seed" || flags.Lookup(p.Name) != nil {
				continue
			}
			flag := flags.VarPF(&parameterFlag{f.paramTexts, p.Name, p.Type}, p.Name, "", p.Help)
			if p.Type == learners.BoolType {
				flag.NoOptDefVal = "true"
				negation := flags.VarPF(&parameterFlag{f.paramTexts, p.Name, "no"}, "no-"+p.Name, "", "the opposite of --"+p.Name)
				negation.NoOptDefVal = "true"
			}
		}
	}
	beforeHelp(c, func() { f.describe(c) })
}

// parameterFlag is the value of a flag for a parameter of the learner.
type parameterFlag struct {
	paramTexts map[string]string
	name, kind string // kind is "no" for a flag --no-NAME, which negates --NAME
}

func (p *parameterFlag) String() string { return "" }

func (p *parameterFlag) Type() string {
	switch p.kind {
	case "no", learners.BoolType:
		return "bool"
	case learners.KernelType:
		return "TEXT"
	case kernels.Integer:
		return "int"
	}
	return p.kind
}

func (p *parameterFlag) Set(text string) error {
	if p.name == cacheName && !strings.Contains(text, "{}") { // mercer plot validation replaces {} by each value later
		var err error
		if text, err = mebibytes(text); err != nil {
			return err
		}
	}
	if p.Type() == "bool" {
		value, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("want true or false, got %q", text)
		}
		text = strconv.FormatBool(value != (p.kind == "no"))
		if earlier, repeated := p.paramTexts[p.name]; repeated && earlier != text {
			return fmt.Errorf("contradicts an earlier flag; give one of --%[1]s and --no-%[1]s", p.name)
		}
	}
	p.paramTexts[p.name] = text
	return nil
}

// cacheName is the only parameter whose flag accepts a size such as 2GiB. Learners take it in MiB.
const cacheName = "cache"

// describe prepares a command for --help: the descriptions and flags of the learners that the call names.
func (f *learnerFlags) describe(c *cobra.Command) {
	flags := c.Flags()
	learnerNames := f.names()
	switch {
	case flags.Lookup("learner").Hidden || len(f.models) > 0: // the command has no --learner
		learnerNames = nil
	case flags.Changed("learner"):
		learnerNames = strings.Split(f.learner, ",")
	}
	var list []learners.Description
	hasClasses := false
	for _, name := range learnerNames {
		d, _ := learners.Find(strings.TrimSpace(name))
		list, hasClasses = append(list, d), hasClasses || d.Supports(learners.Classification)
		if flags.Changed("learner") {
			c.Long += "\n\n" + strings.TrimSpace(entry("learner  ", d.Name)+entry("for      ", tasks(d))+entry("formula  ", d.Formula))
		}
	}
	flags.Lookup("task").Hidden = !hasClasses
	if !flags.Changed("learner") {
		list = nil
	}
	if len(learnerNames) > 0 && list == nil {
		c.Long += "\n\n" + wrapped(fmt.Sprintf("The parameters of a learner are flags too: %s --learner NAME --help lists them. Learners: %s.", c.CommandPath(), strings.Join(learnerNames, ", ")), terminalWidth)
	}
	lookup := func(name string) (p learners.Parameter, s *learners.Settings, has bool) {
		for _, d := range list {
			if p, has = d.Parameter(name); has {
				s, _ = d.Parse(f.paramTexts)
				break
			}
		}
		return p, s, has
	}
	_, _, hasKernel := lookup("kernel")
	if flag := flags.Lookup("tree"); flag != nil {
		flag.Hidden = !hasKernel
	}
	if flag := flags.Lookup("text"); flag != nil && list != nil && !hasKernel {
		flag.Usage = "`COLUMN` of texts, of whose n-grams --tfidf makes features"
	}
	if hasKernel && flags.Lookup("text") != nil {
		c.Long += "\n\n" + kernelHelp
	}
	flags.VisitAll(func(flag *pflag.Flag) {
		if _, ok := flag.Value.(*parameterFlag); !ok {
			return
		}
		name := strings.TrimPrefix(flag.Name, "no-")
		p, s, has := lookup(name)
		flag.Hidden = !has || name != flag.Name && p.Default != "true" || s != nil && f.givesFlagOf(p.When) && !s.Effective(p)
		if has && name == flag.Name {
			flag.Usage = p.Help
			if p.Type != learners.BoolType && p.Type != learners.KernelType {
				flag.Usage += ": " + p.Rule
			}
			if name == cacheName {
				flag.Usage += ", or a size such as 2GiB"
			}
			if p.When != nil {
				flag.Usage += "; " + p.When.Of("--")
			}
			flag.Usage += fmt.Sprintf(" (default: %s)", cmp.Or(p.Default, "none"))
		}
	})
}

// kernelHelp is the text about kernels in the help of a learner.
var kernelHelp = wrapped("Kernels: "+kernelNames()+", and sums, products and scalings of them, such as '0.5*linear() + gaussian(sigma=3)'; mercer kernels describes them.", terminalWidth) +
	"\n\n" + wrapped("With --text or --tree one column is the whole input, and --kernel must be a kernel on texts or trees, or a weighted sum of these kernels.", terminalWidth) +
	"\n\n" + gramHelp

// givesFlagOf reports whether the call gives the flag of w.Parameter.
func (f *learnerFlags) givesFlagOf(w *learners.When) bool {
	if w == nil {
		return false
	}
	_, isSet := f.paramTexts[w.Parameter]
	return isSet
}

// check returns an error for the first wrong flag.
func (f *learnerFlags) check(command string) error {
	d := f.description()
	switch {
	case f.learner == "":
		return usagef("%s needs --learner NAME: %s", command, strings.Join(f.names(), ", "))
	case f.textbook && f.paramTexts["shuffle"] == "true":
		return usagef("--shuffle: contradicts --textbook, which keeps the rows in their order; leave one of them out")
	case len(f.targets) == 0 && !d.Supports(learners.Novelty):
		return usagef("%s needs --target COLUMN: the column to learn", command)
	case len(f.targets) > 1 && !d.Outputs && duplicate(f.targets) == "":
		return usagef("--target: %s learns one target, but %d are named", f.learner, len(f.targets))
	case f.task != "" && !d.Supports(learners.Task(f.task)):
		var tasks []string
		for _, t := range d.Tasks {
			tasks = append(tasks, string(t))
		}
		return usagef("--task: %s does not support %q; it supports %s", f.learner, f.task, strings.Join(tasks, " and "))
	}
	if err := f.tableFlags.check(); err != nil {
		return err
	}
	var err error
	if f.settings, err = f.parse(); err == nil {
		_, err = f.settings.Fitter("")
	}
	return f.flagged(err)
}

// duplicate returns a name that occurs more than once in the list, or "".
func duplicate(names []string) string {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return name
		}
	}
	return ""
}

// parameters returns the learner's parameters that flags set, and the seed if the learner has a seed.
func (f *learnerFlags) parameters(d learners.Description) map[string]string {
	paramTexts := map[string]string{}
	for name, text := range f.paramTexts {
		paramTexts[name] = text
	}
	if p, has := d.Parameter("shuffle"); f.textbook && has && paramTexts["shuffle"] == "" && (p.When == nil || p.Default == "true") {
		paramTexts["shuffle"] = "false"
	}
	if _, has := d.Parameter("seed"); has {
		paramTexts["seed"] = strconv.FormatUint(f.seed, 10)
	}
	return paramTexts
}

// parse parses the learner's parameters in the flags.
func (f *learnerFlags) parse() (*learners.Settings, error) {
	d := f.description()
	return d.Parse(f.parameters(d))
}

// fitter returns the learner that the flags describe.
func (f *learnerFlags) fitter(task learners.Task) (learners.Fitter, error) {
	s, err := f.parse()
	if err != nil {
		return nil, f.flagged(err)
	}
	fit, err := s.Fitter(task)
	return fit, f.flagged(err)
}

// flagged converts a *learners.ParameterError to a usage error that names the flag.
func (f *learnerFlags) flagged(err error) error {
	d := f.description()
	if paramErr := (*learners.ParameterError)(nil); errors.As(err, &paramErr) {
		if paramErr.When != nil {
			return usagef("--%s: works %s", paramErr.Parameter, paramErr.When.Of("--"))
		}
		hint, flag, paramTexts := "", paramErr.Parameter, f.parameters(d)
		if _, has := d.Parameter(flag); !has && paramTexts[flag] == "false" {
			flag = "no-" + flag
		}
		if p, _ := d.Parameter(paramErr.Parameter); p.Type == learners.ChoiceType && !slices.Contains(p.Choices, paramTexts[paramErr.Parameter]) {
			hint = didYouMean("", paramTexts[paramErr.Parameter], p.Choices)
		}
		return usagef("--%s: %s%s", flag, oneLine(errors.New(paramErr.Rule)), hint)
	}
	return err
}

// taskFor returns the learner's only task, or the task of --task, or the task that the cells of the target suggest.
func (f *learnerFlags) taskFor(t *dataset.Table) learners.Task {
	d := f.description()
	switch {
	case f.task != "":
		return learners.Task(f.task)
	case len(d.Tasks) > 1 && d.Supports(learners.Classification) && len(f.targets) == 1 && t.OnlyTexts(f.targets[0]):
		return learners.Classification
	}
	return d.Tasks[0]
}

// assumed returns a note with the task and the flag that changes it if the task was guessed, that is, if --task is not
// given, and the only values of the target are 0 and 1, or −1 and 1. Otherwise it returns "".
func (f *learnerFlags) assumed(t *dataset.Table, task learners.Task) string {
	d := f.description()
	if f.task != "" || !d.Supports(learners.Regression) || !d.Supports(learners.Classification) {
		return ""
	}
	return assumed(t, f.targets, task)
}

func assumed(t *dataset.Table, targets []string, task learners.Task) string {
	if len(targets) != 1 {
		return ""
	}
	values, err := t.Numbers(targets[0])
	if err != nil {
		return ""
	}
	distinct := map[float64]bool{}
	for _, v := range values {
		if distinct[v] = true; len(distinct) > 2 {
			return ""
		}
	}
	if len(distinct) != 2 || !distinct[1] || !distinct[0] && !distinct[-1] {
		return ""
	}
	otherTask := learners.Classification
	if task == otherTask {
		otherTask = learners.Regression
	}
	return fmt.Sprintf("%s, assumed because the target has only two numbers: --task %s changes it", task, otherTask)
}

func (f *learnerFlags) rules(task learners.Task) dataset.Rules {
	r := f.tableFlags.rules(task)
	r.Standardize = r.Standardize && !f.textbook
	return r
}

// options returns the options of a fit to a table encoded by enc.
func (f *learnerFlags) options(enc *dataset.Encoder, p *progress) learners.Options {
	return learners.Options{Classes: enc.Classes(), Progress: p.report, Prove: true}
}

// learnersThat lists the names of the learners d for which supports(d) is true.
func learnersThat(supports func(learners.Description) bool) (names []string) {
	for _, d := range learners.Catalogue() {
		if supports(d) {
			names = append(names, d.Name)
		}
	}
	return names
}

// streamLearners lists the learners that --stream supports: they can read a table in passes.
func streamLearners() []string { return learnersThat(learners.Description.ReadsRows) }

// checkpointLearners lists the learners that can save the state of an unfinished fit (--checkpoint).
func checkpointLearners() []string { return learnersThat(learners.Description.Checkpoints) }

// epochTrace records each epoch of a fit, for --trace.
type epochTrace struct {
	learner string
	epochs  []learners.Epoch
}

// hasEpochs returns an error if the learner is not trained in epochs.
func hasEpochs(d learners.Description) error {
	if d.Traces() {
		return nil
	}
	return fmt.Errorf("%s has no epochs; the learners with epochs are: %s", d.Name, strings.Join(learnersThat(learners.Description.Traces), ", "))
}

func (t *epochTrace) add(e learners.Epoch) { t.epochs = append(t.epochs, e) }

// check returns an error if the fit recorded no epochs.
func (t *epochTrace) check() error {
	if len(t.epochs) == 0 {
		return usagef("this fit of %s recorded no epochs: choose another --method", t.learner)
	}
	return nil
}

// keys returns a hash of each row of the table if the learner draws rows by their hashes, and otherwise nil.
func (f *learnerFlags) keys(enc *dataset.Encoder, t *dataset.Table) ([]uint64, error) {
	if !f.description().ReadsRows() {
		return nil, nil
	}
	return enc.Keys(t)
}

// kernelNames lists the kernels for the help texts.
func kernelNames() string {
	var names []string
	for _, d := range kernels.Catalogue() {
		names = append(names, d.Example)
	}
	return strings.Join(names, ", ")
}

// wrapped breaks a text at spaces into lines of at most width columns.
func wrapped(text string, width int) string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return strings.Join(append(lines, line), "\n")
}
