package document

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"drawbridge/internal/document/documenttest"
)

// identifyBytes runs the check on content in memory.
func identifyBytes(name string, content []byte) (contentType, problem string) {
	return identify(name, sectionOf(content), false)
}

func TestEveryAcceptedTypeIsRecognised(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"pdf": "application/pdf",
		"doc": "application/msword",
		"docx": "application/vnd.openxmlformats-officedocument." +
			"wordprocessingml.document",
		"jpg":  "image/jpeg",
		"jpeg": "image/jpeg",
		"png":  "image/png",
		"webp": "image/webp",
		"xls":  "application/vnd.ms-excel",
		"xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	}
	samples := documenttest.Samples()
	if len(samples) != len(want) || len(kinds) != len(want) {
		t.Fatalf("%d samples and %d kinds, want %d", len(samples), len(kinds), len(want))
	}
	for extension, sample := range samples {
		for _, written := range []string{extension, strings.ToUpper(extension)} {
			t.Run(written, func(t *testing.T) {
				t.Parallel()
				contentType, problem := identifyBytes("permit."+written, sample)
				if problem != "" || contentType != want[extension] {
					t.Errorf("got %q, problem %q; want %q", contentType, problem, want[extension])
				}
			})
		}
	}
}

func TestNoTypePassesForAnother(t *testing.T) {
	t.Parallel()
	samples := documenttest.Samples()
	for _, named := range slices.Sorted(maps.Keys(samples)) {
		for _, is := range slices.Sorted(maps.Keys(samples)) {
			same := named == is || strings.HasPrefix(named, "jp") && strings.HasPrefix(is, "jp")
			if _, problem := identifyBytes("x."+named, samples[is]); (problem == "") != same {
				t.Errorf("%s content named %s: problem %q", is, named, problem)
			}
		}
	}
}

// upload is a file as a partner sends it.
type upload struct {
	name    string
	content []byte
}

// padded is content followed by meaningless bytes.
func padded(content string) []byte { return []byte(content + strings.Repeat("\x01", 600)) }

// hostileFiles are files that are not what their names say.
func hostileFiles() map[string]upload {
	pdf := documenttest.PDF(0)
	program := "MZ\x90\x00" + strings.Repeat("\x00", 60)
	file := func(name, content string) upload { return upload{name, []byte(content)} }
	return map[string]upload{
		"no extension":           {"permit", pdf},
		"extension not accepted": file("permit.exe", program),
		"second extension":       {"permit.pdf.exe", pdf},
		"empty":                  {"permit.pdf", nil},
		"renamed program":        file("permit.pdf", program),
		"renamed ELF":            {"permit.doc", padded("\x7fELF\x02\x01\x01")},
		"script":                 file("permit.pdf", "#!/bin/sh\nrm -rf /\n"),
		"HTML called PDF":        file("permit.pdf", "<html><script>1</script></html>"),
		"HTML before a PDF":      file("permit.pdf", "<html>"+string(pdf)),
		"HTML behind PDF header": file("permit.pdf", "%PDF-1.7\n<!DOCTYPE html><p>"),
		"SVG behind PDF header":  file("permit.pdf", "%PDF-1.7 <svg xmlns='http://www.w3.org/2000/svg'>"),
		"XML behind PDF header":  file("permit.pdf", "%PDF-1.7\n<?xml version='1.0'?><a/>"),
		"zip behind PDF header":  file("permit.pdf", "%PDF-1.7\n"+string(documenttest.DOCX())),
		"PDF header, no version": file("permit.pdf", "%PDF-x.y plain"),
		"SVG called PNG":         file("plan.png", "<svg xmlns='http://www.w3.org/2000/svg'/>"),
		"GIF called PNG":         {"plan.png", padded("GIF89a")},
		"WAVE called WebP":       {"plan.webp", padded("RIFF\x24\x00\x00\x00WAVEfmt ")},
	}
}

// hostileOffice are Office containers with something else in them.
func hostileOffice(t *testing.T) map[string]upload {
	t.Helper()
	const word, sheet, types = "word/document.xml", "xl/workbook.xml", "[Content_Types].xml"
	docx := func(entries ...string) upload { return upload{"permit.docx", office(entries...)} }
	doc := func(entries ...documenttest.Entry) upload {
		return upload{"permit.doc", documenttest.Compound(entries...)}
	}
	stream := func(name string) documenttest.Entry {
		return documenttest.Entry{Name: name, Content: []byte("x")}
	}
	folder := func(name, stream string) documenttest.Entry {
		return documenttest.Entry{Name: name, Content: []byte("x"), Children: []documenttest.Entry{
			{Name: stream, Content: []byte("x")},
		}}
	}
	whole := documenttest.DOCX()
	return map[string]upload{
		"plain zip":             {"permit.docx", documenttest.Zip(map[string]string{"a.txt": "text"})},
		"manifest only":         docx(),
		"parts only":            {"permit.docx", documenttest.Zip(map[string]string{word: "<w/>"})},
		"empty parts":           docx(word, ""),
		"both programs":         docx(word, "x", sheet, "x"),
		"macros, by their part": docx(word, "x", "word/vbaProject.bin", "x"),
		"macros, by the manifest": docx(word, "x", types,
			"<Types>application/vnd.ms-word.document.macroEnabled.main+xml</Types>"),
		"no manifest in its place": docx("word/evil.html", "<html/>", types, "hello"),
		"macros, in UTF-16": docx(word, "x", types, wide(
			"<Types>application/vnd.ms-word.document.macroEnabled.main+xml</Types>")),
		"template, in UTF-16": docx(word, "x", types, wide(listed(
			mainTypes+"wordprocessingml.template.main+xml"))),
		"nothing of Word": docx("word/evil.html", "<html/>"),
		"binary workbook": {"permit.xlsx", office(types, listed(
			"application/vnd.ms-excel.sheet.binary.macroEnabled.main"), "xl/workbook.bin", "x")},
		"binary workbook, escaped": {"permit.xlsx", office(types, listed(
			"application/vnd.ms-excel.sheet.binary.macroEnabled&#46;main"), "xl/workbook.bin", "x")},
		"template of a workbook": {"permit.xlsx", office(sheet, "x", types, listed(
			mainTypes+"spreadsheetml.template.main+xml"))},
		"template of a document": docx(word, "x", types, listed(
			mainTypes+"wordprocessingml.template.main+xml")),
		"document and template": docx(word, "x", types, listed(
			mainTypes+"wordprocessingml.document.main+xml",
			mainTypes+"wordprocessingml.template.main+xml")),
		"workbook listed in a document": docx(word, "x", types, listed(
			mainTypes+"spreadsheetml.sheet.main+xml")),
		"Java program":           docx(word, "x", "META-INF/MANIFEST.MF", "x"),
		"Android program":        docx(word, "x", "classes.dex", "x"),
		"two manifests":          {"permit.docx", twoManifests(t)},
		"program before a zip":   {"permit.docx", append([]byte("MZ\x90\x00"), whole...)},
		"zip cut short":          {"permit.docx", whole[:len(whole)-30]},
		"presentation":           docx("ppt/presentation.xml", "x"),
		"too many entries":       {"permit.xlsx", manyEntries(maxZipEntries + 1)},
		"no document":            doc(stream("Other")),
		"empty document":         doc(documenttest.Entry{Name: "WordDocument"}),
		"embedded Word":          doc(stream("Workbook"), folder("ObjectPool", "WordDocument")),
		"Word and Excel at once": doc(stream("Workbook"), stream("WordDocument")),
		"folder like a document": doc(folder("WordDocument", "Other")),
	}
}

func TestHostileContentIsRefused(t *testing.T) {
	t.Parallel()
	files := hostileFiles()
	maps.Copy(files, hostileOffice(t))
	for name, file := range files {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, problem := identifyBytes(file.name, file.content)
			if !strings.HasSuffix(problem, accepted) {
				t.Errorf("problem %q, want one that ends with what is accepted", problem)
			}
		})
	}
}

// office is a package with a plausible manifest and the given entries, alternately name and
// content, which may replace the manifest.
func office(entries ...string) []byte {
	all := map[string]string{"[Content_Types].xml": "<Types/>"}
	for i := 0; i < len(entries); i += 2 {
		all[entries[i]] = entries[i+1]
	}
	return documenttest.Zip(all)
}

// listed is a manifest with the content types of parts.
func listed(types ...string) string {
	list := `<?xml version="1.0" encoding="UTF-8" standalone="yes"?><Types>` +
		`<Default Extension="xml" ContentType="application/xml"/>`
	for i, contentType := range types {
		list += `<Override PartName="/part` + strconv.Itoa(i) + `" ContentType="` + contentType + `"/>`
	}
	return list + `</Types>`
}

// wide is ASCII text encoded as UTF-16.
func wide(text string) string {
	return "\xFF\xFE" + strings.Join(strings.Split(text, ""), "\x00") + "\x00"
}

// twoManifests shows a harmless manifest to a reader that takes the last entry of
// a name and one with macros to a reader that takes the first.
func twoManifests(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, entry := range [][2]string{
		{"[Content_Types].xml", "<Types>macroEnabled.main+xml</Types>"},
		{"word/document.xml", "<w/>"},
		{"[Content_Types].xml", "<Types/>"},
	} {
		w, err := archive.Create(entry[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(entry[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func manyEntries(count int) []byte {
	entries := []string{"xl/workbook.xml", "x"}
	for i := range count {
		entries = append(entries, fmt.Sprintf("xl/media/%d", i), "")
	}
	return office(entries...)
}

func TestUnusualButRealFilesAreAccepted(t *testing.T) {
	t.Parallel()
	pdf := string(documenttest.PDF(0))
	workbook := documenttest.Entry{Name: "Workbook", Content: []byte("sheet")}
	word := documenttest.Entry{Name: "WordDocument", Content: []byte("text")}
	files := map[string]upload{
		"PDF behind a byte order mark": {"a.pdf", []byte("\xEF\xBB\xBF" + pdf)},
		"PDF behind an empty line":     {"a.pdf", []byte("\r\n" + pdf)},
		"PDF of 10 MiB":                {"a.pdf", documenttest.PDF(10 << 20)},
		"several dots":                 {"report.final.v2.PDF", []byte(pdf)},
		"large compound file": {"a.doc", documenttest.Compound(
			documenttest.Entry{Name: "A"}, documenttest.Entry{Name: "B"}, documenttest.Entry{Name: "C"},
			documenttest.Entry{Name: "Data", Content: make([]byte, 9<<20)}, word)},
		"embedded Excel in Word": {"a.doc", documenttest.Compound(word,
			documenttest.Entry{Name: "ObjectPool", Children: []documenttest.Entry{workbook}})},
		"Excel 5 workbook": {"a.xls", documenttest.Compound(
			documenttest.Entry{Name: "Book", Content: []byte("x")})},
		"embedded macros declared": {"a.docx", office("word/document.xml", "x", "[Content_Types].xml",
			"<Types>application/vnd.ms-excel.sheet.macroEnabled.12</Types>")},
		"embedded workbook in Word": {"a.docx", office("word/document.xml", "x",
			"word/embeddings/sheet.xlsx", string(documenttest.XLSX()))},
		// Some writers number the main part.
		"main part of another name": {"a.docx", office("word/document2.xml", "x",
			"[Content_Types].xml", listed(mainTypes+"wordprocessingml.document.main+xml"))},
		"manifest behind a byte order mark": {"a.xlsx", office("xl/workbook2.xml", "x",
			"[Content_Types].xml", "\xEF\xBB\xBF"+listed(mainTypes+"spreadsheetml.sheet.main+xml"))},
		"manifest in another encoding": {"a.xlsx", office("xl/workbook2.xml", "x",
			"[Content_Types].xml", strings.Replace(
				listed(mainTypes+"spreadsheetml.sheet.main+xml"), "UTF-8", "us-ascii", 1))},
		"manifest with prefixes": {"a.docx", office("word/doc.xml", "x", "[Content_Types].xml",
			`<t:Types xmlns:t="x"><t:Override ContentType="`+mainTypes+
				`wordprocessingml.document.main+xml"/></t:Types>`)},
		"manifest in UTF-16": {"a.xlsx", office("xl/workbook2.xml", "x",
			"[Content_Types].xml", wide(listed(mainTypes+"spreadsheetml.sheet.main+xml")))},
		"manifest overwritten": {"a.docx", office("word/document.xml", "x",
			"[Content_Types].xml", "hello")},
		"manifest cut short": {"a.xlsx", office("xl/workbook.xml", "x",
			"[Content_Types].xml", "<Types><Override Part")},
		"many entries": {"a.xlsx", manyEntries(maxZipEntries - 10)},
		// Whether a document is undamaged is for the person who opens it to see.
		"PNG signature only":   {"a.png", padded("\x89PNG\r\n\x1a\n")},
		"JPEG signature only":  {"a.jpg", padded("\xFF\xD8\xFF")},
		"WebP signature only":  {"a.webp", padded("RIFF\x24\x00\x00\x00WEBP")},
		"compound header only": {"a.doc", documenttest.DOC("x")[:512]},
		"compound cut short":   {"a.xls", documenttest.DOC("x")[:1000]},
		"compound of zeros":    {"a.xls", padded("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1")},
	}
	for name, file := range files {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, problem := identifyBytes(file.name, file.content); problem != "" {
				t.Errorf("the file %s", problem)
			}
		})
	}
}

// TestHostileChainsEnd walks compound files whose chains form rings and whose numbers point
// anywhere; it passes if it ends.
func TestHostileChainsEnd(t *testing.T) {
	t.Parallel()
	sample := documenttest.DOC("Installation complete")
	for offset := 0; offset < len(sample); offset += 4 {
		if offset == 1024 { // after the header and the allocation table
			offset = len(sample) - 512 // the directory follows
		}
		for _, value := range []uint32{0, 1, 2, 3, 0x7FFFFFFF, 0xFFFFFFF9} {
			mutated := bytes.Clone(sample)
			binary.LittleEndian.PutUint32(mutated[offset:], value)
			isDOC(nil, sectionOf(mutated))
		}
	}
}

func FuzzSniff(f *testing.F) {
	for _, sample := range documenttest.Samples() {
		f.Add(sample)
		f.Add(sample[:len(sample)/2])
	}
	f.Add([]byte("%PDF-1.7\n<html>"))
	f.Add([]byte("<html>%PDF-1.7"))
	f.Add(office("word/document.xml", "x", "xl/workbook.xml", "x"))
	f.Fuzz(func(t *testing.T, content []byte) {
		types := map[string]string{}
		for extension := range kinds {
			if extension == ".xls" && rootStreams(sectionOf(content)).damaged {
				continue // it is impossible to tell which of the two it was
			}
			contentType, problem := identifyBytes("x"+extension, content)
			if (problem == "") == (contentType == "") {
				t.Fatalf("%s: type %q and problem %q", extension, contentType, problem)
			}
			if problem == "" {
				types[contentType] = extension
			}
		}
		if len(types) > 1 {
			t.Fatalf("one content is of several types: %v", types)
		}
	})
}
