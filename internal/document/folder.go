package document

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"strings"
)

// unfinished ends the name of a file that is still being written. Put removes
// it, and Delete does when Put never came to it.
const unfinished = ".part"

// folder is a bucket in a local folder. All access goes through os.Root, so
// that no key can lead outside of it.
type folder struct {
	root *os.Root
}

// Put writes beside the final name, syncs, and renames: after a power cut the
// object is whole or absent.
func (f *folder) Put(ctx context.Context, key string, content *io.SectionReader) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("storing %s: %w", key, err)
	}
	if err := checkFreeSpace(f.root.Name(), content.Size()); err != nil {
		return fmt.Errorf("storing %s: %w", key, err)
	}
	if err := f.root.MkdirAll(path.Dir(key), 0o700); err != nil {
		return fmt.Errorf("storing %s: %w", key, err)
	}
	err := f.write(key+unfinished, content)
	if err == nil {
		err = f.root.Rename(key+unfinished, key)
	}
	if err == nil {
		err = f.sync(path.Dir(key))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("storing %s: %w", key, err), f.remove(key+unfinished))
	}
	return nil
}

func (f *folder) write(name string, content io.Reader) error {
	file, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// sync makes a rename in a folder durable.
func (f *folder) sync(name string) error {
	opened, err := f.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(opened.Sync(), opened.Close())
}

// Get opens the file.
func (f *folder) Get(_ context.Context, key string) (io.ReadCloser, error) {
	file, err := f.root.Open(key)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", key, err)
	}
	return file, nil
}

// Delete removes the file, finished or not.
func (f *folder) Delete(_ context.Context, key string) error {
	if err := errors.Join(f.remove(key+unfinished), f.remove(key)); err != nil {
		return fmt.Errorf("deleting %s: %w", key, err)
	}
	return nil
}

func (f *folder) remove(name string) error {
	if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// List reads one folder. A file still being written is listed under the key
// that it will have, so that what a crash left behind can be found.
func (f *folder) List(_ context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		entries, err := fs.ReadDir(f.root.FS(), path.Clean(prefix))
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
