package main

import (
	"os"
	"path/filepath"
)

// scratchName is what the folders of temporary files begin with.
const scratchName = "mercer-beam-folder-"

// scratch gives this process, and those that it starts, a folder of their own for
// temporary files, and removes it in the end: Beam leaves a file behind for each job
// that it runs in this process. It removes the folders of processes that were killed
// before they could, too. Where there is no room for a folder Beam will say so.
func scratch() (remove func()) {
	old, _ := filepath.Glob(filepath.Join(os.TempDir(), scratchName+"*"))
	for _, dir := range old {
		if release, ok := hold(dir); ok {
			os.RemoveAll(dir)
			release()
		}
	}
	dir, err := os.MkdirTemp("", scratchName+"*")
	if err != nil {
		return func() {}
	}
	release, ok := hold(dir)
	if _, err := os.Stat(dir); !ok || err != nil { // another process was faster
		return func() { os.Remove(dir) }
	}
	os.Setenv("TMPDIR", dir)
	return func() {
		os.RemoveAll(dir)
		release()
	}
}
