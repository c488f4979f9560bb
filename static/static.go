// Package static holds the files that browsers load: the console's styles and scripts, its
// icons, and the third-party files that `make vendor` fetches.
//
// Everything is embedded. Style sheets and scripts are small source files, each kind served
// as one bundle. Every name contains a hash of the content, so that browsers can cache a
// file for ever and still get each release at once.
package static

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"sync"

	"drawbridge/internal/compress"
)

// Prefix is the path under which Handler expects to be mounted.
const Prefix = "/static/"

// The bundles, for URL.
const (
	// Stylesheet is every file of css/ in name order.
	Stylesheet = "console.css"
	// Script is every file of js/ in name order.
	Script = "console.js"
)

// Third-party files, for URL and Has. A build without `make vendor` lacks them.
const (
	HTMX       = "vendor/htmx.min.js"
	HTMXStream = "vendor/hx-sse.js"
	Font       = "vendor/inter-latin.woff2"
)

// sprite holds the icons, which the style sheet draws.
const sprite = "vendor/icons.svg"

//go:embed css js img vendor
var files embed.FS

// asset is one served file.
type asset struct {
	contentType string
	body        []byte
	// zipped returns the gzip form, nil if it saves little.
	zipped func() []byte
	etag   string
}

// catalogue holds all files that can be served.
type catalogue struct {
	// byPath maps the path after Prefix, hashed or plain, to the file.
	byPath map[string]*asset
	// hashed maps a plain name to the name with its hash.
	hashed map[string]string
}

// load reads the embedded files once, on first use.
var load = sync.OnceValue(func() *catalogue {
	c := &catalogue{byPath: map[string]*asset{}, hashed: map[string]string{}}
	for _, dir := range []string{"img", "vendor"} {
		for _, name := range names(dir) {
			if name != sprite {
				c.add(name, read(name))
			}
		}
	}
	c.add(Script, bundle("js"))
	// Style sheets come last, because the addresses in them contain the other files' hashes.
	c.add(Stylesheet, c.rewriteURLs(append(bundle("css"), iconRules(read(sprite))...)))
	return c
})

// URL returns the address of a file by its plain name ("img/mark.svg"). For a name that is
// not embedded it returns the plain address, which answers 404, so that pages of a build
// without the third-party files still render.
func URL(name string) string { return Prefix + cmp.Or(load().hashed[name], name) }

// Has reports whether a file is part of this build.
func Has(name string) bool {
	_, ok := load().hashed[name]
	return ok
}

func (c *catalogue) add(name string, body []byte) {
	sum := sha256.Sum256(body)
	digest := hex.EncodeToString(sum[:])[:12]
	ext := path.Ext(name)
	file := &asset{
		contentType: ContentTypes[ext],
		body:        body,
		zipped:      compress.Lazily(body),
		etag:        `"` + digest + `"`,
	}
	hashed := strings.TrimSuffix(name, ext) + "." + digest + ext
	c.hashed[name] = hashed
	c.byPath[name] = file
	c.byPath[hashed] = file
}

var urlPattern = regexp.MustCompile(`url\("?([^")]+)"?\)`)

// rewriteURLs inserts hashed addresses into a style sheet. Names are relative to this
// folder; a name that is not embedded is kept.
func (c *catalogue) rewriteURLs(css []byte) []byte {
	return urlPattern.ReplaceAllFunc(css, func(match []byte) []byte {
		name := urlPattern.FindSubmatch(match)[1]
		if hashed, ok := c.hashed[string(name)]; ok {
			return []byte(`url("` + Prefix + hashed + `")`)
		}
		return match
	})
}

// symbol matches one icon of the sprite.
var symbol = regexp.MustCompile(`<symbol id="([a-z0-9-]+)"[^>]*>(.*?)</symbol>`)

// iconRules generates a class for each icon of a sprite, with the icon as a mask. An icon that is
// used sixty times on a page is then a word each time, and takes the colour of the text around it.
func iconRules(sprite []byte) []byte {
	var rules bytes.Buffer
	quote := strings.NewReplacer(`"`, `'`, "#", "%23")
	for _, found := range symbol.FindAllSubmatch(sprite, -1) {
		fmt.Fprintf(&rules, `.i-%s{--i:url("data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' `+
			`viewBox='0 0 24 24' fill='none' stroke='%%23000' stroke-width='2' stroke-linecap='round' `+
			`stroke-linejoin='round'>%s</svg>")}`+"\n", found[1], quote.Replace(string(found[2])))
	}
	return rules.Bytes()
}

// bundle concatenates the files of a folder in name order.
func bundle(dir string) []byte {
	var all bytes.Buffer
	for _, name := range names(dir) {
		all.Write(read(name))
		all.WriteByte('\n')
	}
	return all.Bytes()
}

// names lists the servable files of an embedded folder in order. The README that keeps the
// vendor folder in a plain clone is not servable.
func names(dir string) []string {
	var found []string
	entries, _ := fs.ReadDir(files, dir) // the folders are fixed at compile time
	for _, entry := range entries {
		if !entry.IsDir() && path.Ext(entry.Name()) != ".md" {
			found = append(found, path.Join(dir, entry.Name()))
		}
	}
	return found
}

func read(name string) []byte {
	body, _ := files.ReadFile(name) // ReadDir has just listed the name
	return body
}

// ContentTypes maps extensions to types, because the tables of operating systems differ.
var ContentTypes = map[string]string{
	".css":   "text/css; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".svg":   "image/svg+xml",
	".txt":   "text/plain; charset=utf-8",
	".woff2": "font/woff2",
}
