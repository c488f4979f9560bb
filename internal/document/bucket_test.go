package document_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"drawbridge/internal/document"
)

// folderBucket opens a bucket in a folder of the test's own.
func folderBucket(t testing.TB) (bucket document.Bucket, folder string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "blobs")
	return openBucket(t, "file://"+folder), folder
}

// s3Bucket opens a bucket on an S3 server of the test's own. Each request passes through gate
// first, which may be nil, and which has answered it if it returns true.
func s3Bucket(
	t testing.TB, gate func(http.ResponseWriter, *http.Request) bool,
) document.Bucket {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("certificates"); err != nil {
		t.Fatal(err)
	}
	storage := gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gate == nil || !gate(w, r) {
			storage.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return openBucket(t, "s3://key:secret@certificates?prefix=/drawbridge&endpoint="+server.URL)
}

func openBucket(t testing.TB, url string) document.Bucket {
	t.Helper()
	bucket, err := document.OpenBucket(url)
	if err != nil {
		t.Fatal(err)
	}
	return bucket
}

// eachBucket runs a test on both implementations.
func eachBucket(t *testing.T, test func(t *testing.T, bucket document.Bucket)) {
	t.Helper()
	t.Run("folder", func(t *testing.T) {
		t.Parallel()
		bucket, _ := folderBucket(t)
		test(t, bucket)
	})
	t.Run("s3", func(t *testing.T) {
		t.Parallel()
		test(t, s3Bucket(t, nil))
	})
}

// stored returns the keys of all objects in a bucket, documents and markers.
func stored(t testing.TB, bucket document.Bucket) []string {
	t.Helper()
	keys := []string{}
	for _, prefix := range []string{"documents/", "pending/"} {
		for object, err := range bucket.List(t.Context(), prefix) {
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, object.Key)
		}
	}
	slices.Sort(keys)
	return keys
}

func section(content string) *io.SectionReader {
	return io.NewSectionReader(strings.NewReader(content), 0, int64(len(content)))
}

func put(t testing.TB, bucket document.Bucket, key, content string) {
	t.Helper()
	if err := bucket.Put(t.Context(), key, section(content)); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, bucket document.Bucket, key string) string {
	t.Helper()
	opened, err := bucket.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	content, err := io.ReadAll(opened)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestBucketReturnsWhatWasPut(t *testing.T) {
	t.Parallel()
	eachBucket(t, func(t *testing.T, bucket document.Bucket) {
		large := strings.Repeat("certificate ", 1<<20)
		contents := map[string]string{
			"documents/large": large,
			"documents/small": "x",
			"documents/empty": "",
		}
		for key, content := range contents {
			put(t, bucket, key, content)
		}
		for key, content := range contents {
			if got := get(t, bucket, key); got != content {
				t.Errorf("%s came back with %d bytes, want %d", key, len(got), len(content))
			}
		}
		want := []string{"documents/empty", "documents/large", "documents/small"}
		if got := stored(t, bucket); !slices.Equal(got, want) {
			t.Errorf("listed %q, want %q", got, want)
		}
	})
}

// A folder that is swapped, restored or mounted while the process runs is the bucket from then on;
// while there is none, no object counts as missing and nothing is stored out of sight.
func TestBucketFollowsItsFolder(t *testing.T) {
	t.Parallel()
	bucket, path := folderBucket(t)
	put(t, bucket, "documents/old", "old")
	underWay, err := bucket.Get(t.Context(), "documents/old")
	if err != nil {
		t.Fatal(err)
	}
	defer underWay.Close()
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	if bucket.Put(t.Context(), "documents/lost", section("lost")) == nil {
		t.Error("without its folder the bucket stored")
	}
	_, err = bucket.Get(t.Context(), "documents/old")
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without its folder the error is %v", err)
	}
	if err := os.CopyFS(path, os.DirFS(path+".away")); err != nil {
		t.Fatal(err)
	}
	put(t, bucket, "documents/new", "new")
	if err := os.RemoveAll(path + ".away"); err != nil {
		t.Fatal(err)
	}
	put(t, bucket, "documents/newer", "newer")
	want := []string{"documents/new", "documents/newer", "documents/old"}
	if got := stored(t, bucket); !slices.Equal(got, want) {
		t.Errorf("the bucket holds %q, want %q", got, want)
	}
	if content, err := io.ReadAll(underWay); err != nil || string(content) != "old" {
		t.Errorf("what was being read came as %q, %v", content, err)
	}
}

func TestBucketAbsentObject(t *testing.T) {
	t.Parallel()
	eachBucket(t, func(t *testing.T, bucket document.Bucket) {
		if _, err := bucket.Get(t.Context(), "documents/none"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("getting an absent object: %v, want fs.ErrNotExist", err)
		}
		if err := bucket.Delete(t.Context(), "documents/none"); err != nil {
			t.Errorf("deleting an absent object: %v", err)
		}
		put(t, bucket, "documents/one", "content")
		if err := bucket.Delete(t.Context(), "documents/one"); err != nil {
			t.Fatal(err)
		}
		if got := stored(t, bucket); len(got) > 0 {
			t.Errorf("%q left after deleting", got)
		}
	})
}

func TestBucketListEndsEarly(t *testing.T) {
	t.Parallel()
	eachBucket(t, func(t *testing.T, bucket document.Bucket) {
		for i := range 3 {
			put(t, bucket, fmt.Sprintf("pending/%d", i), "")
		}
		seen := 0
		for object, err := range bucket.List(t.Context(), "pending/") {
			if err != nil || object.ModTime.IsZero() {
				t.Fatalf("object %+v, error %v", object, err)
			}
			seen++
			break
		}
		if seen != 1 {
			t.Errorf("saw %d objects, want 1", seen)
		}
	})
}

func TestBucketRefusesCancelledContext(t *testing.T) {
	t.Parallel()
	eachBucket(t, func(t *testing.T, bucket document.Bucket) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := bucket.Put(ctx, "documents/late", section("content"))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want context.Canceled", err)
		}
		if got := stored(t, bucket); len(got) > 0 {
			t.Errorf("%q stored all the same", got)
		}
	})
}

func TestProbe(t *testing.T) {
	t.Parallel()
	eachBucket(t, func(t *testing.T, bucket document.Bucket) {
		if err := document.Probe(t.Context(), bucket); err != nil {
			t.Errorf("probing a working bucket: %v", err)
		}
		for object, err := range bucket.List(t.Context(), "probe/") {
			t.Errorf("probe left %q behind: %v", object.Key, err)
		}
	})
	for name, gate := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"refuses everything": refuse,
		"reads something else": func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodGet {
				_, _ = w.Write([]byte("something else"))
			}
			return r.Method == http.MethodGet
		},
		"does not delete": func(w http.ResponseWriter, r *http.Request) bool {
			return r.Method == http.MethodDelete && refuse(w, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if document.Probe(t.Context(), s3Bucket(t, gate)) == nil {
				t.Error("the bucket passed")
			}
		})
	}
}

// refuse answers a request to S3 as if the credentials did not allow it.
func refuse(w http.ResponseWriter, _ *http.Request) bool {
	w.WriteHeader(http.StatusForbidden)
	return true
}

func TestFolderKeepsKeysInside(t *testing.T) {
	t.Parallel()
	bucket, folder := folderBucket(t)
	outside := filepath.Join(filepath.Dir(folder), "outside")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"../outside", "documents/../../outside", outside, "link"} {
		if opened, err := bucket.Get(t.Context(), key); err == nil {
			opened.Close()
			t.Errorf("%q was opened", key)
		}
	}
	if err := bucket.Put(t.Context(), "../escaped", section("x")); err == nil {
		t.Error("a key above the folder was written")
	}
}

func TestFolderFailedPutLeavesNothing(t *testing.T) {
	t.Parallel()
	bucket, folder := folderBucket(t)
	// A folder in the place of the object makes the last step fail.
	if err := os.MkdirAll(filepath.Join(folder, "documents/taken/inner"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := bucket.Put(t.Context(), "documents/taken", section("content")); err == nil {
		t.Fatal("no error")
	}
	if _, err := os.Stat(filepath.Join(folder, "documents/taken.part")); !os.IsNotExist(err) {
		t.Errorf("the unfinished file is still there: %v", err)
	}
}

func TestFolderInterruptedPutIsListedAndDeleted(t *testing.T) {
	t.Parallel()
	bucket, folder := folderBucket(t)
	put(t, bucket, "documents/whole", "content")
	left := filepath.Join(folder, "documents/cut.part")
	if err := os.WriteFile(left, []byte("con"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, bucket); !slices.Equal(got, []string{"documents/cut", "documents/whole"}) {
		t.Errorf("listed %q", got)
	}
	if _, err := bucket.Get(t.Context(), "documents/cut"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an unfinished object was opened: %v", err)
	}
	if err := bucket.Delete(t.Context(), "documents/cut"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("the unfinished file is still there: %v", err)
	}
}

func TestFolderIsPrivate(t *testing.T) {
	t.Parallel()
	bucket, folder := folderBucket(t)
	put(t, bucket, "documents/one", "content")
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s may be read by others: %s", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestS3ReportsRefusal(t *testing.T) {
	t.Parallel()
	bucket := s3Bucket(t, refuse)
	if err := bucket.Put(t.Context(), "documents/one", section("content")); err == nil {
		t.Error("Put: no error")
	}
	_, err := bucket.Get(t.Context(), "documents/one")
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Get: %v, want an error that does not mean absence", err)
	}
	if err := bucket.Delete(t.Context(), "documents/one"); err == nil {
		t.Error("Delete: no error")
	}
	var listed error
	for _, err := range bucket.List(t.Context(), "documents/") {
		listed = err
	}
	if listed == nil {
		t.Error("List: no error")
	}
}

func TestS3SendsOnePlainRequestPerObject(t *testing.T) {
	t.Parallel()
	requests := make(chan string, 10)
	bucket := s3Bucket(t, func(_ http.ResponseWriter, r *http.Request) bool {
		requests <- fmt.Sprintf("%s %s md5=%t type=%s", r.Method, r.URL.RequestURI(),
			r.Header.Get("Content-MD5") != "", r.Header.Get("Content-Type"))
		return false
	})
	content := bytes.Repeat([]byte("0123456789"), 2<<20)
	err := bucket.Put(t.Context(), "documents/one",
		io.NewSectionReader(bytes.NewReader(content), 0, int64(len(content))))
	if err != nil {
		t.Fatal(err)
	}
	want := "PUT /certificates/drawbridge/documents/one md5=true type=application/octet-stream"
	if got := <-requests; got != want {
		t.Errorf("request %q, want %q", got, want)
	}
	if len(requests) > 0 {
		t.Errorf("a second request: %q", <-requests)
	}
}

func TestOpenBucketRefusesBadURLs(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ url, mention string }{
		"empty":               {"", "file:///folder"},
		"not a URL":           {"s3://key:hunter2@bucket\x7f", "not a URL"},
		"other scheme":        {"gs://bucket", `"gs"`},
		"relative folder":     {"file://blobs/here", "file:///absolute/path"},
		"folder is a file":    {"file://" + blocked, "creating bucket folder"},
		"no bucket":           {"s3://?region=eu-central-1", "s3://BUCKET"},
		"path behind bucket":  {"s3://bucket/folder", "s3://BUCKET"},
		"unknown setting":     {"s3://key:hunter2@bucket?regoin=x", `"regoin"`},
		"malformed settings":  {"s3://key:hunter2@bucket?region=%zz", "malformed"},
		"endpoint, no scheme": {"s3://key:hunter2@bucket?endpoint=minio:9000", "https://host"},
		"endpoint with path":  {"s3://key:hunter2@bucket?endpoint=https://minio/x", "https://host"},
		"no credentials":      {"s3://bucket", "AWS_ACCESS_KEY_ID"},
		"key without secret":  {"s3://key@bucket", "KEY:SECRET"},
		"secret without key":  {"s3://:hunter2@bucket", "KEY:SECRET"},
		"unknown credentials": {"s3://bucket?credentials=magic", "credentials=magic"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := document.OpenBucket(test.url)
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), test.mention) {
				t.Errorf("error %q does not mention %q", err, test.mention)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error %q shows the secret", err)
			}
		})
	}
}

func TestOpenBucketFindsCredentials(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	for _, url := range []string{"s3://bucket", "s3://k:s@bucket", "s3://bucket?credentials=iam"} {
		if _, err := document.OpenBucket(url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}
