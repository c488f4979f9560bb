package document

import (
	"archive/zip"
	"bytes"
	"io"
	"strings"
)

const (
	// maxZipEntries bounds the memory that a package's directory takes. Large
	// workbooks have some thousand parts.
	maxZipEntries = 10_000
	// maxContentTypes bounds how much of a package's manifest is unpacked.
	maxContentTypes = 1 << 20
)

// isPackage confirms that a zip is an Office Open XML package whose parts lie in
// folder. The directory at the end of the zip decides, as it does for the
// programs that open it; the local headers that a detection from the front sees
// may say something else.
func isPackage(folder string) func([]byte, *io.SectionReader) bool {
	return func(_ []byte, content *io.SectionReader) bool {
		if countEntries(content) > maxZipEntries {
			return false
		}
		archive, err := zip.NewReader(content, content.Size())
		if err != nil {
			return false
		}
		var manifest *zip.File
		parts := false
		for _, file := range archive.File {
			if foreign(file.Name, folder) {
				return false
			}
			parts = parts || strings.HasPrefix(file.Name, folder) && file.UncompressedSize64 > 0
			if file.Name == "[Content_Types].xml" {
				if manifest != nil {
					return false // two readers might not agree on which one counts
				}
				manifest = file
			}
		}
		return parts && manifest != nil && isManifest(manifest)
	}
}

// foreign reports whether an entry belongs to another kind of zip: the other
// Office programs, a document with macros, a Java or an Android program.
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

// isManifest reports whether an entry unpacks to a text that declares no macros.
func isManifest(file *zip.File) bool {
	unpacked, err := file.Open()
	if err != nil {
		return false
	}
	text, err := io.ReadAll(io.LimitReader(unpacked, maxContentTypes))
	if unpacked.Close() != nil || err != nil {
		return false
	}
	// An embedded document with macros is listed too, but not as the main part.
	return !bytes.Contains(text, []byte("macroEnabled.main+xml"))
}

// countEntries counts what could be directory entries of a zip, without taking
// memory for them and without believing any count in the file.
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
