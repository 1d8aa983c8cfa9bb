package required

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ended is a testing.TB that records how the test ended.
type ended struct {
	testing.TB
	how, text string
}

func (e *ended) Helper() {}
func (e *ended) Fatal(args ...any) {
	e.how, e.text = "failed", args[0].(string)
	panic(e)
}
func (e *ended) Skip(args ...any) {
	e.how, e.text = "skipped", args[0].(string)
	panic(e)
}

func end(f func(t testing.TB)) (e *ended) {
	e = &ended{}
	defer func() { _ = recover() }()
	f(e)
	return e
}

func TestLacking(t *testing.T) {
	t.Setenv("MERCER_REQUIRE", "avx2,kernlab")
	for what, want := range map[string]string{"kernlab": "failed", "avx2": "failed", "avx": "skipped", "": "skipped", "data": "skipped"} {
		if e := end(func(t testing.TB) { Lacking(t, what, "it is not here") }); e.how != want || !strings.Contains(e.text, what) {
			t.Errorf("%q: %s with %q, want it %s", what, e.how, e.text, want)
		}
	}
	if e := end(func(t testing.TB) { Program(t, "kernlab", "no such program") }); e.how != "failed" {
		t.Errorf("a required program is lacking: %q", e.how)
	}
}

func TestSome(t *testing.T) {
	all := []int{0, 1, 2, 3, 4, 5, 6}
	for names, want := range map[string][]int{"": {0, 2, 4}, "avx2,cases": all} {
		t.Setenv("MERCER_REQUIRE", names)
		if !testing.Short() {
			want = all
		}
		if got := Some(3, all); !slices.Equal(got, want) {
			t.Errorf("MERCER_REQUIRE=%s: %v, want %v", names, got, want)
		}
		if got := Some(8, all); !slices.Equal(got, all) {
			t.Errorf("all are fewer than wanted: %v", got)
		}
	}
}

func TestData(t *testing.T) {
	above := t.TempDir()
	data, work := filepath.Join(above, "shared", "data"), filepath.Join(above, "main", "kernels")
	for _, folder := range []string{data, work} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(data, "a.csv"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(work)
	t.Setenv("MERCER_REQUIRE", "")
	if path := Data(t, "a.csv"); !strings.HasSuffix(path, filepath.Join("shared", "data", "a.csv")) {
		t.Errorf("found %s", path)
	}
	if e := end(func(t testing.TB) { Data(t, "b.csv") }); e.how != "skipped" {
		t.Errorf("without the data: %q", e.how)
	}
	t.Setenv("MERCER_REQUIRE", "data")
	if e := end(func(t testing.TB) { Data(t, "b.csv") }); e.how != "failed" {
		t.Errorf("without required data: %q", e.how)
	}
}
