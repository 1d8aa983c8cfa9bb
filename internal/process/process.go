// Package process reports the time and memory that the running process has used, for reports
// such as that of `mercer fit --json`, which `mercer bench import` reads, and the signal that
// has interrupted the process.
package process

// Used is the time and memory that a process has used since it began. A value that the system
// does not report is 0 and omitted from JSON.
type Used struct {
	Processor float64 `json:"processor_seconds,omitempty"` // processor time of all threads, in user mode and in the kernel
	Peak      int64   `json:"peak_bytes,omitempty"`        // the largest resident set
}

// Read returns the time and memory that this process has used so far.
func Read() Used { return read() }

// Status returns a line of /proc/self/status that is an amount of memory, such as
// "VmRSS:", in bytes (proc_pid_status(5)); false where there is no such file.
func Status(name string) (float64, bool) { return status(name) }
