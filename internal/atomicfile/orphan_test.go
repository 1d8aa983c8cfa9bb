package atomicfile_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mercer-go/mercer/internal/atomicfile"
)

// halfWritten is an environment variable. If it names a file, the test binary writes half of this file and waits.
const halfWritten = "MERCER_TEST_HALF_WRITTEN"

func TestMain(m *testing.M) {
	if path := os.Getenv(halfWritten); path != "" {
		err := atomicfile.Write(path, func(w io.Writer) error {
			if _, err := io.WriteString(w, "half"); err != nil {
				return err
			}
			fmt.Println("written")
			_, err := io.ReadAll(os.Stdin)
			return err
		})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestOrphansAreRemoved checks that Write and Check remove the temporary file of a killed process, but no other file.
func TestOrphansAreRemoved(t *testing.T) {
	for name, next := range map[string]func(path string) error{
		"write": func(path string) error { return atomicfile.WriteBytes(path, []byte("new")) },
		"check": atomicfile.Check,
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "f")
			otherFiles := []string{".f12", ".fxyz", ".g123456789012345678", "f123456789012345678"}
			for _, name := range otherFiles {
				if err := os.WriteFile(filepath.Join(folder, name), nil, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			executable, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			c := exec.Command(executable)
			c.Env = append(os.Environ(), halfWritten+"="+path)
			stdin, err := c.StdinPipe() // the process waits while stdin is open
			if err != nil {
				t.Fatal(err)
			}
			defer stdin.Close()
			stdout, err := c.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			line := make([]byte, len("written"))
			if _, err := io.ReadFull(stdout, line); err != nil || string(line) != "written" {
				t.Fatalf("%q, %v", line, err)
			}
			orphans := func() []string {
				list, err := filepath.Glob(filepath.Join(folder, ".f??????????????*"))
				if err != nil {
					t.Fatal(err)
				}
				return list
			}
			if err := next(path); err != nil {
				t.Fatal(err)
			}
			if got := orphans(); len(got) != 1 {
				t.Errorf("beside a process that is writing there is %q, want its file alone", got)
			}
			if err := c.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = c.Wait()
			if len(orphans()) != 1 {
				t.Fatal("the killed process has left no file, so that there is nothing to test")
			}
			if err := next(path); err != nil {
				t.Fatal(err)
			}
			if got := orphans(); len(got) != 0 {
				t.Errorf("%q is left", got)
			}
			for _, name := range otherFiles {
				if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestConcurrentWritersOfOneName checks that no writer removes the temporary file of another writer.
func TestConcurrentWritersOfOneName(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "f")
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			text := strings.Repeat(fmt.Sprint(i), 1000)
			for range 20 {
				if err := atomicfile.WriteBytes(path, []byte(text)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	data, err := os.ReadFile(path)
	if err != nil || len(data) != 1000 || strings.Trim(string(data), string(data[:1])) != "" {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	checkEntries(t, folder, "f")
}
