package bench_test

import (
	"fmt"

	"github.com/mercer-go/mercer/internal/bench"
)

func ExampleSummarize() {
	s := bench.Summarize([]float64{3, 1, 2})
	fmt.Println(s.Median, s.Min, s.Max)
	// Output:
	// 2 1 3
}
