package pipeline

import (
	"encoding/json"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/message"
)

var update = flag.Bool("update", false, "write what Beam learns to testdata/encoders/golden.json of package dataset")

// TestGoldenEncoders checks the bits of the encoders that Beam learns from the test tables of package dataset, in
// one piece or in several that are merged in a random order.
func TestGoldenEncoders(t *testing.T) {
	const seed = 28
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	golden := filepath.Join("..", "..", "dataset", "testdata", "encoders", "golden.json")
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Table  string            `json:"table"`
		Rules  map[string]any    `json:"rules"`
		Learn  string            `json:"learn"`
		Others map[string]string `json:"others,omitempty"`
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	for i := range cases {
		c := &cases[i]
		var rules dataset.Rules
		data, err := json.Marshal(c.Rules)
		if err == nil {
			err = json.Unmarshal(data, &rules)
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(rules.Targets) == 0 || rules.Weight != "" || rules.Categorical != nil || rules.Labels && !rules.AnyLabels {
			continue // a pipeline has no parameters for these rules
		}
		for name, size := range map[string]int64{"beam": 1024, "beam, one piece": 0} {
			want, ok := c.Others[name]
			if !ok {
				want = c.Learn
			}
			p, err := Params{Inputs: []string{filepath.Join(filepath.Dir(golden), c.Table)}, Targets: rules.Targets, Drop: rules.Drop, Classify: rules.Labels, NoStandardize: !rules.Standardize, RefuseMissing: rules.RefuseMissing, Model: "m", PieceBytes: size}.withDefaults()
			if err != nil {
				t.Fatal(err)
			}
			e, err := encoderOf(t, p, r)
			var got string
			var dataErr *dataset.Error
			if errors.As(err, &dataErr) {
				relative := *dataErr
				relative.Source = filepath.Base(dataErr.Source)
				got = "error: " + message.Text(&relative, parameter)
			} else if err != nil {
				got = "error: " + err.Error()
			} else if data, err = json.Marshal(e); err != nil {
				t.Fatal(err)
			} else {
				got = string(data)
			}
			switch {
			case *update:
				delete(c.Others, name)
				if got != c.Learn {
					if c.Others == nil {
						c.Others = map[string]string{}
					}
					c.Others[name] = got
				}
			case got != want:
				t.Errorf("%s, %v, pieces of %d bytes:\ngot  %s\nwant %s", c.Table, c.Rules, size, got, want)
			}
		}
	}
	if *update {
		text, err := json.MarshalIndent(cases, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
