package dataset_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/required"
)

// python runs a script with numpy and scikit-learn in a new folder. It returns the folder and the output.
func python(t *testing.T, script string) (dir, out string) {
	t.Helper()
	cmd := exec.Command(required.SKLearn(t), "-c", script)
	dir = t.TempDir()
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	data, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return dir, string(data)
}

// TestWrittenByNumpy checks that files of numpy and scikit-learn, of all types, orders and versions, give the
// numbers from which they were written.
func TestWrittenByNumpy(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Python: skipped by -short")
	}
	dir, out := python(t, `
import json, numpy as np
from numpy.lib import format
from sklearn.datasets import dump_svmlight_file
rng = np.random.default_rng(1)
x = rng.integers(0, 100, (7, 3))
for d in ['f2','f4','f8','i1','i2','i4','i8','u1','u2','u4','u8']:
    for order in 'CF':
        for end in '<>':
            np.save(f'{d}{order}{"lb"[end == ">"]}.npy', np.array(x, dtype=end + d, order=order))
for v in [(1, 0), (2, 0), (3, 0)]:
    with open(f'v{v[0]}.npy', 'wb') as f: format.write_array(f, x.astype(float), version=v)
np.save('view.npy', x.astype(float)[::-1][::-1])
z = np.round(rng.normal(size=(7, 3)), 3) * (rng.random((7, 3)) < 0.6)
y = rng.integers(-1, 2, 7)
np.savez('a.npz', X=z, y=y)
np.savez_compressed('b.npz', y=y, X=np.asfortranarray(z))
np.savez('c.npz', X=z, y=np.array(['minus', 'zero', 'plus'])[y + 1])
np.savez('d.npz', X=z, y=np.array([b'minus', b'zero', b'plus'])[y + 1])
dump_svmlight_file(z, y, 'a.libsvm', zero_based=False)
dump_svmlight_file(z, y, 'b.svm', zero_based=False, comment='a comment')
dump_svmlight_file(z, y, 'zero.svm', comment='from 0')
print(json.dumps({'x': x.tolist(), 'z': z.tolist(), 'y': y.tolist()}))
`)
	var want struct {
		X, Z [][]float64
		Y    []float64
	}
	if err := json.Unmarshal([]byte(out), &want); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.*"))
	if err != nil || len(paths) != 44+4+7 {
		t.Fatalf("%d files, %v", len(paths), err)
	}
	for _, path := range paths {
		table, err := dataset.Read(path, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		rules, rows := dataset.Rules{}, want.X
		switch filepath.Ext(path) {
		case ".npz":
			rules, rows = dataset.Rules{Targets: []string{"y"}}, want.Z
		case ".libsvm", ".svm":
			rules, rows = dataset.Rules{Targets: []string{"label"}}, want.Z
		}
		hasHeader := strings.HasPrefix(filepath.Base(path), "c.") || strings.HasPrefix(filepath.Base(path), "d.")
		rules.Labels = hasHeader
		e := learn(t, table, rules)
		if x := features(t, e, table); !mat.Equal(x, mat.NewDense(7, 3, slices.Concat(rows...))) {
			t.Errorf("%s: features are\n%v", path, mat.Formatted(x))
		}
		if rules.Targets == nil {
			continue
		}
		for i, v := range indices(t, e, table) {
			if hasHeader {
				v = map[string]float64{"minus": -1, "zero": 0, "plus": 1}[e.Classes()[int(v)]]
			}
			if v != want.Y[i] {
				t.Errorf("%s: target %d is %v, want %v", path, i+1, v, want.Y[i])
			}
		}
	}
}

// TestMNIST compares the sizes, sums and counts of the images and labels of MNIST with results of numpy.
func TestMNIST(t *testing.T) {
	table, err := dataset.Read(shared(t, "mnist-t10k-images-idx3-ubyte.gz"), nil)
	if err != nil {
		t.Fatal(err)
	}
	e := learn(t, table, dataset.Rules{Targets: []string{"label"}, Labels: true})
	if got := e.Classes(); !slices.Equal(got, strings.Split("0123456789", "")) {
		t.Errorf("classes are %q", got)
	}
	x := features(t, e, table)
	if rows, cols := x.Dims(); rows != 10_000 || cols != 784 || mat.Sum(x) != 264923200 {
		t.Errorf("%d×%d pixels with the sum %v, want 10000×784 and 264923200", rows, cols, mat.Sum(x))
	}
	counts := make([]int, 10)
	for _, y := range indices(t, e, table) {
		counts[int(y)]++
	}
	if want := []int{980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009}; !slices.Equal(counts, want) {
		t.Errorf("the digits occur %v times, want %v", counts, want)
	}
}
