// Package process tells what the running process has taken of its machine, for
// programs that say so themselves when they end: `mercer fit --json` and its like,
// whose output `mercer bench import` makes a measurement of.
package process

// Used is what a process has taken since it began. What the system does not tell is
// 0, and left out of JSON.
type Used struct {
	Processor float64 `json:"processor_seconds,omitempty"` // of all threads, in the program and in the kernel for it
	Peak      int64   `json:"peak_bytes,omitempty"`        // the most memory that it held at once: its largest resident set
}

// Read tells what this process has taken until now.
func Read() Used { return read() }
