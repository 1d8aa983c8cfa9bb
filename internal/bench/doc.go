// Package bench measures: Mercer's devices, other libraries and the machine's
// own limits in one run, and writes down what was found.
//
//	what can be asked   Kind, Benchmark: options and defaults              kind.go
//	what is measured    Task: a case and the entries that compete in it    blas.go, crossover.go, …
//	how                 Runner: interleaved, with medians and spread       runner.go
//	what comes out      Result: cases, timings, machine, as JSON           result.go
//	how it reads        Report: Tables, as text, Markdown or HTML         report.go
//
// # A new benchmark
//
// It is an entry of Kinds: its name, its options with their defaults, and a function like
// runBLAS, which makes the implementations and the Tasks of a Benchmark and ends with
//
//	return b.Runner.Run(ctx, "kind", implementations, tasks)
//
// and Result.Notes for what a reader must know. A Case names all in which cells differ but who
// competes: {precision, threads, n}. An Implementation is who competes, whatever the
// case; Device, Method and Threads say of what it is made.
//
// An Entry is an implementation in a case. Run is timed; Before, Check, Metrics are not.
// Took is for an implementation that runs in another process
// and reports its own time. Metrics have the names of result.go (residualMetric,
// rmseMetric, …) and are finite: JSON has no NaN. A wrong result ends the measurement
// (Check), and so does an entry that fails, unless it is Optional, as peers are
// that may run out of memory: the reason is kept then and the others go on.
// An entry that takes no part has a Reason, and nothing else but its name.
//
// A Report is the answer in a sentence and the Tables of a Result, made by a function
// for each kind that is listed in reports (report.go). A Table of a quantity
// (secondsQuantity, rateQuantity, metric(residualMetric, "")) has a
// column for each implementation, a row for each value of one parameter, and a Chart of
// the same values on logarithmic axes. Text, Markdown and package bench/report (HTML)
// write any Report.
//
// The command follows from the Kind: an entry of benchTexts in cmd/mercer is its help.
//
// There is a Go benchmark of it as well, listed in bench_test.go, with names of
// key=value for benchstat.
//
// # How it is measured
//
// All entries of a case run in turn, round after round, each round beginning
// with another one, so that a disturbance of the machine meets all of them.
// Before the first round each has run once for its result, which is compared,
// and then long enough to be warm. A timing is the mean of as many runs as fill
// a set time; what puts the operands back between two runs is not timed. The
// median of the timings is what is reported, with the fastest and the slowest.
//
// # What is kept
//
// bench/results holds the newest measurement of each kind and size as --json wrote it.
// docs/results.md has all their tables, written by go generate ./bench; a test fails
// when it is not current. ReadGoBench and ReadRuns make measurements of the output of
// go test -bench and of whole programs (mercer bench import).
package bench

//go:generate sh -c "cd ../../bench && go run ../cmd/mercer bench report --out ../docs/results.md results/*.json"
