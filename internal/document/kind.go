package document

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/gabriel-vasile/mimetype"
)

// kind is one accepted type of file.
type kind struct {
	label       string
	contentType string
	// family is the type that must be detected in the first bytes, or a parent of it.
	family string
	// confirm checks more where the first bytes are ambiguous; nil where they are not.
	confirm func(head []byte, content *io.SectionReader) bool
}

// accepted tells a refused partner what may be sent instead (section 4.1, rule 7).
const accepted = "the accepted types are PDF, DOC, DOCX, JPG, JPEG, PNG, WEBP, XLS and XLSX"

// headSize is how much of a file is used for detection.
const headSize = 4 << 10

var jpeg = kind{label: "a JPEG image", contentType: "image/jpeg", family: "image/jpeg"}

// kinds are the accepted types by extension in lower case.
var kinds = map[string]kind{
	".pdf": {
		label: "a PDF document", contentType: "application/pdf",
		family: "application/pdf", confirm: isPDF,
	},
	".doc": {
		label: "a Word 97-2003 document", contentType: "application/msword",
		family: "application/x-ole-storage", confirm: isDOC,
	},
	".docx": {
		label:       "a Word document",
		contentType: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
		family:      "application/zip",
		confirm:     isPackage("word/document.xml", "wordprocessingml.document.main+xml"),
	},
	".jpg":  jpeg,
	".jpeg": jpeg,
	".png":  {label: "a PNG image", contentType: "image/png", family: "image/png"},
	".webp": {label: "a WebP image", contentType: "image/webp", family: "image/webp"},
	".xls": {
		label: "an Excel 97-2003 workbook", contentType: "application/vnd.ms-excel",
		family: "application/x-ole-storage", confirm: isXLS,
	},
	".xlsx": {
		label:       "an Excel workbook",
		contentType: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
		family:      "application/zip",
		confirm:     isPackage("xl/workbook.xml", "spreadsheetml.sheet.main+xml"),
	},
}

// identify returns the content type of a file whose content matches the extension of its name, else
// the problem, worded to follow "the file X". The check distinguishes types; it does not judge
// whether a document is undamaged. If the content is partial, only the name is checked.
func identify(name string, content *io.SectionReader, partial bool) (contentType, problem string) {
	expected, known := kinds[strings.ToLower(path.Ext(name))]
	switch {
	case !known:
		return "", "is not of an accepted type; " + accepted
	case partial:
		return expected.contentType, ""
	case content.Size() == 0:
		return "", "is empty; " + accepted
	}
	head := make([]byte, min(headSize, content.Size()))
	if _, err := io.ReadFull(content, head); err != nil {
		return "", "cannot be read"
	}
	found := mimetype.Detect(head)
	if !descends(found, expected.family) {
		actual, _, _ := strings.Cut(found.String(), ";")
		if found.Is("application/octet-stream") {
			actual = "of an unknown type"
		}
		return "", fmt.Sprintf("has the name of %s, but its content is %s; %s",
			expected.label, actual, accepted)
	}
	if expected.confirm != nil && !expected.confirm(head, content) {
		return "", fmt.Sprintf("has the name of %s, but its content is not one; %s",
			expected.label, accepted)
	}
	return expected.contentType, ""
}

// descends reports whether a detected type is family or a special case of it.
func descends(found *mimetype.MIME, family string) bool {
	for ; found != nil; found = found.Parent() {
		if found.Is(family) {
			return true
		}
	}
	return false
}

// isPDF requires the header at the very beginning: readers that search for it further in would
// accept a page or a program with a PDF behind it. The bytes after the header must not begin
// another format.
func isPDF(head []byte, _ *io.SectionReader) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xEF\xBB\xBF")), "\r\n\t ")
	rest, found := bytes.CutPrefix(head, []byte("%PDF-"))
	if !found || len(rest) < 3 || !isDigit(rest[0]) || rest[1] != '.' || !isDigit(rest[2]) {
		return false
	}
	behind := mimetype.Detect(bytes.TrimLeft(rest[3:], "\r\n\t "))
	for _, other := range []string{"text/html", "text/xml", "image/svg+xml", "application/zip"} {
		if descends(behind, other) {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
