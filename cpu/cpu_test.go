package cpu

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

// required tells whether MERCER_REQUIRE, a list with commas, names a tier:
// then a machine that cannot run it is a failure, not a skip.
func required(tier string) bool {
	return slices.Contains(strings.Split(os.Getenv("MERCER_REQUIRE"), ","), tier)
}

// forEachTier runs f for every tier that this machine can run. Under the race
// detector, which sees the framework and no assembly, the fastest one stands for
// all.
func forEachTier(t *testing.T, f func(t *testing.T, tier *ukr.Tier)) {
	for _, tier := range ukr.Tiers() {
		if underRace && tier.Name != bestDevice().tier.Name {
			continue
		}
		t.Run(tier.Name, func(t *testing.T) {
			if missing := tier.Missing(); missing != "" {
				if required(tier.Name) {
					t.Fatalf("MERCER_REQUIRE names %s, but this machine lacks %s", tier.Name, missing)
				}
				t.Skipf("this machine lacks %s", missing)
			}
			f(t, tier)
		})
	}
}

// TestConformance runs the suite of all backends.
func TestConformance(t *testing.T) {
	forEachTier(t, func(t *testing.T, tier *ukr.Tier) {
		large := 0
		if tier.Name == "generic" {
			large = 600 // still several blocks in every direction
		}
		backendtest.Suite{RequireHalf: true, LargeN: large, Open: func(t testing.TB, c backend.Config) backend.Device {
			dev, err := backend.Open("cpu/"+tier.Name, c)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { dev.Close() })
			if got := dev.Info().Instruction; got != tier.Name {
				t.Fatalf("asked for %s, got %s", tier.Name, got)
			}
			return dev
		}}.Run(t)
	})
}

// TestRequiredTiers fails when MERCER_REQUIRE names a tier that was not
// compiled in.
func TestRequiredTiers(t *testing.T) {
	for _, name := range []string{"avx512", "avx2", "generic"} {
		found := slices.ContainsFunc(ukr.Tiers(), func(tier *ukr.Tier) bool { return tier.Name == name })
		if required(name) && !found {
			t.Errorf("MERCER_REQUIRE names %s, which this build does not have", name)
		}
	}
}
