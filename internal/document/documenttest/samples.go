package documenttest

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"maps"
	"slices"
	"strings"
)

// Samples returns a real file for each accepted extension, in lower case and
// without the dot.
func Samples() map[string][]byte {
	photo := JPEG()
	return map[string][]byte{
		"pdf":  PDF(0),
		"doc":  DOC("Installation complete"),
		"docx": DOCX(),
		"jpg":  photo,
		"jpeg": photo,
		"png":  PNG(),
		"webp": WebP(),
		"xls":  XLS("Installation complete"),
		"xlsx": XLSX(),
	}
}

// PDF returns a one-page document with a correct cross-reference table, of
// exactly size bytes if that is more than it needs.
func PDF(size int) []byte {
	plain := pdf(0)
	if size <= len(plain) {
		return plain
	}
	return pdf(size - len(plain))
}

// pdf pads the document with white space between its objects and its table.
func pdf(padding int) []byte {
	const text = "BT /F1 24 Tf 72 720 Td (Installation complete) Tj ET"
	objects := []string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R" +
			" /Resources << /Font << /F1 5 0 R >> >> >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(text), text),
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
	}
	var out bytes.Buffer
	out.WriteString("%PDF-1.7\n%\xE2\xE3\xCF\xD3\n")
	var offsets []int
	for i, object := range objects {
		offsets = append(offsets, out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	out.Write(bytes.Repeat([]byte{'\n'}, padding))
	table := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, offset := range offsets {
		fmt.Fprintf(&out, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&out, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%010d\n%%%%EOF\n",
		len(objects)+1, table)
	return out.Bytes()
}

// JPEG returns a small photograph.
func JPEG() []byte {
	var out bytes.Buffer
	must(jpeg.Encode(&out, picture(), nil))
	return out.Bytes()
}

// PNG returns a small picture.
func PNG() []byte {
	var out bytes.Buffer
	must(png.Encode(&out, picture()))
	return out.Bytes()
}

func picture() image.Image {
	shade := image.NewGray(image.Rect(0, 0, 16, 16))
	for i := range 16 * 16 {
		shade.SetGray(i%16, i/16, color.Gray{Y: uint8(i)})
	}
	return shade
}

// WebP returns a lossless picture of one pixel.
func WebP() []byte {
	content, err := base64.StdEncoding.DecodeString(
		"UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")
	must(err)
	return content
}

const (
	officeTypes  = "application/vnd.openxmlformats-officedocument."
	relationType = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
	packageTypes = "http://schemas.openxmlformats.org/package/2006/content-types"
	packageLinks = "http://schemas.openxmlformats.org/package/2006/relationships"
	xmlHead      = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
)

// DOCX returns a document of one paragraph.
func DOCX() []byte {
	const schema = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
	return Zip(map[string]string{
		"[Content_Types].xml": manifest("/word/document.xml", "wordprocessingml.document.main+xml"),
		"_rels/.rels":         link("officeDocument", "word/document.xml"),
		"word/document.xml": xmlHead + `<w:document xmlns:w="` + schema + `"><w:body><w:p><w:r>` +
			`<w:t>Installation complete</w:t></w:r></w:p></w:body></w:document>`,
	})
}

// XLSX returns a workbook with one cell.
func XLSX() []byte {
	const schema = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
	return Zip(map[string]string{
		"[Content_Types].xml": manifest("/xl/workbook.xml", "spreadsheetml.sheet.main+xml",
			"/xl/worksheets/sheet1.xml", "spreadsheetml.worksheet+xml"),
		"_rels/.rels": link("officeDocument", "xl/workbook.xml"),
		"xl/workbook.xml": xmlHead + `<workbook xmlns="` + schema + `" xmlns:r="` + relationType +
			`"><sheets><sheet name="Panels" sheetId="1" r:id="rId1"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels": link("worksheet", "worksheets/sheet1.xml"),
		"xl/worksheets/sheet1.xml": xmlHead + `<worksheet xmlns="` + schema + `"><sheetData>` +
			`<row r="1"><c r="A1"><v>24</v></c></row></sheetData></worksheet>`,
	})
}

// manifest lists the content types of a package's parts: alternately a path and the type after the
// common prefix.
func manifest(pathsAndTypes ...string) string {
	var text strings.Builder
	text.WriteString(xmlHead + `<Types xmlns="` + packageTypes + `">` +
		`<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.` +
		`relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>`)
	for part := range slices.Chunk(pathsAndTypes, 2) {
		text.WriteString(`<Override PartName="` + part[0] + `" ContentType="` + officeTypes +
			part[1] + `"/>`)
	}
	return text.String() + `</Types>`
}

func link(kind, target string) string {
	return xmlHead + `<Relationships xmlns="` + packageLinks + `"><Relationship Id="rId1" Type="` +
		relationType + "/" + kind + `" Target="` + target + `"/></Relationships>`
}

// Zip returns an archive of the given entries, in alphabetical order.
func Zip(entries map[string]string) []byte {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		header := &zip.FileHeader{Name: name, Method: zip.Deflate}
		if entries[name] == "" {
			header.Method = zip.Store
		}
		entry, err := archive.CreateHeader(header)
		must(err)
		_, err = entry.Write([]byte(entries[name]))
		must(err)
	}
	must(archive.Close())
	return out.Bytes()
}

// must panics on an error that writing to memory cannot have.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
