package document

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"
)

// The two folders of a bucket; see the package comment.
const (
	documents = "documents/"
	pending   = "pending/"
)

// documentKey is the key of a file's content.
func documentKey(uid uuid.UUID) string { return documents + uid.String() }

// markerKey is the key of the marker that exists until a file is settled.
func markerKey(uid uuid.UUID) string { return pending + uid.String() }

// Store gives access to the stored documents.
type Store struct {
	bucket Bucket
}

// NewStore returns a store over bucket.
func NewStore(bucket Bucket) *Store { return &Store{bucket: bucket} }

// Bucket is where ReadForm stores the files.
func (s *Store) Bucket() Bucket { return s.bucket }

// Open returns the content of the document with the key File.Key; the caller closes it. The error
// for a missing one wraps fs.ErrNotExist.
func (s *Store) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	// Any other key would be a mistake, and might be that of a marker.
	uid, err := uuid.Parse(strings.TrimPrefix(key, documents))
	if err != nil || key != documentKey(uid) {
		return nil, fmt.Errorf("opening document: %q is not the key of a document", key)
	}
	return s.bucket.Get(ctx, key)
}

// Swept counts the results of a sweep.
type Swept struct {
	// Kept is the number of markers removed for documents that a row refers to.
	Kept int
	// Removed is the number of documents removed because no row refers to them.
	Removed int
}

// Sweep settles the files whose marker is older than before: those that isReferenced finds in the
// database stay and lose their marker, the others are removed. before must be further back than any
// request can last; a day is plenty. isReferenced gets a File.Key and must query the primary
// database. Where it fails nothing is touched, and the rest is swept all the same.
func (s *Store) Sweep(
	ctx context.Context, before time.Time,
	isReferenced func(ctx context.Context, key string) (bool, error),
) (Swept, error) {
	var swept Swept
	var errs []error
	for object, err := range s.bucket.List(ctx, pending) {
		if err != nil {
			return swept, errors.Join(append(errs, fmt.Errorf("sweeping documents: %w", err))...)
		}
		uid, err := uuid.Parse(strings.TrimPrefix(object.Key, pending))
		if err != nil || !object.ModTime.Before(before) {
			continue // not one of our markers, or the request may still be running
		}
		referenced, err := isReferenced(ctx, documentKey(uid))
		if err == nil {
			err = settle(ctx, s.bucket, uid, referenced)
		}
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("sweeping document %s: %w", uid, err))
		case referenced:
			swept.Kept++
		default:
			swept.Removed++
		}
	}
	return swept, errors.Join(errs...)
}

// settle settles a file. The marker goes last: a file that is not settled completely stays marked
// for the next sweep.
func settle(ctx context.Context, bucket Bucket, uid uuid.UUID, keep bool) error {
	if !keep {
		if err := bucket.Delete(ctx, documentKey(uid)); err != nil {
			return err
		}
	}
	return bucket.Delete(ctx, markerKey(uid))
}
