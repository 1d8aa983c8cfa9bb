package mercer_test

import (
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/internal/required"
)

// TestModuleVersions holds the modules of their own to requiring a version of this one
// that can be had: a tag, or a commit of the history with its time. The replace lines
// hide it here, and programs that import the modules get that version. Copies without
// the history cannot tell: MERCER_REQUIRE=history makes that a failure.
func TestModuleVersions(t *testing.T) {
	if out, err := exec.Command("git", "rev-parse", "--is-shallow-repository").Output(); err != nil || strings.TrimSpace(string(out)) != "false" {
		required.Lacking(t, "history", "this is no git repository with its history:", string(out), err)
	}
	if out, err := exec.Command("git", "rev-list", "--count", "HEAD").Output(); err != nil || strings.TrimSpace(string(out)) == "1" {
		required.Lacking(t, "history", "this repository has one commit and no history:", string(out), err)
	}
	require := regexp.MustCompile(`(?m)^\s*(?:require )?` + regexp.QuoteMeta(module) + ` (v\S+)`)
	pseudo := regexp.MustCompile(`^v0\.0\.0-(\d{14})-([0-9a-f]{12})$`)
	for _, folder := range []string{"beam", "gorgonia"} {
		text, err := os.ReadFile(path.Join(folder, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		found := require.FindSubmatch(text)
		if found == nil {
			t.Errorf("%s/go.mod requires no version of %s", folder, module)
			continue
		}
		version := string(found[1])
		parts := pseudo.FindStringSubmatch(version)
		if parts == nil {
			if out, err := exec.Command("git", "rev-parse", "--verify", "--quiet", "refs/tags/"+version).CombinedOutput(); err != nil {
				t.Errorf("%s/go.mod requires %s, which is neither a commit nor a tag: %s", folder, version, out)
			}
			continue
		}
		if err := exec.Command("git", "cat-file", "-e", parts[2]+"^{commit}").Run(); err != nil {
			t.Errorf("%s/go.mod requires %s, whose commit is not in this history", folder, version)
			continue
		}
		show := exec.Command("git", "log", "-1", "--date=format-local:%Y%m%d%H%M%S", "--format=%cd", parts[2])
		show.Env = append(os.Environ(), "TZ=UTC")
		out, err := show.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != parts[1] {
			t.Errorf("%s/go.mod requires %s, but the time of the commit %s is %s, %v", folder, version, parts[2], got, err)
		}
	}
}
