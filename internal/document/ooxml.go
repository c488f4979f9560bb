package document

import (
	"archive/zip"
	"bytes"
	"html"
	"io"
	"regexp"
	"strings"
)

const (
	// maxZipEntries bounds the memory that a package's directory takes. Large
	// workbooks have some thousand parts.
	maxZipEntries = 10_000
	// maxContentTypes bounds how much of a package's manifest is unpacked.
	maxContentTypes = 1 << 20
)

// mainTypes is the beginning of the content types of the main parts of accepted packages.
const mainTypes = "application/vnd.openxmlformats-officedocument."

// isPackage returns a check that a zip is an Office Open XML package whose main part has the
// content type mainTypes+contentType, and usually the name main, with its parts in the same folder.
// The directory at the end of the zip decides, as it does for the programs that open it; the local
// headers, which detection from the front reads, may differ.
func isPackage(main, contentType string) func([]byte, *io.SectionReader) bool {
	folder, _, _ := strings.Cut(main, "/")
	folder += "/"
	return func(_ []byte, content *io.SectionReader) bool {
		if countEntries(content) > maxZipEntries {
			return false
		}
		archive, err := zip.NewReader(content, content.Size())
		if err != nil {
			return false
		}
		var manifest *zip.File
		parts, usual := false, false
		for _, file := range archive.File {
			if foreign(file.Name, folder) {
				return false
			}
			parts = parts || strings.HasPrefix(file.Name, folder) && file.UncompressedSize64 > 0
			usual = usual || strings.EqualFold(file.Name, main)
			if file.Name == "[Content_Types].xml" {
				if manifest != nil {
					return false // two readers might use different ones
				}
				manifest = file
			}
		}
		return parts && manifest != nil && isManifest(manifest, mainTypes+contentType, usual)
	}
}

// foreign reports whether an entry belongs to another kind of zip: the other Office programs, a
// document with macros, a Java or an Android program.
func foreign(name, folder string) bool {
	for _, other := range []string{"word/", "xl/", "ppt/", "visio/"} {
		if other != folder && strings.HasPrefix(name, other) {
			return true
		}
	}
	switch name {
	case folder + "vbaProject.bin", "META-INF/MANIFEST.MF", "AndroidManifest.xml", "classes.dex":
		return true
	}
	return false
}

// contentType finds the values in a list of content types, as far as it is undamaged: an XML parser
// would need many times the list's size.
var contentType = regexp.MustCompile(`\sContentType\s*=\s*("[^"]*"|'[^']*')`)

// isManifest reports whether an entry unpacks to a list of content types in which main is the type
// of the main part: no template, nor the binary or another kind of package. A list without that
// type, such as a damaged one, is accepted if the main part has its usual name.
func isManifest(file *zip.File, main string, usual bool) bool {
	unpacked, err := file.Open()
	if err != nil {
		return false
	}
	text, err := io.ReadAll(io.LimitReader(unpacked, maxContentTypes+1))
	if unpacked.Close() != nil || err != nil || len(text) > maxContentTypes {
		return false
	}
	text = bytes.ReplaceAll(text, []byte{0}, nil) // makes ASCII of the relevant UTF-16 text
	// An embedded document with macros is listed too, but not as the main part.
	if bytes.Contains(text, []byte("macroEnabled.main")) {
		return false
	}
	named := usual
	for _, value := range contentType.FindAllSubmatch(text, -1) {
		found := strings.ToLower(html.UnescapeString(strings.Trim(string(value[1]), `"'`)))
		if found == main {
			named = true
		} else if strings.HasSuffix(strings.TrimSuffix(found, "+xml"), ".main") {
			return false
		}
	}
	return named
}

// countEntries counts what could be directory entries of a zip, without allocating memory for them
// and without trusting any count in the file.
func countEntries(content *io.SectionReader) int {
	signature := []byte("PK\x01\x02")
	buffer := make([]byte, copyBuffer)
	count, kept := 0, 0
	for offset := int64(0); ; {
		n, err := content.ReadAt(buffer[kept:], offset)
		offset += int64(n)
		window := buffer[:kept+n]
		count += bytes.Count(window, signature)
		if err != nil {
			return count
		}
		// A signature may straddle two reads, but can't count in both.
		kept = copy(buffer, window[len(window)-len(signature)+1:])
	}
}
