package document

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
)

// Bucket keeps objects under slash-separated keys that we choose. It has two
// implementations, a local folder and S3-compatible storage.
//
//nolint:interfacebloat // the four verbs of a storage, none of use without the others
type Bucket interface {
	// Put stores the whole of content under an unused key. The object appears complete or not at all.
	// If an error wraps errMayCome, it may appear later.
	Put(ctx context.Context, key string, content *io.SectionReader) error
	// Get opens an object; the caller closes it. The error for a missing one wraps fs.ErrNotExist.
	Get(ctx context.Context, key string) (io.ReadCloser, error)
	// Delete removes an object and whatever an interrupted Put left of it. A missing object is no
	// error.
	Delete(ctx context.Context, key string) error
	// List yields the objects whose key begins with prefix, which ends in a
	// slash, in no particular order.
	List(ctx context.Context, prefix string) iter.Seq2[Object, error]
}

// errMayCome means that an object may appear after its Put failed, and so even after its deletion.
var errMayCome = errors.New("it may be stored later")

// Object is an entry of a bucket's listing.
type Object struct {
	Key string
	// ModTime is when the object was written, according to the storage.
	ModTime time.Time
}

// OpenBucket opens the bucket that a URL names:
//
//	file:///var/lib/drawbridge/blobs
//	s3://BUCKET?region=eu-central-1
//	s3://KEY:SECRET@BUCKET?endpoint=https://minio.example:9000&prefix=drawbridge/
//
// A folder is created if it is missing. For S3, endpoint defaults to Amazon's,
// region to us-east-1 and prefix to none. Credentials come from the URL, else
// from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; with
// credentials=iam they come from the machine's role. OpenBucket does not
// connect to S3; Probe does.
func OpenBucket(rawURL string) (Bucket, error) {
	parsed, err := parseBucket(rawURL)
	if err != nil {
		return nil, err
	}
	switch parsed.Scheme {
	case "file":
		if err := os.MkdirAll(parsed.Path, 0o700); err != nil {
			return nil, fmt.Errorf("creating bucket folder: %w", err)
		}
		bucket := &localBucket{path: parsed.Path}
		_, err := bucket.open()
		return bucket, err
	case "s3":
		return openS3(parsed)
	}
	return nil, fmt.Errorf("bucket URL: scheme %q is not supported, use file:///folder or s3://bucket",
		parsed.Scheme)
}

// CheckBucket checks whether OpenBucket would accept the URL, and creates no folder.
func CheckBucket(rawURL string) error {
	parsed, err := parseBucket(rawURL)
	if err != nil {
		return err
	}
	if parsed.Scheme != "file" {
		_, err = OpenBucket(rawURL)
		return err
	}
	info, err := os.Stat(parsed.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // OpenBucket creates it
	case err != nil:
		return fmt.Errorf("opening bucket folder: %w", err)
	case !info.IsDir():
		return fmt.Errorf("opening bucket folder: %s is a file", parsed.Path)
	}
	return nil
}

func parseBucket(rawURL string) (*url.URL, error) {
	parsed, err := url.Parse(rawURL)
	if err != nil {
		// The error of url.Parse quotes the URL, which may hold a secret.
		return nil, errors.New("bucket URL: not a URL")
	}
	if parsed.Scheme == "file" &&
		(parsed.Host != "" || !filepath.IsAbs(parsed.Path) || parsed.RawQuery != "") {
		return nil, errors.New("bucket URL: a folder is written file:///absolute/path")
	}
	return parsed, nil
}

// Probe writes, reads and removes a small object, which shows whether the bucket exists and may be
// used.
func Probe(ctx context.Context, bucket Bucket) error {
	key := "probe/" + uuid.NewString()
	if err := bucket.Put(ctx, key, sectionOf([]byte(key))); err != nil {
		return fmt.Errorf("probing bucket: %w", err)
	}
	content, err := bucket.Get(ctx, key)
	if err == nil {
		var text []byte
		text, err = io.ReadAll(io.LimitReader(content, int64(len(key))))
		if err == nil && string(text) != key {
			err = errors.New("what was read is not what was written")
		}
		err = errors.Join(err, content.Close())
	}
	if err = errors.Join(err, bucket.Delete(ctx, key)); err != nil {
		return fmt.Errorf("probing bucket: %w", err)
	}
	return nil
}
