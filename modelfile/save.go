package modelfile

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/mercer-go/mercer/atomicfile"
	"github.com/mercer-go/mercer/learners"
)

// Save writes b to path. The file appears, or is replaced, as a whole: it is
// written under another name in the same folder, forced to the disk and
// renamed (package atomicfile: links are followed). On an error there is no new
// file and an old one is as it was. A model that Load would refuse is not saved.
func Save(path string, b Bundle) error {
	if err := save(path, b); err != nil {
		return pathError(path, err)
	}
	return nil
}

func save(path string, b Bundle) error {
	if b.Model == nil {
		return errors.New("not saved: there is no model")
	}
	state := b.Model.State()
	var points []string
	if b.Objects != nil {
		state.Arrays, points = b.Objects.trim(state.Arrays)
	}
	metadata, err := encode(state, b, points)
	if err != nil {
		return fmt.Errorf("not saved: %w", err)
	}
	list := layout(state.Arrays)
	sum := newChecksum(metadata, list)
	if err := writeArrays(sum, list, state.Arrays); err != nil {
		return err
	}
	metadata["sha256"] = hex.EncodeToString(sum.Sum(nil))
	head, err := marshalHeader(metadata, list)
	if err != nil {
		return fmt.Errorf("not saved: %w", err)
	}
	return atomicfile.Write(path, func(w io.Writer) error {
		if _, err := w.Write(head); err != nil {
			return err
		}
		return writeArrays(w, list, state.Arrays)
	})
}

// encode returns the metadata but for the checksum, and makes sure that they
// can be read back. points are the arrays that Objects.trim has shortened.
func encode(state learners.State, b Bundle, points []string) (map[string]string, error) {
	if d, _ := b.Model.Dims(); d == 0 {
		return nil, errors.New("the model is not fitted")
	}
	model, err := marshal(state.Params)
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
		if metadata["encoder"], err = marshal(b.Encoder); err != nil {
			return nil, err
		}
	}
	if b.Objects != nil {
		if metadata["objects"], err = marshal(savedObjects{*b.Objects, points}); err != nil {
			return nil, err
		}
	}
	_, err = decode(learners.State{Learner: state.Learner, Arrays: state.Arrays}, metadata)
	return metadata, err
}
