package document_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"

	"drawbridge/internal/document"
	"drawbridge/internal/document/documenttest"
	"drawbridge/internal/lending"
)

const mebibyte = 1 << 20

// upload streams count copies of a file as one form, so that the sender needs no memory for it, and
// calls each after every mebibyte of content.
func upload(content []byte, count int, each func()) (body io.ReadCloser, contentType string) {
	out, in := io.Pipe()
	form := multipart.NewWriter(in)
	write := func() error {
		for i := range count {
			part, err := form.CreateFormFile("files", fmt.Sprintf("%d.pdf", i))
			if err != nil {
				return err
			}
			for rest := content; len(rest) > 0; {
				n := min(mebibyte, len(rest))
				if _, err := part.Write(rest[:n]); err != nil {
					return err
				}
				rest = rest[n:]
				each()
			}
		}
		return form.Close()
	}
	go func() { in.CloseWithError(write()) }()
	return out, form.FormDataContentType()
}

// peak is the most memory that the heap used, beyond its size at the start.
type peak struct {
	mu          sync.Mutex
	start, most uint64
}

func newPeak() *peak {
	runtime.GC()
	p := &peak{}
	p.sample()
	p.start = p.most
	return p
}

func (p *peak) sample() {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.most = max(p.most, stats.HeapInuse)
}

func (p *peak) grown() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most - p.start
}

// remoteS3 is a bucket on an S3 server that keeps nothing: the one of the other tests keeps objects
// in the memory that is measured here.
func remoteS3(t testing.TB) document.Bucket {
	t.Helper()
	return s3Bucket(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut {
			return false
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.WriteHeader(http.StatusInternalServerError)
		}
		w.Header().Set("ETag", `"0"`)
		return true
	})
}

// TestUploadMemory sends uploads of the largest allowed size, and one far above it, over real
// connections. It is not parallel, because other tests would be measured too.
func TestUploadMemory(t *testing.T) {
	const allowed = 32 * mebibyte
	folder, _ := folderBucket(t)
	remote := remoteS3(t)
	tests := map[string]struct {
		bucket document.Bucket
		files  int
		code   lending.Code
	}{
		"50 MiB to a folder": {folder, 5, ""},
		"50 MiB to S3":       {remote, 5, ""},
		"500 MiB refused":    {folder, 50, lending.CodePayloadTooLarge},
	}
	content := documenttest.PDF(10 * mebibyte)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			result := make(chan error, 1)
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				form, err := document.ReadForm(r.Context(), r.Body, r.Header.Get("Content-Type"),
					document.DefaultLimits(), test.bucket)
				if err == nil {
					err = form.Keep(r.Context())
				}
				result <- err
			}))
			defer server.Close()
			measured := newPeak()
			body, contentType := upload(content, test.files, measured.sample)
			response, err := http.Post(server.URL, contentType, body)
			if err == nil {
				response.Body.Close()
			} else if test.code == "" {
				t.Fatal(err) // a refused upload may end with a closed connection
			}
			if got := lending.ErrorCode(<-result); got != test.code {
				t.Errorf("code %q, want %q", got, test.code)
			}
			t.Logf("heap grew by %.1f MiB", float64(measured.grown())/mebibyte)
			if measured.grown() >= allowed {
				t.Errorf("heap grew by %d bytes, want less than %d", measured.grown(), allowed)
			}
		})
	}
}

// TestHostileMemory reads forms that are small on the wire and made to grow. It counts everything
// that was ever allocated, so that no peak is missed.
func TestHostileMemory(t *testing.T) {
	const allowed = 8 * mebibyte
	entries := map[string]string{"xl/workbook.xml": "x"}
	for i := range 40_000 {
		entries[fmt.Sprintf("xl/%d", i)] = ""
	}
	manifest := bytes.Repeat([]byte("<Types/>"), 2*mebibyte)
	tests := map[string]documenttest.Part{
		"endless header": documenttest.Value(string(make([]byte, 9*mebibyte)), ""),
		"zip of forty thousand entries": documenttest.File("a.xlsx",
			documenttest.Zip(entries)),
		"zip that unpacks to 16 MiB": documenttest.File("a.docx", documenttest.Zip(
			map[string]string{"word/document.xml": "x", "[Content_Types].xml": string(manifest)})),
	}
	for name, part := range tests {
		t.Run(name, func(t *testing.T) {
			bucket, _ := folderBucket(t)
			body, contentType := documenttest.Multipart(part)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			form, err := document.ReadForm(t.Context(), bytes.NewReader(body), contentType,
				document.DefaultLimits(), bucket)
			runtime.ReadMemStats(&after)
			if _, refused := errors.AsType[*lending.Error](err); err != nil && !refused {
				t.Errorf("error %v", err)
			}
			if form == nil {
				t.Error("no form")
			}
			used := after.TotalAlloc - before.TotalAlloc
			t.Logf("allocated %.1f MiB (%v)", float64(used)/mebibyte, err)
			if used >= allowed {
				t.Errorf("allocated %d bytes, want less than %d", used, allowed)
			}
		})
	}
}

func BenchmarkUpload(b *testing.B) {
	folder, _ := folderBucket(b)
	buckets := map[string]document.Bucket{"folder": folder, "s3": remoteS3(b)}
	for _, size := range []int{10_000, 10 * mebibyte} {
		content := documenttest.PDF(size)
		for name, bucket := range buckets {
			b.Run(fmt.Sprintf("%s/5x%d", name, size), func(b *testing.B) {
				b.SetBytes(5 * int64(size))
				measured := newPeak()
				for b.Loop() {
					body, contentType := upload(content, 5, func() {})
					form, err := document.ReadForm(b.Context(), body, contentType,
						document.DefaultLimits(), bucket)
					if err != nil {
						b.Fatal(err)
					}
					measured.sample()
					if err := form.Discard(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(measured.grown())/mebibyte, "peak-MiB")
			})
		}
	}
}

// BenchmarkEmptyForm measures the path of every draw without documents.
func BenchmarkEmptyForm(b *testing.B) {
	bucket, _ := folderBucket(b)
	b.ReportAllocs()
	for b.Loop() {
		_, err := document.ReadForm(b.Context(), http.NoBody, "", document.DefaultLimits(), bucket)
		if err != nil {
			b.Fatal(err)
		}
	}
}
