// Command gpurun tests and measures Mercer on a machine that has an NVIDIA driver
// and need not have Go. `make gpu-bundle` puts it into build/gpu with what it runs:
//
//	cuda.test     backendtest and solvertest on the GPU, and the faults
//	driver.test   how the libraries are found
//	mercer        bench devices, bench fit, bench report
//	run           the script that starts it
//
// It writes results.json, the measurements and their pages, and prints a short
// table last. It fails when a test has failed or a measurement could not be made.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gpurun: "+err.Error())
		os.Exit(1)
	}
}

// Schema is the version of results.json.
const Schema = 1

// report is results.json.
type report struct {
	Schema  int       `json:"schema"`
	Kind    string    `json:"kind"` // gpu-bundle
	Size    string    `json:"size"`
	Started time.Time `json:"started"`
	Seconds float64   `json:"seconds"`
	Machine machine   `json:"machine"`
	Steps   []*step   `json:"steps"`
	Figures []figure  `json:"figures"`
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("gpurun", flag.ContinueOnError)
	bundle := flags.String("bundle", ".", "the folder of the bundle")
	size := flags.String("size", "quick", "tiny (for the simulated libraries), quick (minutes), full (with the sizes of the targets)")
	folder := flags.String("out", "", "the folder to write to")
	check := flags.String("check", "", "make one check and print it: start-up, leaks")
	fits := flags.Int("fits", 2000, "fits of the check of leaks")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *check != "" {
		return checks(ctx, *check, *fits, out)
	}
	if !slices.Contains(sizes, *size) {
		return fmt.Errorf("--size: %q is not known; there are: %s", *size, strings.Join(sizes, ", "))
	}
	r := &report{Schema: Schema, Kind: "gpu-bundle", Size: *size, Started: time.Now()}
	if *folder == "" {
		*folder = filepath.Join(*bundle, "results-"+r.Started.UTC().Format("20060102-150405"))
	}
	if err := os.MkdirAll(*folder, 0o777); err != nil {
		return err
	}
	w := &worker{ctx: ctx, bundle: *bundle, folder: *folder, out: out}
	r.Machine = w.machine()
	fmt.Fprintf(out, "%s, driver %s, %s\n", r.Machine.GPU, r.Machine.Driver, r.Machine.Devices)
	if r.Machine.Missing != "" {
		return fmt.Errorf("there is no GPU to measure: %s", r.Machine.Missing)
	}
	for _, s := range steps(*size) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		fmt.Fprintf(out, "%s …\n", s.Name)
		w.do(s)
		r.Steps = append(r.Steps, s)
	}
	r.Seconds = time.Since(r.Started).Seconds()
	r.Figures = figures(*size, r.Steps)
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	path := filepath.Join(*folder, "results.json")
	if err := os.WriteFile(path, append(text, '\n'), 0o666); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s\n%s", r.table(), path+"\n")
	for _, s := range r.Steps {
		if s.Outcome != passed {
			return fmt.Errorf("%s: %s", s.Name, s.Outcome)
		}
	}
	return nil
}

// table is the short table.
func (r *report) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-34s %-8s %8s  %s\n", "", "", "seconds", "")
	for _, s := range r.Steps {
		fmt.Fprintf(&b, "%-34s %-8s %8.1f  %s\n", s.Name, s.Outcome, s.Seconds, s.Summary)
	}
	for _, f := range r.Figures {
		value, met := "–", "not taken"
		if f.Value != nil {
			value, met = fmt.Sprintf("%.3g %s", *f.Value, f.Unit), "missed"
			if f.Met {
				met = "met"
			}
		}
		fmt.Fprintf(&b, "%-50s %-14s %-12s %s\n", f.Name, f.Target, value, met)
	}
	return b.String()
}
