package document_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"drawbridge/internal/document"
	"drawbridge/internal/document/documenttest"
)

// future is after every marker that a test has made.
func future() time.Time { return time.Now().Add(time.Hour) }

// sweepAll sweeps every marker; rows are the keys that the database refers to.
func sweepAll(t *testing.T, bucket document.Bucket, rows ...string) document.Swept {
	t.Helper()
	swept, err := document.NewStore(bucket).Sweep(t.Context(), future(),
		func(_ context.Context, key string) (bool, error) { return slices.Contains(rows, key), nil })
	if err != nil {
		t.Fatal(err)
	}
	return swept
}

// abandoned is a file whose process died before it was settled.
func abandoned(t *testing.T, bucket document.Bucket) document.File {
	t.Helper()
	form, err := read(t, bucket, documenttest.File("a.pdf", documenttest.PDF(0)))
	if err != nil {
		t.Fatal(err)
	}
	return form.Files[0]
}

func TestSweepAsksTheDatabase(t *testing.T) {
	t.Parallel()
	eachBucket(t, func(t *testing.T, bucket document.Bucket) {
		orphan, committed := abandoned(t, bucket), abandoned(t, bucket)
		settled, err := read(t, bucket, documenttest.File("a.png", documenttest.PNG()))
		if err != nil {
			t.Fatal(err)
		}
		if err := settled.Keep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if swept := sweepAll(t, bucket, committed.Key); swept != (document.Swept{Kept: 1, Removed: 1}) {
			t.Errorf("swept %+v", swept)
		}
		// No row refers to the settled file either, but the sweep must not touch it.
		want := []string{committed.Key, settled.Files[0].Key}
		slices.Sort(want)
		if got := stored(t, bucket); !slices.Equal(got, want) {
			t.Errorf("%q left, want %q and not %q", got, want, orphan.Key)
		}
		if swept := sweepAll(t, bucket); swept != (document.Swept{}) {
			t.Errorf("a second sweep did %+v", swept)
		}
	})
}

func TestSweepLeavesRunningRequestsAlone(t *testing.T) {
	t.Parallel()
	eachBucket(t, func(t *testing.T, bucket document.Bucket) {
		file := abandoned(t, bucket)
		put(t, bucket, "pending/not-a-marker", "")
		past := time.Now().Add(-time.Hour)
		swept, err := document.NewStore(bucket).Sweep(t.Context(), past,
			func(context.Context, string) (bool, error) { return false, nil })
		if err != nil || swept != (document.Swept{}) {
			t.Errorf("swept %+v, error %v", swept, err)
		}
		sweepAll(t, bucket, file.Key)
		if got := stored(t, bucket); !slices.Equal(got, []string{file.Key, "pending/not-a-marker"}) {
			t.Errorf("%q left", got)
		}
	})
}

func TestSweepWithoutDatabaseTouchesNothing(t *testing.T) {
	t.Parallel()
	eachBucket(t, func(t *testing.T, bucket document.Bucket) {
		first, second := abandoned(t, bucket), abandoned(t, bucket)
		down := errors.New("connection refused")
		swept, err := document.NewStore(bucket).Sweep(t.Context(), future(),
			func(_ context.Context, key string) (bool, error) {
				if key == first.Key {
					return false, down
				}
				return false, nil
			})
		if !errors.Is(err, down) || swept != (document.Swept{Removed: 1}) {
			t.Errorf("swept %+v, error %v", swept, err)
		}
		if got := stored(t, bucket); len(got) != 2 || got[0] != first.Key {
			t.Errorf("%q left, want the first file and its marker, not %q", got, second.Key)
		}
	})
}

// TestSweepAfterCrashDuringWrite finds half a file that was never renamed.
func TestSweepAfterCrashDuringWrite(t *testing.T) {
	t.Parallel()
	bucket, folder := folderBucket(t)
	file := abandoned(t, bucket)
	whole := filepath.Join(folder, file.Key)
	if err := os.Rename(whole, whole+".part"); err != nil {
		t.Fatal(err)
	}
	sweepAll(t, bucket)
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSweepReportsListing(t *testing.T) {
	t.Parallel()
	bucket, folder := folderBucket(t)
	if err := os.WriteFile(filepath.Join(folder, "pending"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := document.NewStore(bucket).Sweep(t.Context(), future(),
		func(context.Context, string) (bool, error) { return false, nil })
	if err == nil {
		t.Error("no error, although the markers cannot be listed")
	}
}

func TestStoreOpensDocumentsOnly(t *testing.T) {
	t.Parallel()
	bucket, _ := folderBucket(t)
	file := abandoned(t, bucket)
	store := document.NewStore(bucket)
	marker := "pending/" + file.UID.String()
	for _, key := range []string{"", marker, "../etc/passwd", "documents/../" + marker} {
		if opened, err := store.Open(t.Context(), key); err == nil {
			opened.Close()
			t.Errorf("%q was opened", key)
		}
	}
	_, err := store.Open(t.Context(), "documents/00000000-0000-4000-8000-000000000000")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent document: %v, want fs.ErrNotExist", err)
	}
}
