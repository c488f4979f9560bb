package document

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// formDigest hashes the sequence of a form's parts. Every field is preceded by
// its length, so that no two sequences run together into the same bytes.
type formDigest struct {
	sum hash.Hash
}

func newFormDigest() formDigest {
	d := formDigest{sum: sha256.New()}
	d.field([]byte("form 1")) // changes with the encoding below
	return d
}

// part adds one part. Its content enters as its hash, which is known only after
// the last byte of it went by.
func (d formDigest) part(name, filename string, content contentSum) {
	d.field([]byte("part"))
	d.field([]byte(name))
	d.field([]byte(filename))
	d.field(binary.BigEndian.AppendUint64(nil, uint64(content.size)))
	d.field(content.hash[:])
}

// note adds a reason for which the rest of the form was not read.
func (d formDigest) note(reason string) {
	d.field([]byte("note"))
	d.field([]byte(reason))
}

func (d formDigest) field(value []byte) {
	d.sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(value))))
	d.sum.Write(value)
}

func (d formDigest) value() (digest [sha256.Size]byte) {
	d.sum.Sum(digest[:0])
	return digest
}
