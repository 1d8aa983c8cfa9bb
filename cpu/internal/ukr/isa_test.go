package ukr

import (
	"bufio"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// implied lists the features in "Requires" lines of the assembly that every amd64 processor has.
// MMX+ is the name in these lines for the feature of PREFETCHT0, which is part of SSE.
var implied = []string{"MMX+", "SSE", "SSE2", "CMOV"}

// TestNarrowerTier checks that the avx512 tier requires every feature of the avx2 tier, whose functions it calls.
func TestNarrowerTier(t *testing.T) {
	tiers := map[string][]string{}
	for _, tier := range Tiers() {
		for _, f := range tier.Features {
			tiers[tier.Name] = append(tiers[tier.Name], f.Name)
		}
	}
	for _, name := range tiers["avx2"] {
		if !slices.Contains(tiers["avx512"], name) {
			t.Errorf("avx512 does not require %s, which avx2 does", name)
		}
	}
}

// TestFeatures checks that each tier requires all processor features in the "Requires" lines of its assembly
// functions.
func TestFeatures(t *testing.T) {
	if len(Tiers()) == 1 {
		t.Skipf("this build has no tier in assembly: GOARCH other than amd64 and arm64, or tag purego")
	}
	suffix := "_" + runtime.GOARCH + ".s"
	files, err := filepath.Glob("*" + suffix)
	if err != nil || len(files) == 0 {
		t.Fatalf("no assembly found: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(file, suffix)
		i := slices.IndexFunc(Tiers(), func(tier *Tier) bool { return tier.Name == name })
		if i < 0 {
			t.Fatalf("%s belongs to no tier", file)
		}
		var features []string
		tier := Tiers()[i]
		for _, f := range slices.Concat(tier.Features, tier.Optional) {
			features = append(features, f.Name)
		}
		functions := 0
		text, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer text.Close()
		var requires []string
		for s := bufio.NewScanner(text); s.Scan(); {
			line := s.Text()
			if list, ok := strings.CutPrefix(line, "// Requires: "); ok {
				requires = strings.Split(list, ", ")
			}
			if !strings.HasPrefix(line, "TEXT ·") {
				continue
			}
			functions++
			if requires == nil {
				t.Errorf("%s: %s has no Requires line", file, line)
			}
			for _, r := range requires {
				if !slices.Contains(features, r) && !slices.Contains(implied, r) {
					t.Errorf("%s: %s needs %s, which the tier does not require", file, line, r)
				}
			}
			requires = nil
		}
		if functions == 0 {
			t.Errorf("%s: no functions found", file)
		}
	}
}
