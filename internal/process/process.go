// Package process reports the time and memory that the running process has used, and the signal that has
// interrupted the process.
package process

// Used holds the time and memory that a process has used since its start. A value that the system
// does not report is 0 and is omitted from JSON.
type Used struct {
	Processor float64 `json:"processor_seconds,omitempty"` // processor time of all threads, in user mode and in the kernel
	Peak      int64   `json:"peak_bytes,omitempty"`        // largest size of the resident set, in bytes
}

// Read returns the time and memory that this process has used so far.
func Read() Used { return read() }

// Status returns the memory, in bytes, in the line of /proc/self/status that begins with name, such
// as "VmRSS:" (proc_pid_status(5)). It returns false if the file or the line does not exist.
func Status(name string) (float64, bool) { return status(name) }
