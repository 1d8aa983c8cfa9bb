package cpu

import (
	"slices"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
	"github.com/mercer-go/mercer/internal/required"
)

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
				required.Lacking(t, tier.Name, "this machine lacks", missing)
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
		backendtest.Suite{RequirePacked: true, LargeN: large, Open: func(t testing.TB, c backend.Config) backend.Device {
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
		if required.Names(name) && !found {
			t.Errorf("MERCER_REQUIRE names %s, which this build does not have", name)
		}
	}
}
