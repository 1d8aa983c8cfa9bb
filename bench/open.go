package bench

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mercer-go/mercer/backend"
)

// openDevices opens devices by name, each once, whatever names it has. On a failure it
// returns those that were opened before as well.
func openDevices(names []string, c backend.Config) (list []backend.Device, err error) {
	for _, name := range names {
		d, err := backend.Open(name, c)
		if err != nil {
			return list, err
		}
		if slices.ContainsFunc(list, sameDevice(d)) {
			d.Close()
			continue
		}
		list = append(list, d)
	}
	return list, nil
}

func sameDevice(d backend.Device) func(backend.Device) bool {
	return func(o backend.Device) bool { return o.Info().Device == d.Info().Device }
}

// precisions lists those that can be measured.
func precisions() []string { return []string{"float64", "float32"} }

// checkNames refuses names that are not known.
func checkNames(kind, what string, given, known []string) error {
	for _, name := range given {
		if !slices.Contains(known, name) {
			return fmt.Errorf("bench: %s: no %s is called %q; there are: %s", kind, what, name, strings.Join(known, ", "))
		}
	}
	return nil
}
