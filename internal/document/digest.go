package document

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// formDigest hashes a form's parts. The order of parts with different names does
// not count: a client that builds its form from a map repeats it in another one.
type formDigest struct {
	entries []digestEntry
}

type digestEntry struct {
	name string
	sum  [sha256.Size]byte
}

// part adds one part. Its content enters as its hash, which is known only after
// the last byte of it went by.
func (d *formDigest) part(name, filename string, content contentSum) {
	size := binary.BigEndian.AppendUint64(nil, uint64(content.size))
	d.add(name, "part", filename, string(size), string(content.hash[:]))
}

// note adds a reason for which the part of that name, or with an empty name the
// rest of the form, was not read.
func (d *formDigest) note(name, reason string) { d.add(name, "note", reason) }

func (d *formDigest) add(name string, fields ...string) {
	d.entries = append(d.entries, digestEntry{name, sumOf(append(fields, name)...)})
}

func (d *formDigest) value() [sha256.Size]byte {
	sorted := slices.Clone(d.entries)
	slices.SortStableFunc(sorted, func(a, b digestEntry) int { return cmp.Compare(a.name, b.name) })
	fields := []string{"form 2"} // changes with the encoding
	for _, entry := range sorted {
		fields = append(fields, string(entry.sum[:]))
	}
	return sumOf(fields...)
}

// sumOf hashes the fields, each preceded by its length, so that no two sequences
// run together into the same bytes.
func sumOf(fields ...string) (sum [sha256.Size]byte) {
	hash := sha256.New()
	for _, field := range fields {
		hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(field))))
		hash.Write([]byte(field))
	}
	hash.Sum(sum[:0])
	return sum
}
