package modelfile

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/atomicfile"
	"github.com/mercer-go/mercer/internal/safetensors"
	"github.com/mercer-go/mercer/learners"
)

// Save writes b to path. It creates or replaces the file atomically: see atomicfile.Write. After an error, an
// existing file is unchanged and there is no new file. Save refuses a model that Load could not read.
func Save(path string, b Bundle) error {
	if err := save(path, b); err != nil {
		return pathError(path, err)
	}
	return nil
}

func save(path string, b Bundle) error {
	p, err := prepare(b)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, p.write)
}

// Write writes to w what Save would write to a file. It refuses a model that Read could not read.
func Write(w io.Writer, b Bundle) error {
	p, err := prepare(b)
	if err == nil {
		err = p.write(w)
	}
	if err != nil {
		return fmt.Errorf("modelfile: write: %w", err)
	}
	return nil
}

// prepared is a bundle as it will be written. The function prepare has checked that it is readable.
type prepared struct {
	head   []byte
	list   []safetensors.Tensor
	arrays map[string]backend.Host[float64]
}

func prepare(b Bundle) (*prepared, error) {
	if b.Model == nil {
		return nil, errors.New("not saved: there is no model")
	}
	state := b.Model.State()
	var points []string
	if b.Objects != nil {
		state.Arrays, points = b.Objects.trim(state.Arrays)
	}
	if b.Calibration != nil {
		state.Arrays = maps.Clone(state.Arrays)
		state.Arrays[calibration] = b.Calibration.Scores
	}
	metadata, err := encode(state, b, points)
	if err != nil {
		return nil, fmt.Errorf("not saved: %w", err)
	}
	list := safetensors.Layout(state.Arrays)
	sum := newChecksum(metadata, list)
	if err := safetensors.WriteArrays(sum, list, state.Arrays); err != nil {
		return nil, err
	}
	metadata["sha256"] = hex.EncodeToString(sum.Sum(nil))
	head, err := safetensors.MarshalHeader(metadata, list)
	if err != nil {
		return nil, fmt.Errorf("not saved: %w", err)
	}
	return &prepared{head, list, state.Arrays}, nil
}

func (p *prepared) write(w io.Writer) error {
	if _, err := w.Write(p.head); err != nil {
		return err
	}
	return safetensors.WriteArrays(w, p.list, p.arrays)
}

// encode returns the metadata without the checksum. points lists the arrays that Objects.trim has shortened.
func encode(state learners.State, b Bundle, points []string) (map[string]string, error) {
	if d, _ := b.Model.Dims(); d == 0 {
		return nil, errors.New("the model is not fitted")
	}
	model, err := safetensors.Marshal(state.Params)
	if err != nil {
		return nil, err
	}
	metadata := map[string]string{
		"format":  format,
		"version": strconv.Itoa(version),
		"learner": state.Learner,
		"model":   model,
	}
	if b.Encoder != nil {
		if metadata["encoder"], err = safetensors.Marshal(b.Encoder); err != nil {
			return nil, err
		}
	}
	if b.Fit != nil {
		metadata["fit"] = string(b.Fit)
	}
	if b.Objects != nil {
		if metadata["objects"], err = safetensors.Marshal(savedObjects{*b.Objects, points}); err != nil {
			return nil, err
		}
	}
	_, err = decode(learners.State{Learner: state.Learner, Arrays: state.Arrays}, metadata)
	return metadata, err
}
