package docs

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/a-h/templ"

	"drawbridge/static"
	"drawbridge/views/docsview"
)

// The style sheet and the script of the pages.
//
//go:embed assets
var assetFiles embed.FS

// The guides, in the Markdown that prose reads.
//
//go:embed guides/*.md
var guideFiles embed.FS

// file is something that is served.
type file struct {
	contentType string
	body        []byte
	// zipped is the gzip form, nil where it saves little.
	zipped []byte
	etag   string
	// download is the name to save it under, empty to show it.
	download string
	// lasting is set where the address carries the content's hash.
	lasting bool
}

// library holds every file by its path below Prefix.
type library struct {
	files map[string]file
	// doc is what the pages are made from.
	doc        *document
	production bool
	// assets maps a plain asset name to its address.
	assets map[string]string
}

// newLibrary renders everything for one base address.
func newLibrary(base string, production bool) (*library, error) {
	doc, err := readDocument(base)
	if err != nil {
		return nil, err
	}
	lib := &library{
		files: map[string]file{}, assets: map[string]string{}, doc: doc, production: production,
	}
	for _, add := range []func() error{
		lib.addAssets, lib.addDocument, lib.addSchemas, lib.addSamples, lib.addPages,
	} {
		if err := add(); err != nil {
			return nil, err
		}
	}
	return lib, nil
}

// add stores a file under a path below Prefix.
func (l *library) add(name, contentType string, body []byte) {
	sum := sha256.Sum256(body)
	l.files[name] = file{
		contentType: contentType, body: body, zipped: zip(body),
		etag: hex.EncodeToString(sum[:8]),
	}
}

// zip returns the gzip form of a body, nil where it is not clearly smaller.
func zip(body []byte) []byte {
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	_, _ = writer.Write(body) // a buffer takes every write
	_ = writer.Close()
	if out.Len() > len(body)*9/10 {
		return nil
	}
	return out.Bytes()
}

// addAssets stores the assets under addresses that change with their content.
func (l *library) addAssets() error {
	types := map[string]string{
		".css": "text/css; charset=utf-8",
		".js":  "text/javascript; charset=utf-8",
		".svg": "image/svg+xml",
	}
	return walk(assetFiles, "assets", func(name string, body []byte) error {
		body = bytes.ReplaceAll(body, []byte(path.Base(static.Font)), []byte(static.URL(static.Font)))
		sum := sha256.Sum256(body)
		extension := path.Ext(name)
		address := "/assets/" + strings.TrimSuffix(name, extension) + "." +
			hex.EncodeToString(sum[:6]) + extension
		l.add(address, types[extension], body)
		stored := l.files[address]
		stored.lasting = true
		l.files[address] = stored
		l.assets[name] = Prefix + address
		return nil
	})
}

// addDocument stores the contract in both forms, and the collection.
func (l *library) addDocument() error {
	l.add("/openapi.yaml", "application/yaml", Document(l.doc.base))
	asJSON, err := toJSON(l.doc.root)
	if err != nil {
		return err
	}
	l.add("/openapi.json", "application/json", append(asJSON, '\n'))
	collection, err := l.doc.makeCollection()
	if err != nil {
		return err
	}
	l.add("/collection.json", "application/json", collection)
	stored := l.files["/collection.json"]
	stored.download = "drawbridge.postman_collection.json"
	l.files["/collection.json"] = stored
	return nil
}

func (l *library) addSchemas() error {
	return walk(schemaFiles, "schemas", func(name string, body []byte) error {
		l.add("/schemas/"+name, "application/schema+json", body)
		return nil
	})
}

// addSamples stores the samples as plain text, to be read in a browser.
func (l *library) addSamples() error {
	return walk(sampleFiles, "samples", func(name string, body []byte) error {
		contentType := "text/plain; charset=utf-8"
		if path.Ext(name) == ".json" {
			contentType = "application/json"
		}
		l.add("/samples/"+name, contentType, body)
		return nil
	})
}

// walk visits each file below a folder with its path inside the folder.
func walk(from embed.FS, folder string, visit func(name string, body []byte) error) error {
	err := fs.WalkDir(from, folder, func(full string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := from.ReadFile(full)
		if err != nil {
			return err
		}
		return visit(strings.TrimPrefix(full, folder+"/"), body)
	})
	if err != nil {
		return fmt.Errorf("reading %s: %w", folder, err)
	}
	return nil
}

// page renders a component into a file.
func (l *library) page(name string, component templ.Component) error {
	var out bytes.Buffer
	if err := component.Render(context.Background(), &out); err != nil {
		return fmt.Errorf("rendering %s: %w", name, err)
	}
	l.add(name, "text/html; charset=utf-8", out.Bytes())
	return nil
}

// guide reads a Markdown file and fills in the base address.
func (l *library) guide(name string) ([]docsview.Block, error) {
	text, err := guideFiles.ReadFile("guides/" + name + ".md")
	if err != nil {
		return nil, fmt.Errorf("reading the guide %s: %w", name, err)
	}
	return prose(strings.ReplaceAll(string(text), ExampleBaseURL, l.doc.base)), nil
}
