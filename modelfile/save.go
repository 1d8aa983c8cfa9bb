package modelfile

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/google/renameio/v2"
	"github.com/mercer-go/mercer/learners"
)

// Save writes b to path. The file appears, or is replaced, as a whole: it is
// written under another name in the same folder, forced to the disk and
// renamed. On an error there is no new file and an old one is as it was. A
// model that Load would refuse is not saved.
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
	metadata, err := encode(state, b)
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
	return replace(path, func(w io.Writer) error {
		if _, err := w.Write(head); err != nil {
			return err
		}
		return writeArrays(w, list, state.Arrays)
	})
}

// encode returns the metadata but for the checksum, and makes sure that they
// can be read back.
func encode(state learners.State, b Bundle) (map[string]string, error) {
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
	_, err = decode(learners.State{Learner: state.Learner, Arrays: state.Arrays}, metadata)
	return metadata, err
}

// replace writes path atomically. A symbolic link is followed: the file that it
// names is replaced, not the link.
func replace(path string, write func(io.Writer) error) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if info, err := os.Stat(path); err == nil {
		if err := regular(info); err != nil {
			return err
		}
	}
	// renameio would otherwise try the system's folder for temporary files.
	folder := filepath.Dir(path)
	f, err := renameio.NewPendingFile(path,
		renameio.WithTempDir(folder), renameio.WithPermissions(0o644), renameio.WithExistingPermissions())
	if err != nil {
		return err
	}
	defer f.Cleanup() // does nothing once the file has been renamed
	if err := write(f); err != nil {
		return err
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return err
	}
	return syncFolder(folder)
}

// syncFolder forces the new name to the disk, where folders can be forced.
func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("was written, but its folder could not be forced to the disk: %w", err)
	}
	return nil
}
