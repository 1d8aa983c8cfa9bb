package cpu

import (
	"slices"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
	"github.com/mercer-go/mercer/internal/required"
)

// forEachTier runs f for every tier that this machine can run. Under the race detector, which does
// not see assembly, it runs f only for the fastest tier.
func forEachTier(t *testing.T, f func(t *testing.T, tier *ukr.Tier)) {
	for _, tier := range ukr.Tiers() {
		if underRace && tier.Name != bestDevice().tier.Name {
			continue
		}
		if tier.Missing() == "" {
			t.Run(tier.Name, func(t *testing.T) { f(t, tier) })
		}
	}
}

// forEachAssembledTier runs f for every tier that this machine can run. With -short it omits the
// portable tier, which takes seconds.
func forEachAssembledTier(t *testing.T, f func(t *testing.T, tier *ukr.Tier)) {
	for _, tier := range ukr.Tiers() {
		if tier.Missing() == "" && !(testing.Short() && tier.Name == "generic") {
			t.Run(tier.Name, func(t *testing.T) { f(t, tier) })
		}
	}
}

// TestConformance runs the suite of package backendtest on every tier; only the best tier runs all
// cases. With -short, the other tiers are omitted.
func TestConformance(t *testing.T) {
	forTiers := forEachTier
	if testing.Short() {
		forTiers = func(t *testing.T, f func(t *testing.T, tier *ukr.Tier)) {
			best := bestDevice().tier
			t.Run(best.Name, func(t *testing.T) { f(t, best) })
		}
	}
	forTiers(t, func(t *testing.T, tier *ukr.Tier) {
		largeN := 0
		if tier.Name == "generic" {
			largeN = 520 // larger than KC = 512, so that there are several blocks of rows
		}
		backendtest.Suite{RequirePacked: true, LargeN: largeN, Fewer: tier.Name != bestDevice().tier.Name, Open: func(t testing.TB, c backend.Config) backend.Device {
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

// TestRequiredTiers fails if MERCER_REQUIRE names a tier that is not compiled in or that this machine cannot run.
func TestRequiredTiers(t *testing.T) {
	for _, name := range []string{"avx512", "avx2", "neon", "generic"} {
		i := slices.IndexFunc(ukr.Tiers(), func(tier *ukr.Tier) bool { return tier.Name == name })
		if i < 0 {
			if required.Names(name) {
				t.Errorf("MERCER_REQUIRE names %s, which this build does not have", name)
			}
			continue
		}
		if missing := ukr.Tiers()[i].Missing(); missing != "" {
			t.Logf("%s is not tested: this machine lacks %s", name, missing)
			if required.Names(name) {
				t.Errorf("MERCER_REQUIRE names %s, which this machine cannot run", name)
			}
		}
	}
}
