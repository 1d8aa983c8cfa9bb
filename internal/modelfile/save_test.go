package modelfile

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/learners"
)

// checkFolder fails the test unless folder contains exactly the named files, including hidden files.
func checkFolder(t *testing.T, folder string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("the folder holds %q, want %q", got, names)
	}
}

func TestSaveRefused(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "m.safetensors")
	valid := bundle(t, nil, true)
	invalidEncoder := *valid.Encoder
	invalidEncoder.Outputs = invalidEncoder.Outputs[:1]
	for _, test := range []struct {
		path string
		b    Bundle
		want string
	}{
		{path, Bundle{}, "not saved: there is no model"},
		{path, Bundle{Model: &learners.RidgeModel{}}, "not saved: the model is not fitted"},
		{path, Bundle{Model: valid.Model, Encoder: &dataset.Encoder{}}, "not saved: dataset: encoder"},
		{path, Bundle{Model: valid.Model, Encoder: &invalidEncoder}, "not saved: the encoder makes 1 target, but the model has 2 outputs"},
		{folder, valid, "is a directory"},
		{filepath.Join(folder, "none", "m"), valid, "no such file or directory"},
		{filepath.Join(path, "m"), valid, "no such file or directory"},
		{"", valid, "the path is empty"},
		{os.DevNull, valid, "is not a regular file"},
	} {
		err := Save(test.path, test.b)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") || strings.Count(err.Error(), folder) > 1 {
			t.Errorf("%q: got %v, want %q", test.path, err, test.want)
		}
		checkFolder(t, folder)
	}
}

// TestReplaced checks that an existing file keeps its mode, and that a link remains a link.
func TestReplaced(t *testing.T) {
	folder := t.TempDir()
	path, link := filepath.Join(folder, "m.safetensors"), filepath.Join(folder, "now")
	if err := os.WriteFile(path, bytes.Repeat([]byte("old"), 100_000), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil { // the umask does not affect Chmod
		t.Fatal(err)
	}
	if err := os.Symlink("m.safetensors", link); err != nil {
		t.Fatal(err)
	}
	b := bundle(t, nil, true)
	if err := Save(link, b); err != nil {
		t.Fatal(err)
	}
	checkFolder(t, folder, "m.safetensors", "now")
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != 0o640 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link has become %v, %v", info.Mode(), err)
	}
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := sameBundle(b, got); diff != "" {
		t.Error(diff)
	}
}

// invalidModel is a model whose state is not valid.
type invalidModel struct {
	learners.Model
	state learners.State
}

func (b invalidModel) Dims() (int, int)      { return 1, 1 }
func (b invalidModel) State() learners.State { return b.state }

// TestNotSaved checks that a model that could not be loaded is not written.
func TestNotSaved(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "m")
	array := backend.NewHost[float64](1, 1)
	for want, s := range map[string]learners.State{
		`no learner is called "magic"`:  {Learner: "magic"},
		"unsupported type":              {Learner: "ridge", Params: map[string]any{"lambda": func() {}}},
		`array "coef" is missing`:       {Learner: "ridge", Params: map[string]any{"lambda": 1.0, "intercept": true}, Arrays: map[string]backend.Host[float64]{"intercept": array}},
		`parameter "intercept" is miss`: {Learner: "ridge", Params: map[string]any{"lambda": 1.0}, Arrays: map[string]backend.Host[float64]{"coef": array, "intercept": array}},
	} {
		if err := Save(path, Bundle{Model: invalidModel{state: s}}); err == nil || !strings.Contains(err.Error(), "not saved: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	checkFolder(t, folder)
}
