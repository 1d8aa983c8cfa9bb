// Package bench measures Mercer's devices, other libraries and the limits of the machine in one run, and reports
// the result.
//
//	options             Kind, Benchmark: options and defaults              kind.go
//	cases               Task: a case and the entries that compete in it    blas.go, crossover.go, …
//	timing              Runner: interleaved, with medians and spread       runner.go
//	measurements        Result: cases, timings, machine, as JSON           result.go
//	reports             Report: Tables, as text, Markdown or HTML          report.go
//
// # A new benchmark
//
// Add an entry to Kinds: its name, its options with their defaults, and a function like runBLAS, which makes the
// implementations and the Tasks of a Benchmark and ends with
//
//	return b.Runner.Run(ctx, "kind", implementations, tasks)
//
// A Case names the parameters in which cells differ, such as {precision, threads, n}, but not the implementation.
// An Implementation competes in every case; its fields Device, Method and Threads describe it.
//
// An Entry is an implementation in a case. Run is timed; Before, Check and Metrics are not. Took is set for an
// implementation that runs in another process and reports its own time. Metrics have the names of result.go
// (residualMetric, rmseMetric, …) and are finite, because JSON has no NaN. A wrong result (Check) or the failure of an
// entry ends the measurement. If an Optional entry fails, such as a library that runs out of memory, the cell stores
// the reason, and the other entries continue. An entry that cannot be measured has only a name and a Reason.
//
// A Report consists of a sentence with the main result and of Tables. The map reports (report.go) holds the function
// that makes the Report of each kind. A Table of a quantity (secondsQuantity, rateQuantity, metric(residualMetric,
// "")) has a column for each implementation, a row for each value of one parameter, and a Chart of the same values.
//
// The command is generated from the Kind. Add its help to benchTexts in cmd/mercer, and a Go benchmark with a name
// of key=value pairs to the list in bench_test.go.
//
// # Method of measurement
//
// The entries of a case run one after the other, in rounds, so that a disturbance of the machine affects all entries.
// Each round starts with a different entry. Before the first round each entry runs once and its result is checked.
// Then the entry runs until processor and threads are warm. A timing is the mean time of several runs; their number is
// chosen so that they take a given time in all. Restoring the operands between two runs is not timed.
//
// # Stored results
//
// bench/results holds the newest measurement of each kind and size in the format of --json. docs/results.md has
// the tables of all these measurements, written by go generate ./internal/bench. ReadGoBench and ReadRuns convert
// the output of go test -bench and the records of whole programs to measurements (mercer bench import).
package bench

//go:generate sh -c "cd ../../bench && go run ../cmd/mercer bench report --out ../docs/results.md results/*.json"
