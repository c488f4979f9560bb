package static

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
)

func get(t *testing.T, path string, header ...string) *http.Response {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	recorder := httptest.NewRecorder()
	Handler().ServeHTTP(recorder, request)
	return recorder.Result()
}

func body(t *testing.T, response *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestURL(t *testing.T) {
	t.Parallel()
	hashed := regexp.MustCompile(`^/static/console\.[0-9a-f]{12}\.css$`)
	if got := URL(Stylesheet); !hashed.MatchString(got) {
		t.Errorf("URL(%q) = %q, want a name with a hash of the content", Stylesheet, got)
	}
	if got, want := URL("vendor/absent.js"), "/static/vendor/absent.js"; got != want {
		t.Errorf("URL of a file that is not embedded = %q, want %q", got, want)
	}
	if Has("vendor/absent.js") || Has("vendor/README.md") || !Has(Script) {
		t.Error("Has must know the bundles and neither absent files nor the placeholder")
	}
}

func TestURLChangesWithContent(t *testing.T) {
	t.Parallel()
	first := &catalogue{byPath: map[string]*asset{}, hashed: map[string]string{}}
	second := &catalogue{byPath: map[string]*asset{}, hashed: map[string]string{}}
	first.add("a.css", []byte("a{}"))
	second.add("a.css", []byte("b{}"))
	if first.hashed["a.css"] == second.hashed["a.css"] {
		t.Errorf("both contents are served as %q", first.hashed["a.css"])
	}
}

func TestHandler(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, path         string
		status             int
		cache, contentType string
	}{
		{"hashed name", URL(Stylesheet), 200, cacheForever, "text/css; charset=utf-8"},
		{"plain name", "/static/console.js", 200, cacheAsk, "text/javascript; charset=utf-8"},
		{"image", URL("img/mark.svg"), 200, cacheForever, "image/svg+xml"},
		{"wrong hash", "/static/console.000000000000.css", 404, "", ""},
		{"source of a bundle", "/static/css/00-tokens.css", 404, "", ""},
		{"placeholder", "/static/vendor/README.md", 404, "", ""},
		{"folder", "/static/", 404, "", ""},
		{"climbing out", "/static/../static.go", 404, "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			response := get(t, test.path)
			if response.StatusCode != test.status {
				t.Fatalf("status = %d, want %d", response.StatusCode, test.status)
			}
			if test.status != http.StatusOK {
				return
			}
			if got := response.Header.Get("Cache-Control"); got != test.cache {
				t.Errorf("Cache-Control = %q, want %q", got, test.cache)
			}
			if got := response.Header.Get("Content-Type"); got != test.contentType {
				t.Errorf("Content-Type = %q, want %q", got, test.contentType)
			}
			if response.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Error("the type may be guessed")
			}
		})
	}
}

func TestHandlerRefusesOtherMethods(t *testing.T) {
	t.Parallel()
	recorder := httptest.NewRecorder()
	Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, URL(Script), http.NoBody))
	if recorder.Code != http.StatusMethodNotAllowed || recorder.Header().Get("Allow") == "" {
		t.Errorf("POST = %d, Allow %q", recorder.Code, recorder.Header().Get("Allow"))
	}
}

func TestHandlerAnswersNotModified(t *testing.T) {
	t.Parallel()
	tag := get(t, URL(Script)).Header.Get("ETag")
	response := get(t, "/static/console.js", "If-None-Match", tag)
	if response.StatusCode != http.StatusNotModified || body(t, response) != "" {
		t.Errorf("status = %d, want 304 without a body", response.StatusCode)
	}
}

func TestHandlerZips(t *testing.T) {
	t.Parallel()
	plain := body(t, get(t, URL(Stylesheet)))
	for _, test := range []struct {
		accept string
		zipped bool
	}{
		{"", false},
		{"gzip", true},
		{"br, gzip;q=0.5", true},
		{"*", true},
		{"gzip;q=0", false},
		{"gzip;q=0.0, deflate", false},
		{"br", false},
	} {
		response := get(t, URL(Stylesheet), "Accept-Encoding", test.accept)
		text := body(t, response)
		if zipped := response.Header.Get("Content-Encoding") == "gzip"; zipped != test.zipped {
			t.Errorf("Accept-Encoding %q: zipped = %v, want %v", test.accept, zipped, test.zipped)
		} else if zipped {
			reader, err := gzip.NewReader(bytes.NewReader([]byte(text)))
			if err != nil {
				t.Fatal(err)
			}
			unzipped, err := io.ReadAll(reader)
			if err != nil || string(unzipped) != plain {
				t.Errorf("the gzip form differs from the plain one (%v)", err)
			}
		}
	}
}

func TestRewriteURLs(t *testing.T) {
	t.Parallel()
	c := &catalogue{hashed: map[string]string{"vendor/a.woff2": "vendor/a.0123.woff2"}}
	got := string(c.rewriteURLs([]byte(`x{src:url("vendor/a.woff2")} y{src:url(vendor/b.woff2)}`)))
	want := `x{src:url("/static/vendor/a.0123.woff2")} y{src:url(vendor/b.woff2)}`
	if got != want {
		t.Errorf("rewritten:\n%s\nwant:\n%s", got, want)
	}
}
