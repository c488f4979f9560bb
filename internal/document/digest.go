package document

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// formDigest hashes a form's parts. Replies are stored under its hashes, so an encoding that a
// release has used stays, and a new one goes after it in values.
type formDigest []digestEntry

// digestEntry is an entry of the digest: fields are its kind and the data of that kind.
type digestEntry struct {
	name   string
	fields []string
}

// part adds one part. Its content enters as a hash, which is known only after its last byte was
// read.
func (d *formDigest) part(name, filename string, content contentSum) {
	size := binary.BigEndian.AppendUint64(nil, uint64(content.size))
	d.add(name, "part", filename, string(size), string(content.hash[:]))
}

// note adds why a part, or with an empty name the rest of the form, was not read.
func (d *formDigest) note(name, reason string) { d.add(name, "note", reason) }

func (d *formDigest) add(name string, fields ...string) {
	*d = append(*d, digestEntry{name, fields})
}

// values are the form's hashes, those of the oldest encoding first.
func (d formDigest) values() [][sha256.Size]byte {
	// The encoding of release 0.1.0, in which the order of all parts counts.
	inOrder := []string{"form 1"}
	for _, entry := range d {
		inOrder = append(inOrder, entry.fields[0])
		if entry.fields[0] == "part" {
			inOrder = append(inOrder, entry.name)
		}
		inOrder = append(inOrder, entry.fields[1:]...)
	}
	// This encoding ignores the order of parts with different names: a client that builds its form
	// from a map repeats it in another order.
	sorted := slices.Clone(d)
	slices.SortStableFunc(sorted, func(a, b digestEntry) int { return cmp.Compare(a.name, b.name) })
	byName := []string{"form 2"}
	for _, entry := range sorted {
		sum := sumOf(append(slices.Clone(entry.fields), entry.name)...)
		byName = append(byName, string(sum[:]))
	}
	return [][sha256.Size]byte{sumOf(inOrder...), sumOf(byName...)}
}

// sumOf hashes the fields, each preceded by its length, so that no two sequences yield the same
// bytes.
func sumOf(fields ...string) (sum [sha256.Size]byte) {
	hash := sha256.New()
	for _, field := range fields {
		hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(field))))
		hash.Write([]byte(field))
	}
	hash.Sum(sum[:0])
	return sum
}
