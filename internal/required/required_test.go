package required

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// recorder is a testing.TB that records how the test ended.
type recorder struct {
	testing.TB
	result, text string
}

func (e *recorder) Helper() {}
func (e *recorder) Fatal(args ...any) {
	e.result, e.text = "failed", args[0].(string)
	panic(e)
}
func (e *recorder) Skip(args ...any) {
	e.result, e.text = "skipped", args[0].(string)
	panic(e)
}

func record(f func(t testing.TB)) (e *recorder) {
	e = &recorder{}
	defer func() { _ = recover() }()
	f(e)
	return e
}

func TestSkipOrFail(t *testing.T) {
	t.Setenv("MERCER_REQUIRE", "avx2,kernlab")
	for name, want := range map[string]string{"kernlab": "failed", "avx2": "failed", "avx": "skipped", "": "skipped", "data": "skipped"} {
		if e := record(func(t testing.TB) { SkipOrFail(t, name, "it is not here") }); e.result != want || !strings.Contains(e.text, name) {
			t.Errorf("%q: %s with %q, want it %s", name, e.result, e.text, want)
		}
	}
	if e := record(func(t testing.TB) { Program(t, "kernlab", "no such program") }); e.result != "failed" {
		t.Errorf("a required program is lacking: %q", e.result)
	}
}

func TestSubset(t *testing.T) {
	all := []int{0, 1, 2, 3, 4, 5, 6}
	for names, want := range map[string][]int{"": {0, 2, 4}, "avx2,cases": all} {
		t.Setenv("MERCER_REQUIRE", names)
		if !testing.Short() {
			want = all
		}
		if got := Subset(3, all); !slices.Equal(got, want) {
			t.Errorf("MERCER_REQUIRE=%s: %v, want %v", names, got, want)
		}
		if got := Subset(8, all); !slices.Equal(got, all) {
			t.Errorf("all are fewer than wanted: %v", got)
		}
	}
}

func TestData(t *testing.T) {
	parent := t.TempDir()
	data, work := filepath.Join(parent, "shared", "data"), filepath.Join(parent, "main", "kernels")
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
	if e := record(func(t testing.TB) { Data(t, "b.csv") }); e.result != "skipped" {
		t.Errorf("without the data: %q", e.result)
	}
	t.Setenv("MERCER_REQUIRE", "data")
	if e := record(func(t testing.TB) { Data(t, "b.csv") }); e.result != "failed" {
		t.Errorf("without required data: %q", e.result)
	}
}
