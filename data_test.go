package mercer_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/testdata"
)

// TestDataSums holds the bundled data to the sums that its README states. It
// stands here because ./... leaves folders called testdata out.
func TestDataSums(t *testing.T) {
	readme, err := os.ReadFile("testdata/README.md")
	if err != nil {
		t.Fatal(err)
	}
	names, err := fs.Glob(testdata.FS, "*.csv")
	if err != nil || len(names) == 0 {
		t.Fatalf("no CSV files: %v", err)
	}
	for _, name := range names {
		data, err := testdata.FS.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%x  %s\n", sha256.Sum256(data), name)
		if !strings.Contains(string(readme), line) {
			t.Errorf("testdata/README.md does not say %q", line)
		}
	}
}
