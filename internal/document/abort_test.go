package document_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"

	"drawbridge/internal/document"
	"drawbridge/internal/document/documenttest"
	"drawbridge/internal/lending"
)

// cutBody is a form of two files, cut within the second, and its Content-Type.
func cutBody() (body []byte, contentType string) {
	body, contentType = documenttest.Multipart(
		documenttest.File("a.pdf", documenttest.PDF(0)),
		documenttest.File("b.pdf", documenttest.PDF(100_000)))
	return body[:len(body)-50_000], contentType
}

func TestReadFormLeavesNothingWhenTheBodyBreaks(t *testing.T) {
	t.Parallel()
	reset := fmt.Errorf("read tcp: %w", syscall.ECONNRESET)
	for name, cause := range map[string]error{
		"connection reset": reset, "body cut short": io.ErrUnexpectedEOF,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachBucket(t, func(t *testing.T, bucket document.Bucket) {
				body, contentType := cutBody()
				broken := io.MultiReader(bytes.NewReader(body), iotest.ErrReader(cause))
				form, err := document.ReadForm(t.Context(), broken, contentType,
					document.DefaultLimits(), bucket)
				if lending.ErrorCode(err) != lending.CodeValidation || !errors.Is(err, cause) {
					t.Errorf("error %v, want a refusal caused by %v", err, cause)
				}
				if form != nil {
					t.Error("a form of a body that did not arrive would be remembered by its key")
				}
				if got := stored(t, bucket); len(got) > 0 {
					t.Errorf("%q left in the bucket", got)
				}
			})
		})
	}
}

// TestReadFormBrokenAnywhere breaks a body at each of its bytes.
func TestReadFormBrokenAnywhere(t *testing.T) {
	t.Parallel()
	bucket, _ := folderBucket(t)
	body, contentType := documenttest.Multipart(
		documenttest.File("a.png", documenttest.PNG()), documenttest.Value("metadata", "{}"))
	final := bytes.LastIndex(body, []byte("--\r\n")) + 2
	for at := range final {
		for name, end := range map[string]error{"cut": io.EOF, "broken": io.ErrUnexpectedEOF} {
			if at == 0 && name == "cut" {
				continue // an empty body is an empty form
			}
			reader := io.MultiReader(bytes.NewReader(body[:at]), iotest.ErrReader(end))
			form, err := document.ReadForm(t.Context(), reader, contentType,
				document.DefaultLimits(), bucket)
			if lending.ErrorCode(err) != lending.CodeValidation || (form == nil) != (name == "broken") {
				t.Fatalf("%s at byte %d of %d: form %v, error %v", name, at, final, form, err)
			}
		}
	}
	if got := stored(t, bucket); len(got) > 0 {
		t.Errorf("%q left in the bucket", got)
	}
}

func TestReadFormCancelled(t *testing.T) {
	t.Parallel()
	eachBucket(t, func(t *testing.T, bucket document.Bucket) {
		ctx, cancel := context.WithCancel(t.Context())
		body, contentType := cutBody()
		reader := io.MultiReader(bytes.NewReader(body), readerFunc(func([]byte) (int, error) {
			cancel()
			return 0, io.ErrUnexpectedEOF
		}))
		form, err := document.ReadForm(ctx, reader, contentType, document.DefaultLimits(), bucket)
		if !errors.Is(err, context.Canceled) || form != nil {
			t.Errorf("form %v, error %v, want context.Canceled", form, err)
		}
		if got := stored(t, bucket); len(got) > 0 {
			t.Errorf("%q left in the bucket", got)
		}
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestClientGoesAwayDuringUpload drops a real connection in the middle of a file.
func TestClientGoesAwayDuringUpload(t *testing.T) {
	t.Parallel()
	bucket, _ := folderBucket(t)
	result := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		form, err := document.ReadForm(r.Context(), r.Body, r.Header.Get("Content-Type"),
			document.DefaultLimits(), bucket)
		if form != nil {
			err = errors.Join(err, errors.New("a form came back"))
		}
		result <- err
	}))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	body, contentType := cutBody()
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
		contentType, len(body)+50_000, body)
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err == nil || strings.Contains(err.Error(), "a form came back") {
		t.Errorf("error %v", err)
	}
	if got := stored(t, bucket); len(got) > 0 {
		t.Errorf("%q left in the bucket", got)
	}
}

func TestReadFormStorageFails(t *testing.T) {
	t.Parallel()
	for failing, name := range []string{
		"first marker", "first file", "second marker", "second file",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var puts atomic.Int32
			bucket := s3Bucket(t, func(w http.ResponseWriter, r *http.Request) bool {
				return r.Method == http.MethodPut && puts.Add(1) == int32(failing)+1 && refuse(w, r)
			})
			form, err := read(t, bucket, documenttest.File("a.pdf", documenttest.PDF(0)),
				documenttest.File("b.png", documenttest.PNG()))
			if lending.ErrorCode(err) != lending.CodeInternal || form != nil {
				t.Errorf("form %v, error %v, want an internal error", form, err)
			}
			if got := stored(t, bucket); len(got) > 0 {
				t.Errorf("%q left in the bucket", got)
			}
		})
	}
}

// TestContentComesAfterItsDeletion: a storage that did not answer in time stores the file in the
// end. Its marker is still there, so that a sweep finds it.
func TestContentComesAfterItsDeletion(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	keys := make(chan string, 1)
	bucket := s3Bucket(t, func(_ http.ResponseWriter, r *http.Request) bool {
		_, key, found := strings.Cut(r.URL.Path, "/documents/")
		if r.Method != http.MethodPut || !found || ctx.Err() != nil {
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not notice that the client left
		keys <- "documents/" + key
		cancel()
		<-r.Context().Done()
		return true
	})
	body, contentType := documenttest.Multipart(documenttest.File("a.pdf", documenttest.PDF(0)))
	form, err := document.ReadForm(ctx, bytes.NewReader(body), contentType,
		document.DefaultLimits(), bucket)
	if !errors.Is(err, context.Canceled) || form != nil {
		t.Fatalf("form %v, error %v, want context.Canceled", form, err)
	}
	put(t, bucket, <-keys, "the late content")
	if swept := sweepAll(t, bucket); swept != (document.Swept{Removed: 1}) {
		t.Errorf("swept %+v", swept)
	}
	if got := stored(t, bucket); len(got) > 0 {
		t.Errorf("%q left in the bucket", got)
	}
}

// TestSettlingFails refuses every removal: files that stay must stay marked, so that a later sweep
// finds them.
func TestSettlingFails(t *testing.T) {
	t.Parallel()
	var refusing atomic.Bool
	bucket := s3Bucket(t, func(w http.ResponseWriter, r *http.Request) bool {
		return r.Method == http.MethodDelete && refusing.Load() && refuse(w, r)
	})
	good := documenttest.File("a.pdf", documenttest.PDF(0))
	discarded, err := read(t, bucket, good)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := read(t, bucket, good)
	if err != nil {
		t.Fatal(err)
	}
	refusing.Store(true)
	if discarded.Discard(t.Context()) == nil || kept.Keep(t.Context()) == nil {
		t.Error("settling reports no error")
	}
	_, err = read(t, bucket, good, documenttest.File("b.exe", nil))
	if lending.ErrorCode(err) != lending.CodeFileTypeNotAllowed {
		t.Errorf("error %v, want the refusal of the form", err)
	}
	if got := stored(t, bucket); len(got) != 6 {
		t.Errorf("%q left, want three documents and three markers", got)
	}
	refusing.Store(false)
	swept := sweepAll(t, bucket, kept.Files[0].Key)
	if swept != (document.Swept{Kept: 1, Removed: 2}) {
		t.Errorf("swept %+v", swept)
	}
	if got := stored(t, bucket); len(got) != 1 || got[0] != kept.Files[0].Key {
		t.Errorf("%q left, want the kept file", got)
	}
}

func TestReadFormWithoutSpace(t *testing.T) {
	bucket, _ := folderBucket(t)
	t.Setenv("TMPDIR", "/nonexistent")
	form, err := read(t, bucket, documenttest.File("a.pdf", documenttest.PDF(0)))
	if lending.ErrorCode(err) != lending.CodeInternal || form != nil {
		t.Errorf("form %v, error %v, want an internal error", form, err)
	}
}
