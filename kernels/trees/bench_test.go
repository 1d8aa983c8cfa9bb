package trees_test

import (
	"context"
	"testing"

	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels/objects"
	"github.com/mercer-go/mercer/kernels/trees"
)

// sentences returns the first n trees of the English Web Treebank, or skips the test.
func sentences(t testing.TB, n int) (texts []string) {
	for _, row := range required.Rows(t, "ewt_genre_trees.csv.gz")[:n] {
		texts = append(texts, row[4])
	}
	return texts
}

// TestTreebank checks that parsing and printing a sentence of the treebank does not change it.
func TestTreebank(t *testing.T) {
	for i, text := range sentences(t, 4078) {
		tree, err := trees.Parse(text)
		if err != nil || tree.String() != text {
			t.Fatalf("sentence %d: %v, %v", i+1, tree, err)
		}
	}
}

func BenchmarkSubtree(b *testing.B) {
	texts := sentences(b, 2000)
	for b.Loop() {
		if _, err := (trees.Subtree{Decay: 0.5}).Gram(context.Background(), texts, objects.Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(2000*2001/2), "ns/pair")
}
