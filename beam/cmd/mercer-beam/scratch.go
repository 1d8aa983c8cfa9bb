package main

import (
	"os"
	"path/filepath"
)

// scratchName is the name prefix of the folders of temporary files.
const scratchName = "mercer-beam-folder-"

// scratch creates a folder for the temporary files of this process and its children, which the function remove
// deletes. It also removes the folders of earlier processes that were killed.
func scratch() (remove func()) {
	stale, _ := filepath.Glob(filepath.Join(os.TempDir(), scratchName+"*"))
	for _, dir := range stale {
		if release, ok := lockFolder(dir); ok {
			os.RemoveAll(dir)
			release()
		}
	}
	dir, err := os.MkdirTemp("", scratchName+"*")
	if err != nil {
		return func() {}
	}
	release, ok := lockFolder(dir)
	if _, err := os.Stat(dir); !ok || err != nil { // another process has locked or removed the folder
		return func() { os.Remove(dir) }
	}
	os.Setenv("TMPDIR", dir)
	return func() {
		os.RemoveAll(dir)
		release()
	}
}
