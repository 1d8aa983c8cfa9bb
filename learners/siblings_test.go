package learners_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/learners"
)

// TestPageListsSharedDefaults checks that docs/learners.md lists the learners with each default below.
func TestPageListsSharedDefaults(t *testing.T) {
	page, err := os.ReadFile("../docs/learners.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"intercept", "epochs", "shuffle"} {
		namesByDefault := map[string][]string{} // the names of the learners with each default
		for _, d := range learners.Catalogue() {
			if p, ok := d.Parameter(name); ok {
				namesByDefault[p.Default] = append(namesByDefault[p.Default], d.Name)
			}
		}
		for _, value := range slices.Sorted(maps.Keys(namesByDefault)) {
			slices.Sort(namesByDefault[value])
			if row := fmt.Sprintf("| %s | %s | %s |", name, value, strings.Join(namesByDefault[value], ", ")); !strings.Contains(string(page), row) {
				t.Errorf("docs/learners.md lacks the row %s", row)
			}
		}
	}
}
