package dataset_test

import (
	"fmt"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/dataset"
)

func Example() {
	train := `area,town,price
50,Ulm,200
,Bern,450
70,Bern,500
`
	t, err := dataset.ReadCSV("-", strings.NewReader(train)) // or the name of a file
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := dataset.Learn(t, dataset.Rules{Targets: []string{"price"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	x, err := e.Features(t)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.FeatureNames())
	fmt.Println(mat.Formatted(x))

	later, err := dataset.ReadCSV("-", strings.NewReader("town,area\nBern,60\nUlm,wide\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = e.Features(later)
	fmt.Println(err)
	// Output:
	// [area town=Bern town=Ulm]
	// ⎡50   0   1⎤
	// ⎢60   1   0⎥
	// ⎣70   1   0⎦
	// standard input:3: column "area": "wide" is not a number; correct it, or name it as a marker of missing values
}
