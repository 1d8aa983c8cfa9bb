package mercer_test

import (
	"os"
	"path"
	"regexp"
	"testing"
	"time"
)

// TestModuleVersions: the modules of their own require a version of this one that
// programs outside can get, a tag or the pseudo-version of a commit, and use the
// folder beside them here. Whether the commit exists is for .ci/run, which has the
// history.
func TestModuleVersions(t *testing.T) {
	name := regexp.QuoteMeta(module)
	require := regexp.MustCompile(`(?m)^\s*(?:require )?` + name + ` (v\S+)`)
	replace := regexp.MustCompile(`(?m)^\s*(?:replace )?` + name + ` => \.\./?$`)
	tag := regexp.MustCompile(`^v\d+\.\d+\.\d+$`)
	pseudo := regexp.MustCompile(`^v0\.0\.0-(\d{14})-[0-9a-f]{12}$`)
	for _, folder := range []string{"beam", "gorgonia"} {
		text, err := os.ReadFile(path.Join(folder, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		if !replace.Match(text) {
			t.Errorf("%s/go.mod does not replace %s by the folder above it", folder, module)
		}
		found := require.FindSubmatch(text)
		if found == nil {
			t.Errorf("%s/go.mod requires no version of %s", folder, module)
			continue
		}
		version := string(found[1])
		if tag.MatchString(version) {
			continue
		}
		parts := pseudo.FindStringSubmatch(version)
		if parts == nil {
			t.Errorf("%s/go.mod requires %s, which is neither a tag nor the pseudo-version of a commit", folder, version)
			continue
		}
		if made, err := time.Parse("20060102150405", parts[1]); err != nil || made.Year() < 2026 {
			t.Errorf("%s/go.mod requires %s, whose time of the commit cannot be: %v %v", folder, version, made, err)
		}
	}
}
