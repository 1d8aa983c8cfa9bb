//go:build !windows

package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"
)

// begin makes the file that is to be at path. renameio would otherwise try the
// system's folder for temporary files.
func begin(path string) (pending, error) {
	return renameio.NewPendingFile(path,
		renameio.WithTempDir(filepath.Dir(path)), renameio.WithPermissions(mode), renameio.WithExistingPermissions())
}

// syncFolder forces the new name to the disk, where folders can be forced.
func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return fmt.Errorf("was written, but its folder cannot be opened to force it to the disk: %w", reason(err))
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("was written, but its folder could not be forced to the disk: %w", reason(err))
	}
	return nil
}
