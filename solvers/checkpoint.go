package solvers

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/atomicfile"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/krylov"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/stream"
)

// Checkpoint specifies where and how often an iterative Solve saves its state. If a Solve ends
// early for any reason, a later Solve of the same problem with the same params resumes from the
// saved state. On the same device it gives the same bits as a Solve without interruption.
//
// The name of a file is a hash of everything that the solution depends on: one folder can hold the checkpoints of
// many problems. Each checkpoint replaces the file atomically. The file is removed when the problem is solved. A
// canceled Solve saves its state once more if the state is complete.
//
// Dual, Primal, OutOfCore and Normal write no checkpoints. If a checkpoint is requested, these
// methods return an error, and Auto chooses among the other methods.
type Checkpoint struct {
	Dir   string        // created if it is missing; "" turns checkpoints off
	Every time.Duration // interval between checkpoints; 0 means 30 seconds
}

func (c Checkpoint) interval() time.Duration {
	if c.Every == 0 {
		return 30 * time.Second
	}
	return c.Every
}

// A state holds the values that an iterative Solve needs to resume and cannot recompute from the data.
type state struct {
	Key string // the hash of the problem and the params

	// The state of the refinement. The residuals are computed again, not saved.
	Attempt        int // index in the list of fallbacks
	Round          int
	B, BestB       []float64
	Fallback       string
	Iters          int
	alpha, best, z backend.Host[float64]

	krylov.State // state of the conjugate gradients of an inner solve

	Passes *stream.Pass `json:",omitempty"` // state of a method that reads the samples in passes: X is the current β, Best is the best β
}

func (s *state) arrays() []*backend.Host[float64] {
	return []*backend.Host[float64]{&s.alpha, &s.best, &s.z, &s.RHS, &s.X, &s.Least, &s.R, &s.P}
}

// A checkpointer writes the checkpoints of one Solve, SolveNystrom or SolveFourier.
type checkpointer struct {
	res       *Result
	path      string
	key       string
	interval  time.Duration
	lastWrite time.Time
	resumed   *state // the state read from the file; nil after its use

	f       *refinement // nil if the samples are read in passes
	attempt int
	round   int
}

const checkpointMagic = "mercer checkpoint 1\n"

// newCheckpointer reads an existing checkpoint, or returns nil if the params request none.
func newCheckpointer(w *work, choice any) (*checkpointer, error) {
	if w.par.Checkpoint.Dir == "" {
		return nil, nil
	}
	return openCheckpointer(w.par.Checkpoint, w.key(choice), w.s.n, w.s.t+1, w.res, func(st *state) error { return st.check(w) })
}

// openCheckpointer reads the checkpoint, if there is one. check validates its state, whose arrays have at most rows
// × cols elements each.
func openCheckpointer(c Checkpoint, key string, rows, cols int, res *Result, check func(st *state) error) (*checkpointer, error) {
	s := &checkpointer{res: res, key: key, interval: c.interval(), lastWrite: time.Now()}
	s.path = filepath.Join(c.Dir, s.key[:24]+".checkpoint")
	if err := os.MkdirAll(c.Dir, 0o777); err != nil {
		return nil, fmt.Errorf("solvers: checkpoint: %w", err)
	}
	if err := atomicfile.Check(s.path); err != nil {
		return nil, fmt.Errorf("solvers: checkpoint: %w", err)
	}
	info, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("solvers: checkpoint: %w", err)
	}
	if limit := stateBytes(rows, cols); info.Size() > limit {
		return nil, s.refused(fmt.Errorf("the file has %d bytes, but a state of this problem has at most %d", info.Size(), limit))
	}
	data, err := os.ReadFile(s.path)
	if err != nil {
		return nil, fmt.Errorf("solvers: checkpoint: %w", err)
	}
	if s.resumed, err = decodeState(data); err == nil && s.resumed.Key != s.key {
		err = errors.New("the checkpoint belongs to another problem")
	}
	if err == nil {
		err = check(s.resumed)
	}
	if err != nil {
		return nil, s.refused(err)
	}
	res.Iters, res.Fallback = s.resumed.Iters, s.resumed.Fallback
	res.Notes = append(res.Notes, fmt.Sprintf("went on from a checkpoint after %s", count.Of(s.resumed.Iters, "iteration")))
	return s, nil
}

// stateBytes is an upper bound on the bytes that encode writes for arrays of at most rows × cols elements.
func stateBytes(rows, cols int) int64 {
	const digits, columns, header = 24, 8, 1 << 16
	n, t := int64(rows), int64(cols)
	return 8*int64(len((&state{}).arrays()))*n*t + digits*(n+columns*t) + header
}

// refused returns the error for a checkpoint from which the solve cannot resume; err is the reason.
func (s *checkpointer) refused(err error) error {
	return fmt.Errorf("solvers: checkpoint: %s: %w: remove it to begin anew", s.path, err)
}

// key hashes everything that a solution depends on.
func (w *work) key(choice any) string {
	h := sha256.New()
	s, p := w.s, w.par
	fmt.Fprintf(h, "%s\n%v\n%x %v\n%s %x %q %d %d %+v\n", checkpointMagic, s.Kernel, s.Lambda, s.Intercept,
		w.plan.Method, p.tol(), p.Preconditioner, p.Rank, p.Seed, choice)
	hashPoints(h, s.x)
	hashHost(h, s.Y)
	if s.Weights != nil {
		hashHost(h, backend.Host[float64]{Rows: 1, Cols: len(s.Weights), Stride: len(s.Weights), Data: s.Weights})
	}
	return hex.EncodeToString(h.Sum(nil))
}

func hashPoints(h hash.Hash, x numeric.Points) {
	if x.Sparse == nil {
		hashHost(h, x.Dense)
		return
	}
	fmt.Fprintf(h, "sparse %d %d\n", x.Rows, x.Cols)
	for i := range x.Rows {
		columns, values := x.Sparse.Row(i)
		fmt.Fprintln(h, columns)
		hashHost(h, numeric.Row(values))
	}
}

func hashHost(h hash.Hash, m backend.Host[float64]) {
	fmt.Fprintf(h, "%d %d\n", m.Rows, m.Cols)
	var buffer []byte
	for i := range m.Rows {
		buffer = appendFloats(buffer[:0], m.Row(i))
		h.Write(buffer)
	}
}

func appendFloats(buffer []byte, values []float64) []byte {
	for _, v := range values {
		buffer = binary.LittleEndian.AppendUint64(buffer, math.Float64bits(v))
	}
	return buffer
}

// checkpointError says that a state could not be written.
type checkpointError struct{ error }

func (e checkpointError) Unwrap() error { return e.error }

func (s *checkpointer) due() bool {
	return s != nil && time.Since(s.lastWrite) >= s.interval
}

// write saves the state of an inner solver and, if there is one, of the refinement that calls it.
func (s *checkpointer) write(st *state) error {
	st.Key = s.key
	if f := s.f; f != nil {
		st.Attempt, st.Round = s.attempt, s.round
		st.B, st.BestB = f.b, f.best.b
		st.Fallback, st.Iters = s.res.Fallback, s.res.Iters
		st.alpha, st.best, st.z = f.alpha, f.best.alpha, f.z
	}
	if err := atomicfile.Write(s.path, st.encode); err != nil {
		return checkpointError{fmt.Errorf("solvers: checkpoint: %w", err)}
	}
	s.lastWrite = time.Now()
	return nil
}

// remove deletes the file of the checkpoint.
func (s *checkpointer) remove() error {
	if s == nil {
		return nil
	}
	if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("solvers: checkpoint: %w", err)
	}
	return nil
}

// takeState returns the state read from the file at the first call, and nil at later calls.
func (s *checkpointer) takeState() *state {
	if s == nil {
		return nil
	}
	st := s.resumed
	s.resumed = nil
	return st
}

// restored returns the state that was read from the file, without marking it as used.
func (s *checkpointer) restored() *state {
	if s == nil {
		return nil
	}
	return s.resumed
}

// encode writes
//
//	magic, length of the header (uint64), header (JSON), the arrays, SHA-256
//
// with numbers in little-endian order, the arrays row by row in float64.
func (s *state) encode(w io.Writer) error {
	sum := sha256.New()
	hashed := io.MultiWriter(w, sum)
	shapes := make([][2]int, 0, 8)
	for _, a := range s.arrays() {
		shapes = append(shapes, [2]int{a.Rows, a.Cols})
	}
	header, err := json.Marshal(struct {
		*state
		Shapes [][2]int
	}{s, shapes})
	if err != nil {
		return err
	}
	head := append([]byte(checkpointMagic), binary.LittleEndian.AppendUint64(nil, uint64(len(header)))...)
	if _, err := hashed.Write(append(head, header...)); err != nil {
		return err
	}
	var buffer []byte
	for _, a := range s.arrays() {
		for i := range a.Rows {
			buffer = appendFloats(buffer, a.Row(i))
			if len(buffer) >= 1<<20 || i == a.Rows-1 {
				if _, err := hashed.Write(buffer); err != nil {
					return err
				}
				buffer = buffer[:0]
			}
		}
	}
	_, err = w.Write(sum.Sum(nil))
	return err
}

func decodeState(data []byte) (*state, error) {
	damaged := errors.New("it is damaged")
	body := len(data) - sha256.Size
	prefix := len(checkpointMagic)
	if body < prefix+8 || string(data[:prefix]) != checkpointMagic {
		return nil, errors.New("it is not a checkpoint of this version")
	}
	if sum := sha256.Sum256(data[:body]); string(sum[:]) != string(data[body:]) {
		return nil, damaged
	}
	length := binary.LittleEndian.Uint64(data[prefix:])
	data = data[prefix+8 : body]
	if length > uint64(len(data)) {
		return nil, damaged
	}
	s := &state{}
	head := struct {
		*state
		Shapes [][2]int
	}{state: s}
	if err := json.Unmarshal(data[:length], &head); err != nil {
		return nil, err
	}
	data = data[length:]
	arrays := s.arrays()
	if len(head.Shapes) != len(arrays) {
		return nil, damaged
	}
	for i, shape := range head.Shapes {
		rows, cols := shape[0], shape[1]
		if rows < 0 || cols < 0 || numeric.Elements(rows, cols) > int64(len(data)/8) {
			return nil, damaged
		}
		if rows == 0 || cols == 0 {
			continue // empty arrays have no data
		}
		*arrays[i] = backend.NewHost[float64](rows, cols)
		for j := range arrays[i].Data {
			arrays[i].Data[j] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*j:]))
		}
		data = data[8*rows*cols:]
	}
	if len(data) > 0 {
		return nil, damaged
	}
	return s, nil
}

// A checkpoint may have been modified on purpose and still have a valid checksum. Therefore check compares every
// field with its valid range, and the file holds no residuals.

// maxIters is the largest number of iterations in a valid state. Later additions to it do not overflow.
const maxIters = math.MaxInt >> 10

// stateField is a field of a state. It records whether the value is valid.
type stateField struct {
	name string
	ok   bool
}

type stateArray struct {
	name       string
	h          backend.Host[float64]
	rows, cols int
}

func checkState(fields []stateField, arrays []stateArray) error {
	for _, f := range fields {
		if !f.ok {
			return fmt.Errorf("its field %s is out of range", f.name)
		}
	}
	for _, a := range arrays {
		if a.h.Rows != a.rows || a.h.Cols != a.cols {
			return fmt.Errorf("its array %s is %d×%d, not %d×%d", a.name, a.h.Rows, a.h.Cols, a.rows, a.cols)
		}
		if !finite(a.h.Data) {
			return fmt.Errorf("its array %s has a number that is not finite", a.name)
		}
	}
	return nil
}

func finite(values []float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return v-v != 0 })
}

func inRange(v krylov.Number, smallest, largest float64) bool {
	return float64(v) >= smallest && float64(v) <= largest
}

// check compares the state of a refinement with the shapes of its problem.
func (s *state) check(w *work) error {
	n, t := w.s.n, w.s.t
	columns := t
	if w.s.bordered() && s.z.Rows == 0 {
		columns++
	}
	fields := []stateField{
		{"Attempt", s.Attempt >= 0},
		{"Round", s.Round >= 0 && s.Round < refineRounds},
		{"Iters", s.Iters >= 0 && s.Iters <= maxIters},
		{"Fallback", (s.Attempt > 0) == (s.Fallback != "") && len(s.Fallback) < 1000 && strings.IndexFunc(s.Fallback, unicode.IsControl) < 0},
		{"B", len(s.B) == t && finite(s.B)},
		{"Passes", s.Passes == nil},
	}
	arrays := []stateArray{{"alpha", s.alpha, n, t}, {"rhs", s.RHS, n, columns}}
	if s.best.Rows > 0 {
		fields = append(fields, stateField{"BestB", len(s.BestB) == t && finite(s.BestB)})
		arrays = append(arrays, stateArray{"best", s.best, n, t})
	} else { // α is still 0
		zero := func(list []float64) bool { return !slices.ContainsFunc(list, func(v float64) bool { return v != 0 }) }
		fields = append(fields, stateField{"B", zero(s.B)}, stateField{"alpha", zero(s.alpha.Data)})
	}
	if s.z.Rows > 0 {
		fields = append(fields, stateField{"z", w.s.Intercept})
		arrays = append(arrays, stateArray{"z", s.z, n, 1})
	}
	width := min(krylov.BlockWidth, columns-s.From)
	inf := math.Inf(1)
	fields = append(fields,
		stateField{"From", s.From >= 0 && s.From < columns && s.From%krylov.BlockWidth == 0},
		stateField{"Iter", s.Iter >= 0 && s.Iter <= maxIters},
		stateField{"Since", s.Since >= 0 && s.Since <= maxIters},
		stateField{"Lowest", inRange(s.Lowest, 0, inf)},
		stateField{"Truth", inRange(s.Truth, 0, inf)},
		stateField{"Kept", inRange(s.Kept, 0, math.MaxFloat64)},
		stateField{"Goal", len(s.Goal) == width && finite(s.Goal) && slices.Min(append(s.Goal, 0)) == 0},
		stateField{"p", s.P.Cols >= 1 && s.P.Cols <= width},
	)
	arrays = append(arrays, stateArray{"p", s.P, n, s.P.Cols})
	arrays = append(arrays, stateArray{"x", s.X, n, width}, stateArray{"least", s.Least, n, width}, stateArray{"r", s.R, n, width})
	return checkState(fields, arrays)
}

// checkPasses validates the state of a method that reads the samples in passes, for m basis functions and t outputs.
func (s *state) checkPasses(m, t int) error {
	if s.Passes == nil {
		return checkState([]stateField{{"Passes", false}}, nil)
	}
	p := s.Passes
	fields := []stateField{
		{"Iters", s.Iters >= 0 && s.Iters <= maxIters},
		{"Began", p.Began >= 0 && p.Began <= s.Iters},
		{"Step", p.Step >= 0 && p.Step <= maxIters},
		{"Since", p.Since >= 0 && p.Since <= maxIters},
		{"Least", p.Least == -1 || inRange(p.Least, 0, math.MaxFloat64)},
		{"Before", len(p.Before) == t && finite(p.Before) && slices.Min(append(p.Before, 0)) == 0},
		{"Fallback", s.Fallback == ""},
	}
	arrays := []stateArray{{"x", s.X, m, t}, {"r", s.R, m, t}, {"p", s.P, m, t}}
	if s.best.Rows > 0 {
		arrays = append(arrays, stateArray{"best", s.best, m, t})
	}
	return checkState(fields, arrays)
}
