package strings_test

import (
	"context"
	"testing"

	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels/objects"
	"github.com/mercer-go/mercer/kernels/strings"
)

// messages returns the first n texts of the SMS collection, or skips the test.
func messages(t testing.TB, n int) (texts []string) {
	for _, row := range required.Rows(t, "sms_spam.csv")[:n] {
		texts = append(texts, row[0])
	}
	return texts
}

// BenchmarkSubsequence times the Gram matrix of 500 messages.
func BenchmarkSubsequence(b *testing.B) {
	texts := messages(b, 500)
	for b.Loop() {
		if _, err := (strings.Subsequence{Length: 3, Decay: 0.5}).Gram(context.Background(), texts, objects.Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(500*501/2), "ns/pair")
}

func BenchmarkSpectrum(b *testing.B) {
	texts := messages(b, 5574)
	for b.Loop() {
		if _, err := (strings.Spectrum{Length: 3}).Gram(context.Background(), texts, objects.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
