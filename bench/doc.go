// Package bench measures: Mercer's devices, other libraries and the machine's
// own limits in one run, and writes down what was found.
//
//	what is measured    Task: a case and the entries that compete in it    blas.go
//	how                 Runner: interleaved, with medians and spread       runner.go
//	what comes out      Result: cases, timings, machine, as JSON           result.go
//	how it reads        Table here; pages and pictures in bench/report
//
// A new benchmark is a type like BLAS, which makes Tasks and names the entrants,
// and a function like blasPage of bench/report, which chooses titles; runner,
// file format, tables and pictures serve every one. It has a Go benchmark as well,
// listed in bench_test.go, with names of key=value for benchstat.
//
// # How it is measured
//
// All entries of a case run in turn, round after round, each round beginning
// with another one, so that a disturbance of the machine meets all of them.
// Before the first round each has run once for its result, which is compared,
// and then long enough to be warm. A timing is the mean of as many runs as fill
// a set time; what puts the operands back between two runs is not timed. The
// median of the timings is what is reported, with the fastest and the slowest.
package bench
