//go:build !windows

package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

// lockedFile is a pending file with a lock that ends with the process.
type lockedFile struct {
	*renameio.PendingFile
	lock *os.File
}

// begin creates the temporary file in the folder of path.
func begin(path string) (pending, error) {
	for {
		f, err := renameio.NewPendingFile(path,
			renameio.WithTempDir(filepath.Dir(path)), renameio.WithPermissions(mode), renameio.WithExistingPermissions())
		if err != nil {
			return nil, err
		}
		locked := &lockedFile{f, lock(f.File)}
		opened, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, locked.Cleanup())
		}
		if current, err := os.Lstat(f.Name()); err == nil && os.SameFile(opened, current) {
			return locked, nil
		}
		locked.release() // another process has removed the file before it was locked
		_ = f.Close()
	}
}

func (f *lockedFile) CloseAtomicallyReplace() error {
	defer f.release()
	return f.PendingFile.CloseAtomicallyReplace()
}

func (f *lockedFile) Cleanup() error {
	defer f.release()
	return f.PendingFile.Cleanup()
}

func (f *lockedFile) release() {
	if f.lock != nil {
		_ = f.lock.Close()
	}
	f.lock = nil
}

// lock locks f until the returned duplicate of f is closed. It returns nil if the file cannot be locked.
func lock(f *os.File) *os.File {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	file := os.NewFile(uintptr(fd), f.Name())
	if err := flock(fd, true); err != nil {
		_ = file.Close()
		return nil
	}
	return file
}

// removeOrphan removes a temporary file that is not locked: its process no longer runs.
func removeOrphan(name string) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if flock(fd, false) == nil {
		_ = os.Remove(name)
	}
}

// syncFolder flushes the entry of the new file in its folder to the disk if the system supports this.
func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return fmt.Errorf("was written, but its folder cannot be opened to force it to the disk: %w", reason(err))
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("was written, but its folder could not be forced to the disk: %w", reason(err))
	}
	return nil
}
