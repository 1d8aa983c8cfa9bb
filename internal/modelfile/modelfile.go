package modelfile

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/safetensors"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
)

const (
	format  = "mercer"
	version = 1
)

// calibration is the name under which Bundle.Calibration is stored with the arrays of the model.
const calibration = "calibration"

// Bundle is the content of a file.
type Bundle struct {
	Model   learners.Model
	Encoder *dataset.Encoder // converts a table to the model's features and targets; nil if unknown
	Objects *Objects         // set if the encoder's input is a column of texts or trees

	// Fit is the report of the program that fitted the model, a JSON object, or nil.
	Fit json.RawMessage

	// Calibration was computed from rows that were not used to fit Model. It may be nil.
	Calibration *learners.Calibration
}

// check returns an error if the encoder, the objects or the calibration do not belong to the model.
func (b Bundle) check() error {
	d, t := b.Model.Dims()
	if b.Calibration != nil {
		if err := b.Calibration.Check(b.Model); err != nil {
			return err
		}
	}
	if b.Encoder == nil {
		return b.Objects.check(nil, d)
	}
	if err := b.Encoder.Check(); err != nil {
		return err
	}
	if err := b.Objects.check(b.Encoder, d); err != nil {
		return err
	}
	n := b.Encoder.Width()
	if b.Encoder.Gram {
		if !b.Precomputed() {
			return errors.New("the encoder makes a Gram matrix, but the model's kernel takes features")
		}
		n += 2 // the points of kernels.Precomputed have two extra columns
	}
	if n != d && b.Objects == nil {
		return fmt.Errorf("the encoder makes %s, but the model takes %d", count.Of(n, "feature"), d)
	}
	if n := len(b.Encoder.TargetNames()); n != t && (n != 0 || !isNovelty(b.Model)) {
		return fmt.Errorf("the encoder makes %s, but the model has %s", count.Of(n, "target"), count.Of(t, "output"))
	}
	return nil
}

// Precomputed reports whether the model was fitted to a Gram matrix. Its samples are then points of
// kernels.Precomputed, which represent kernel values with the training rows.
func (b Bundle) Precomputed() bool {
	if b.Model == nil {
		return false
	}
	text, ok := b.Model.State().Params["kernel"].(string)
	if !ok || b.Objects != nil {
		return false
	}
	k, err := kernels.Parse(text)
	if err != nil {
		return false
	}
	precomputed, err := kernels.IsPrecomputed(k)
	return err == nil && precomputed
}

// isNovelty reports whether a model was fitted without targets.
func isNovelty(m learners.Model) bool {
	d, err := learners.Find(m.Learner())
	return err == nil && d.Supports(learners.Novelty)
}

// Load returns the bundle in a file that Save wrote. The loaded model predicts the same bits as the
// saved model. For any other file, the error contains path and the reason.
func Load(path string) (Bundle, error) {
	b, err := load(path)
	if err != nil {
		return Bundle{}, pathError(path, err)
	}
	return b, nil
}

// pathError returns an error with path and the reason err. It removes the path that err may contain.
func pathError(path string, err error) error {
	if path == "" {
		return errors.New("modelfile: the path is empty")
	}
	// Errors of these types contain a path: the argument path or the path of the temporary file.
	switch e := err.(type) {
	case *fs.PathError:
		err = e.Err
	case *os.LinkError:
		err = e.Err
	}
	return fmt.Errorf("modelfile: %s: %w", path, err)
}

func load(path string) (Bundle, error) {
	// Check the type of the file before opening it, because opening a pipe would wait for a writer.
	info, err := os.Stat(path)
	if err != nil {
		return Bundle{}, err
	}
	if err := regular(info); err != nil {
		return Bundle{}, err
	}
	f, err := os.Open(path)
	if err != nil {
		return Bundle{}, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return Bundle{}, err
	}
	return read(f, info.Size())
}

func regular(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return errors.New("is a directory")
	case !info.Mode().IsRegular():
		return errors.New("is not a regular file")
	}
	return nil
}

// Read is Load for the contents of a file: the first size bytes of r.
func Read(r io.ReaderAt, size int64) (Bundle, error) {
	b, err := read(r, size)
	if err != nil {
		return Bundle{}, fmt.Errorf("modelfile: read: %w", err)
	}
	return b, nil
}

func read(r io.ReaderAt, size int64) (Bundle, error) {
	h, err := safetensors.ReadHeader(r, size)
	if err != nil {
		return Bundle{}, err
	}
	if err := checkOrigin(h.Metadata); err != nil {
		return Bundle{}, err
	}
	list, err := h.Tensors(size - h.Data)
	if err != nil {
		return Bundle{}, err
	}
	sum := newChecksum(h.Metadata, list)
	arrays, err := safetensors.ReadArrays(r, h.Data, list, sum)
	if err != nil {
		return Bundle{}, err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != h.Metadata["sha256"] {
		return Bundle{}, errors.New("is damaged: its content does not match its checksum")
	}
	state := learners.State{Learner: h.Metadata["learner"], Arrays: arrays}
	b, err := decode(state, h.Metadata)
	if err != nil {
		return Bundle{}, fmt.Errorf("cannot be used: %w", err)
	}
	return b, nil
}

// checkOrigin returns an error for a file of another program or of a newer version.
func checkOrigin(metadata map[string]string) error {
	if f, ok := metadata["format"]; !ok {
		return errors.New("is a safetensors file, but not a model of mercer: its metadata contain no format")
	} else if f != format {
		return fmt.Errorf("is a safetensors file, but not a model of mercer: its format is %q", f)
	}
	v, err := strconv.Atoi(metadata["version"])
	switch {
	case err != nil || v < 1 || strconv.Itoa(v) != metadata["version"]:
		return fmt.Errorf("is damaged: its version is %q", metadata["version"])
	case v > version:
		return fmt.Errorf("was made by a newer mercer: its version is %d, but this mercer reads only versions up to %d: update mercer", v, version)
	}
	return nil
}

func decode(state learners.State, metadata map[string]string) (b Bundle, err error) {
	if err := json.Unmarshal([]byte(metadata["model"]), &state.Params); err != nil {
		return b, fmt.Errorf("its parameters: %w", err)
	}
	if text, ok := metadata["objects"]; ok {
		if b.Objects, state.Arrays, err = decodeObjects(text, state.Arrays); err != nil {
			return b, err
		}
	}
	if scores, ok := state.Arrays[calibration]; ok {
		b.Calibration = &learners.Calibration{Scores: scores}
	}
	if b.Model, err = learners.Restore(state); err != nil {
		return b, err
	}
	if text, ok := metadata["encoder"]; ok {
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		b.Encoder = &dataset.Encoder{}
		if err := d.Decode(b.Encoder); err != nil {
			return b, fmt.Errorf("its encoder: %w", err)
		}
	}
	if text, ok := metadata["fit"]; ok {
		if b.Fit = json.RawMessage(text); !json.Valid(b.Fit) {
			return b, errors.New("the report of its fit is not JSON")
		}
	}
	return b, b.check()
}
