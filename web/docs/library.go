package docs

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/netip"
	"path"
	"strings"

	"drawbridge/internal/compress"
	"drawbridge/static"
)

// content holds the style sheet and the scripts of the pages, the guides in
// Markdown, the signature checking samples and the JSON Schemas of the events.
//
//go:embed assets guides/*.md samples schemas/*.json
var content embed.FS

// file is a served file.
type file struct {
	contentType string
	body        []byte
	// zipped returns the gzip form, nil if it saves little.
	zipped func() []byte
	etag   string
	// download is the file name for saving, empty to show the file.
	download string
	// lasting means that the address contains the content's hash.
	lasting bool
}

// library holds every file by its path below Prefix.
type library struct {
	files map[string]*file
	// doc is the document whose pages are being made: the partners', then the lender's.
	doc      *document
	options  Options
	sections []section
	// assets maps a plain asset name to its address.
	assets map[string]string
}

// newLibrary renders everything.
func newLibrary(options Options) (*library, error) {
	base, currency := ExampleBaseURL, options.Currency
	if options.BaseURL != nil {
		base = strings.TrimRight(options.BaseURL(), "/")
	}
	lib := &library{files: map[string]*file{}, assets: map[string]string{}, options: options}
	if err := lib.addContent(); err != nil {
		return nil, err
	}
	if err := lib.addDocument("", base, Document(base, currency), pages); err != nil {
		return nil, err
	}
	collection, err := lib.doc.makeCollection()
	if err != nil {
		return nil, err
	}
	stored := lib.add("/collection.json", "application/json", collection)
	stored.download = "drawbridge.postman_collection.json"
	lender, err := LenderDocument(base, currency)
	if err != nil {
		return nil, err
	}
	if err := lib.addDocument("/lender", base, lender, lenderPages); err != nil {
		return nil, err
	}
	lib.addSummary(origin(base))
	// The networks that webhooks come from, for partners' firewalls.
	networks := map[string][]netip.Prefix{"addresses": append([]netip.Prefix{}, options.Egress...)}
	body, err := json.Marshal(networks)
	if err != nil {
		return nil, fmt.Errorf("writing the networks of DRAWBRIDGE_EGRESS_CIDRS: %w", err)
	}
	lib.add("/egress.json", "application/json", append(body, '\n'))
	return lib, nil
}

// addDocument publishes an OpenAPI document below a path, and the pages generated from it.
func (l *library) addDocument(below, base string, source []byte, pages []pageSpec) (err error) {
	if l.doc, err = readDocument(base, source); err != nil {
		return err
	}
	asJSON, err := toJSON(l.doc.root)
	if err != nil {
		return err
	}
	l.add(below+"/openapi.yaml", "application/yaml", source)
	l.add(below+"/openapi.json", "application/json", append(asJSON, '\n'))
	return l.addPages(pages)
}

// add stores a file under a path below Prefix.
func (l *library) add(name, contentType string, body []byte) *file {
	sum := sha256.Sum256(body)
	added := &file{
		contentType: contentType, body: body, zipped: compress.Lazily(body),
		etag: hex.EncodeToString(sum[:8]),
	}
	l.files[name] = added
	return added
}

// addContent stores the assets under addresses that contain their hash, the samples as
// plain text for reading in a browser, and the schemas.
func (l *library) addContent() error {
	err := fs.WalkDir(content, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := content.ReadFile(name)
		folder, _, _ := strings.Cut(name, "/")
		extension := path.Ext(name)
		switch folder {
		case "assets":
			body = bytes.ReplaceAll(body,
				[]byte(path.Base(static.Font)), []byte(static.URL(static.Font)))
			sum := sha256.Sum256(body)
			address := "/" + strings.TrimSuffix(name, extension) + "." +
				hex.EncodeToString(sum[:6]) + extension
			l.add(address, static.ContentTypes[extension], body).lasting = true
			l.assets[path.Base(name)] = Prefix + address
		case "samples":
			contentType := static.ContentTypes[".txt"]
			if extension == ".json" {
				contentType = "application/json"
			}
			l.add("/"+name, contentType, body)
		case "schemas":
			l.add("/"+name, "application/schema+json", body)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("reading what is embedded: %w", err)
	}
	return nil
}
