package document

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"strings"
	"sync/atomic"
)

// unfinished is the suffix of a file that is still being written. Put removes it, and Delete does
// if Put never did.
const unfinished = ".part"

// localBucket is a bucket in whatever folder is at the path when an operation begins: a folder that
// is restored, swapped or mounted later replaces the previous one. While there is none, operations
// fail; writes into a folder that was moved away would be lost. All access goes through os.Root, so
// that no key can lead outside of it.
type localBucket struct {
	path string
	// opened is the folder of the last operation. After a replacement the old one is closed when its
	// operations have ended and nothing refers to it any more.
	opened atomic.Pointer[os.Root]
}

// open returns the folder that is at the path now. Its error is never fs.ErrNotExist, which would
// mean that an object is missing.
func (b *localBucket) open() (*os.Root, error) {
	there, err := os.Stat(b.path)
	if err != nil {
		return nil, fmt.Errorf("opening bucket folder: %s", err) //nolint:errorlint // see above
	}
	if opened := b.opened.Load(); opened != nil {
		if here, err := opened.Stat("."); err == nil && os.SameFile(here, there) {
			return opened, nil
		}
	}
	root, err := os.OpenRoot(b.path)
	if err != nil {
		return nil, fmt.Errorf("opening bucket folder: %s", err) //nolint:errorlint // see above
	}
	b.opened.Store(root)
	return root, nil
}

// Put writes to a temporary name in the same folder, syncs, and renames: after a power cut the
// object is whole or absent.
func (b *localBucket) Put(ctx context.Context, key string, content *io.SectionReader) error {
	root, err := b.open()
	if err != nil {
		return err
	}
	err = cmp.Or(ctx.Err(), checkFreeSpace(b.path, content.Size()))
	if err == nil {
		err = root.MkdirAll(path.Dir(key), 0o700)
	}
	if err != nil {
		return fmt.Errorf("storing %s: %w", key, err)
	}
	err = write(root, key+unfinished, content)
	if err == nil {
		err = root.Rename(key+unfinished, key)
	}
	if err == nil {
		err = syncFolder(root, path.Dir(key))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("storing %s: %w", key, err), remove(root, key+unfinished))
	}
	return nil
}

func write(root *os.Root, name string, content io.Reader) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// syncFolder makes a rename in a folder durable.
func syncFolder(root *os.Root, name string) error {
	opened, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(opened.Sync(), opened.Close())
}

// Get opens the file.
func (b *localBucket) Get(_ context.Context, key string) (io.ReadCloser, error) {
	root, err := b.open()
	if err != nil {
		return nil, err
	}
	file, err := root.Open(key)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", key, err)
	}
	return file, nil
}

// Delete removes the file, finished or not.
func (b *localBucket) Delete(_ context.Context, key string) error {
	root, err := b.open()
	if err != nil {
		return err
	}
	if err := errors.Join(remove(root, key+unfinished), remove(root, key)); err != nil {
		return fmt.Errorf("deleting %s: %w", key, err)
	}
	return nil
}

func remove(root *os.Root, name string) error {
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// List reads one folder. A file still being written is listed under its final key, so that the
// sweep can find what a crash left behind.
func (b *localBucket) List(_ context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		root, err := b.open()
		if err != nil {
			yield(Object{}, err)
			return
		}
		entries, err := fs.ReadDir(root.FS(), path.Clean(prefix))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield(Object{}, fmt.Errorf("listing %s: %w", prefix, err))
			return
		}
		for _, entry := range entries {
			info, err := entry.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue // settled while we were reading
			}
			if err != nil {
				yield(Object{}, fmt.Errorf("listing %s: %w", prefix, err))
				return
			}
			key := prefix + strings.TrimSuffix(entry.Name(), unfinished)
			if !yield(Object{Key: key, ModTime: info.ModTime()}, nil) {
				return
			}
		}
	}
}
