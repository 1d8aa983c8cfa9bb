// Package process reports what the running process has used of its machine, for the
// reports of `mercer fit --json` and its like, which `mercer bench import` reads, and which
// signal has interrupted it.
package process

// Used is what a process has used since it began. A value that the system does not report
// is 0 and omitted from JSON.
type Used struct {
	Processor float64 `json:"processor_seconds,omitempty"` // processor time of all threads, in user mode and in the kernel
	Peak      int64   `json:"peak_bytes,omitempty"`        // the largest resident set
}

// Read returns what this process has used until now.
func Read() Used { return read() }

// Status returns a line of /proc/self/status that is an amount of memory, such as
// "VmRSS:", in bytes (proc_pid_status(5)); false where there is no such file.
func Status(name string) (float64, bool) { return status(name) }
