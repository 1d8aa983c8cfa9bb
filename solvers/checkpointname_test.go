package solvers_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/backend/ref"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// Checkpoints of mixed keep the file name and the field name that the first version
// gave them, so that those written before names in the code changed are resumed.
func TestCheckpointNamesStay(t *testing.T) {
	dev := backendtest.Device(t, "ref")
	const n = 40
	x, y := backend.NewHost[float64](n, 1), backend.NewHost[float64](n, 1)
	for i := range n {
		x.Data[i], y.Data[i] = float64(i), float64(i%3)
	}
	p := solvers.Problem{Kernel: kernels.Gaussian{Sigma: 4}, X: x, Y: y, Lambda: 0x1p-10}
	dir := t.TempDir()
	_, err := solvers.Solve(context.Background(), dev, p, solvers.Params{
		Method: solvers.Mixed, Operator: solvers.Stored64, Tol: 1e-300, MaxIter: 2,
		Checkpoint: solvers.Checkpoint{Dir: dir, Every: time.Nanosecond},
	})
	if err == nil {
		t.Fatal("a residual of 1e-300 was reached")
	}
	list := files(t, dir)
	if len(list) != 1 || filepath.Base(list[0]) != "2b239017d6e9077d01021511.checkpoint" {
		t.Fatalf("files %q", list)
	}
	data, err := os.ReadFile(filepath.Join(dir, filepath.Base(list[0])))
	if err != nil || !bytes.Contains(data, []byte(`"Rung":0,"Round":0`)) {
		t.Errorf("no field Rung in the header: %v", err)
	}
}
