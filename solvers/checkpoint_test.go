package solvers_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// slow is a problem that takes some hundred iterations of conjugate gradients.
func slow(n, t int) (solvers.Problem, solvers.Params) {
	r := rand.New(rand.NewPCG(7, 0))
	p := solvers.Problem{
		Kernel: kernels.Matern{Nu: 1.5, Sigma: 2}, X: backend.NewHost[float64](n, 3), Y: backend.NewHost[float64](n, t),
		Lambda: 1e-4, Intercept: true,
	}
	for i := range p.X.Data {
		p.X.Data[i] = r.NormFloat64()
	}
	for i := range p.Y.Data {
		p.Y.Data[i] = r.NormFloat64()
	}
	return p, solvers.Params{Method: solvers.CG, Preconditioner: "none", Operator: solvers.Stored64}
}

// files lists the files of a folder.
func files(t *testing.T, folder string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, filepath.Join(folder, e.Name()))
	}
	return list
}

// sameAnswer requires that both results have the same bits.
func sameAnswer(t *testing.T, got, want *solvers.Result) {
	t.Helper()
	if got.Residual != want.Residual || got.Iters != want.Iters {
		t.Errorf("residual %v after %d iterations, without a break %v after %d", got.Residual, got.Iters, want.Residual, want.Iters)
	}
	for i, v := range want.Alpha.Data {
		if got.Alpha.Data[i] != v {
			t.Fatalf("alpha %d is %v, without a break %v", i, got.Alpha.Data[i], v)
		}
	}
	for j, v := range want.Intercept {
		if got.Intercept[j] != v {
			t.Errorf("intercept %d is %v, without a break %v", j, got.Intercept[j], v)
		}
	}
}

// TestResume cancels a Solve several times, in every precision, and resumes it each time. The solution must have
// the same bits as without cancellation, and no file may remain.
func TestResume(t *testing.T) {
	for _, test := range []struct {
		method     solvers.Method
		operator   solvers.Operator
		n, columns int
	}{
		{solvers.CG, solvers.Stored64, 100, 1},
		{solvers.CG, solvers.Stored32, 100, 3},
		{solvers.CG, solvers.Unstored64, 120, 66},
	} {
		t.Run(fmt.Sprintf("%s,%s,columns=%d", test.method, test.operator, test.columns), func(t *testing.T) {
			if test.columns > 64 && testing.Short() {
				t.Skip("two blocks of columns take seconds")
			}
			p, par := slow(test.n, test.columns)
			par.Method, par.Operator = test.method, test.operator
			if test.operator == solvers.Stored32 {
				p.Lambda = 1 // large enough for refinement with float32 to reach the tolerance
			}
			dev := backendtest.Device(t, "ref")
			want, err := solvers.Solve(t.Context(), dev, p, par)
			if err != nil {
				t.Fatal(err)
			}
			par.Checkpoint = solvers.Checkpoint{Dir: t.TempDir(), Every: 10 * time.Millisecond}
			stops := 0
			for fraction := 0.02; ; fraction += 0.02 {
				ctx, cancel := context.WithCancel(t.Context())
				par.Progress = func(s solvers.Progress) {
					if s.Stage == "solve" && s.Fraction >= fraction {
						cancel()
					}
				}
				got, err := solvers.Solve(ctx, dev, p, par)
				cancel()
				if err == nil {
					if stops > 0 && len(got.Notes) == 0 {
						t.Error("nothing says that it went on from a checkpoint")
					}
					sameAnswer(t, got, want)
					break
				}
				if !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				stops++
			}
			if stops < 2 {
				t.Errorf("it was stopped %d times only", stops)
			}
			if list := files(t, par.Checkpoint.Dir); len(list) != 0 {
				t.Errorf("left behind: %q", list)
			}
		})
	}
}

// TestResumePasses is TestResume for a method that reads the samples in passes. The block sizes differ between runs.
func TestResumePasses(t *testing.T) {
	p, _ := slow(300, 2)
	dev := backendtest.Device(t, "ref")
	for name, solve := range map[string]func(ctx context.Context, par solvers.StreamParams) (*solvers.Result, backend.Host[float64], error){
		"nystrom": func(ctx context.Context, par solvers.StreamParams) (*solvers.Result, backend.Host[float64], error) {
			res, err := solvers.SolveNystrom(ctx, dev, solvers.NystromProblem{
				Kernel: p.Kernel, Data: solvers.InMemory(p.X, p.Y, nil, nil), Choice: solvers.CenterChoice{Count: 60}, Lambda: 1e-3, Intercept: true,
			}, par)
			if res == nil {
				return nil, backend.Host[float64]{}, err
			}
			return &res.Result, res.Beta, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			// With an inaccurate preconditioner from few samples, Falkon needs several steps.
			par := solvers.StreamParams{Method: solvers.Falkon, Tol: 1e-9}.WithSamples(70)
			want, beta, err := solve(t.Context(), par)
			if err != nil {
				t.Fatal(err)
			}
			if want.Iters < 10 {
				t.Fatalf("%d iterations only", want.Iters)
			}
			par.Checkpoint = solvers.Checkpoint{Dir: t.TempDir(), Every: time.Nanosecond}
			stops := 0
			for fraction := 0.02; ; fraction += 0.02 {
				ctx, cancel := context.WithCancel(t.Context())
				par.Progress = func(s solvers.Progress) {
					if s.Stage == "solve" && s.Fraction >= fraction {
						cancel()
					}
				}
				got, resumed, err := solve(ctx, par)
				cancel()
				if err == nil {
					if stops < 2 || len(got.Notes) == 0 {
						t.Errorf("stopped %d times; notes: %q", stops, got.Notes)
					}
					if got.Iters != want.Iters || got.Residual != want.Residual {
						t.Errorf("residual %v after %d iterations, without a break %v after %d", got.Residual, got.Iters, want.Residual, want.Iters)
					}
					for i, v := range beta.Data {
						if resumed.Data[i] != v {
							t.Fatalf("coefficient %d is %v, without a break %v", i, resumed.Data[i], v)
						}
					}
					break
				}
				if !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				stops++
			}
			if list := files(t, par.Checkpoint.Dir); len(list) != 0 {
				t.Errorf("left behind: %q", list)
			}
		})
	}
}

// TestCheckpointFaults checks that a damaged file and a file of another problem give an error that names the file,
// and that different problems and params have different files.
func TestCheckpointFaults(t *testing.T) {
	p, par := slow(100, 1)
	dev := backendtest.Device(t, "ref")
	par.Checkpoint = solvers.Checkpoint{Dir: t.TempDir()} // a checkpoint is written on cancellation
	stopped := func(p solvers.Problem, par solvers.Params) {
		t.Helper()
		saved := len(files(t, par.Checkpoint.Dir))
		// A Solve that is canceled while it computes the residual from the data writes no checkpoint.
		for fraction := 0.2; fraction < 0.9 && len(files(t, par.Checkpoint.Dir)) == saved; fraction += 0.05 {
			ctx, cancel := context.WithCancel(t.Context())
			par.Progress = func(s solvers.Progress) {
				if s.Stage == "solve" && s.Fraction > fraction {
					cancel()
				}
			}
			if _, err := solvers.Solve(ctx, dev, p, par); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			cancel()
		}
	}
	stopped(p, par)
	list := files(t, par.Checkpoint.Dir)
	if len(list) != 1 {
		t.Fatalf("files: %q", list)
	}
	whole, err := os.ReadFile(list[0])
	if err != nil {
		t.Fatal(err)
	}
	flipped := append([]byte(nil), whole...)
	flipped[len(flipped)/2] ^= 4
	for name, data := range map[string][]byte{"flipped": flipped, "cut off": whole[:len(whole)-9], "empty": nil, "other": []byte("x,y\n1,2\n")} {
		if err := os.WriteFile(list[0], data, 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := solvers.Solve(t.Context(), dev, p, par)
		if err == nil || !strings.Contains(err.Error(), list[0]) || !strings.Contains(err.Error(), "remove it to begin anew") {
			t.Errorf("%s: %v", name, err)
		}
	}
	q := p
	q.Lambda *= 2
	stopped(q, par)
	q = p
	q.Y = backend.Host[float64]{Rows: p.Y.Rows, Cols: 1, Stride: 1, Data: append([]float64(nil), p.Y.Data...)}
	q.Y.Data[3] = math.Nextafter(q.Y.Data[3], 9)
	stopped(q, par)
	tight := par
	tight.Tol = 1e-9
	stopped(p, tight)
	if list := files(t, par.Checkpoint.Dir); len(list) != 4 {
		t.Errorf("four problems have %d files", len(list))
	}
	// A Solve with a higher limit on iterations can resume from the checkpoint.
	os.WriteFile(list[0], whole, 0o666)
	limited := par
	limited.MaxIter = 5000
	if res, err := solvers.Solve(t.Context(), dev, p, limited); err != nil || len(res.Notes) != 1 {
		t.Errorf("not taken up: %+v, %v", res, err)
	}
	par.Checkpoint.Dir = filepath.Join(t.TempDir(), "to", "be", "made")
	if _, err := solvers.Solve(t.Context(), dev, p, par); err != nil {
		t.Error(err)
	} else if list := files(t, par.Checkpoint.Dir); len(list) != 0 {
		t.Errorf("left in a folder that it made: %q", list)
	}
	os.WriteFile(list[0], whole, 0o666)
	par.Checkpoint.Dir = filepath.Join(list[0], "inside a file")
	if _, err := solvers.Solve(t.Context(), dev, p, par); err == nil || !strings.Contains(err.Error(), "solvers: checkpoint: ") {
		t.Errorf("a folder that cannot be made: %v", err)
	}
}

// killed is set in the environment of the process that TestKill kills.
const killed = "MERCER_SOLVERS_TEST_KILLED"

// TestKill checks that a Solve resumed after its process was killed gives the same bits as without interruption.
func TestKill(t *testing.T) {
	p, par := slow(200, 1)
	if dir := os.Getenv(killed); dir != "" {
		par.Checkpoint = solvers.Checkpoint{Dir: dir, Every: time.Nanosecond}
		last := 0.0
		par.Progress = func(s solvers.Progress) {
			if s.Stage == "solve" && s.Fraction > last+0.01 {
				last = s.Fraction
				fmt.Printf("at %v\n", s.Fraction)
				time.Sleep(10 * time.Millisecond)
			}
		}
		solvers.Solve(context.Background(), backendtest.Device(t, "ref"), p, par)
		return
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKill$")
	cmd.Env = append(os.Environ(), killed+"="+dir)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := 0
	for in := bufio.NewScanner(stdout); in.Scan() && lines < 8; lines++ {
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if list := files(t, dir); lines < 8 || len(list) == 0 {
		t.Fatalf("the process was not killed in the middle of its work: %d lines, files %q", lines, list)
	}
	dev := backendtest.Device(t, "ref")
	want, err := solvers.Solve(t.Context(), dev, p, par)
	if err != nil {
		t.Fatal(err)
	}
	par.Checkpoint.Dir = dir
	got, err := solvers.Solve(t.Context(), dev, p, par)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Notes) == 0 {
		t.Error("it began anew")
	}
	sameAnswer(t, got, want)
}
