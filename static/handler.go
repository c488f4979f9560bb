package static

import (
	"net/http"
	"strconv"
	"strings"

	"drawbridge/internal/compress"
)

// Cache lifetimes. The content behind a hashed name never changes. That behind a plain name
// may change with a release, so browsers revalidate it and mostly get a 304.
const (
	cacheForever = "public, max-age=31536000, immutable"
	cacheAsk     = "public, no-cache"
)

// Handler serves the files under Prefix by plain and hashed name, gzipped if the browser
// accepts that. Any other path answers 404.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		name := strings.TrimPrefix(r.URL.Path, Prefix)
		file, ok := load().byPath[name]
		if !ok {
			http.NotFound(w, r)
			return
		}
		header := w.Header()
		header.Set("Content-Type", file.contentType)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Vary", "Accept-Encoding")
		header.Set("ETag", file.etag)
		header.Set("Cache-Control", cacheForever)
		if Has(name) {
			header.Set("Cache-Control", cacheAsk)
		}
		if r.Header.Get("If-None-Match") == file.etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		body := file.body
		if compress.Accepted(r) {
			if zipped := file.zipped(); zipped != nil {
				header.Set("Content-Encoding", "gzip")
				body = zipped
			}
		}
		header.Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(http.StatusOK)
		if r.Method == http.MethodGet {
			_, _ = w.Write(body) // a client that has disconnected needs no report
		}
	})
}
