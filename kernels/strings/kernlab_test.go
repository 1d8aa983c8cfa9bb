package strings_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	gostrings "strings"
	"testing"

	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels/objects"
	"github.com/mercer-go/mercer/kernels/strings"
)

// TestKernlab compares the spectrum kernel with stringdot of R's kernlab on sequences of DNA.
func TestKernlab(t *testing.T) {
	required.Slow(t, "kernlab", "starts R")
	rscript := required.Kernlab(t)
	texts, _ := labeled(t, "promoters_dna.csv")
	texts = texts[:30]
	const script = `
suppressMessages(library(kernlab))
s <- as.list(readLines(file("stdin")))
for (n in 1:6) for (norm in c(FALSE, TRUE)) {
	k <- stringdot(type = "spectrum", length = n, normalized = norm)
	cat(sprintf("%.17g", kernelMatrix(k, s)), sep = "\n")
	cat("\n")
}`
	path := filepath.Join(t.TempDir(), "spectrum.R")
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(rscript, path)
	cmd.Stdin, cmd.Stderr = gostrings.NewReader(gostrings.Join(texts, "\n")+"\n"), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	values := bytes.Fields(out)
	// Append a character, because kernlab treats the end of a string as a character.
	for i := range texts {
		texts[i] += "$"
	}
	if want := 2 * 6 * len(texts) * len(texts); len(values) != want {
		t.Fatalf("%d values, want %d", len(values), want)
	}
	for length := 1; length <= 6; length++ {
		for _, raw := range []bool{true, false} {
			gram, err := strings.Spectrum{Length: length, Raw: raw}.Gram(context.Background(), texts, objects.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for i, got := range gram.Data {
				var want float64
				if _, err := fmt.Sscan(string(values[i]), &want); err != nil {
					t.Fatal(err)
				}
				// The values are integers, or integers divided by two rounded square roots.
				if !isNear(got, want, 10) {
					t.Fatalf("length %d, raw %v: value %d is %v, kernlab has %v", length, raw, i, got, want)
				}
			}
			values = values[len(gram.Data):]
		}
	}
}
