package document

import (
	"encoding/binary"
	"io"
	"unicode/utf16"
)

func isDOC(_ []byte, content *io.SectionReader) bool {
	found := rootStreams(content)
	return found.damaged || found.word && !found.excel
}

func isXLS(_ []byte, content *io.SectionReader) bool {
	found := rootStreams(content)
	return found.damaged || found.excel && !found.word
}

// streams are the streams at the top level of a compound file.
type streams struct {
	word, excel bool
	// damaged reports that the top level is unreadable: then nothing shows it is of another type.
	damaged bool
}

const (
	lastSector      = 0xFFFFFFFA // higher values are marks such as the end of a chain
	noEntry         = 0xFFFFFFFF
	entrySize       = 128
	entryStream     = 2
	entryRoot       = 5
	headerSectors   = 109 // sectors of the allocation table that the header names
	compoundHeader  = 512
	maxEntryNameLen = 64
	maxEntriesRead  = 4096 // a document has some ten at the top level
)

// compound reads the directory of a compound file, the container of the old
// Office formats: a file system whose allocation table and directory are chains
// of sectors anywhere in the file. Every chain is bounded by the number of
// sectors, since a hostile file may join its ends.
type compound struct {
	content *io.SectionReader
	sector  int64    // bytes per sector
	table   []uint32 // the sectors of the allocation table
}

// rootStreams reports whether the main streams of Word and of Excel are at the top level of a
// compound file; those of embedded documents are nested deeper.
func rootStreams(content *io.SectionReader) streams {
	header := make([]byte, compoundHeader)
	if _, err := content.ReadAt(header, 0); err != nil {
		return streams{damaged: true}
	}
	shift := binary.LittleEndian.Uint16(header[30:])
	if shift != 9 && shift != 12 {
		return streams{damaged: true}
	}
	c := &compound{content: content, sector: 1 << shift}
	c.readTable(header)
	directory := c.chain(binary.LittleEndian.Uint32(header[48:]))
	return c.childrenOfRoot(directory)
}

func (c *compound) sectors() int { return int(c.content.Size() / c.sector) }

// word reads the 32-bit value at an index of a sector, noEntry beyond the end of the file.
func (c *compound) word(sector uint32, index int64) uint32 {
	var value [4]byte
	offset := (int64(sector)+1)*c.sector + 4*index
	if _, err := c.content.ReadAt(value[:], offset); err != nil {
		return noEntry
	}
	return binary.LittleEndian.Uint32(value[:])
}

// readTable lists the sectors of the allocation table: the first are in the header, those of larger
// files in a chain of their own.
func (c *compound) readTable(header []byte) {
	for i := range headerSectors {
		sector := binary.LittleEndian.Uint32(header[76+4*i:])
		if sector > lastSector {
			return
		}
		c.table = append(c.table, sector)
	}
	perSector := c.sector/4 - 1 // the last word names the next sector of the list
	next := binary.LittleEndian.Uint32(header[68:])
	for visited := 0; next <= lastSector && visited < c.sectors(); visited++ {
		for i := range perSector {
			sector := c.word(next, i)
			if sector > lastSector || len(c.table) > c.sectors() {
				return
			}
			c.table = append(c.table, sector)
		}
		next = c.word(next, perSector)
	}
}

// chain follows the allocation table from a sector to the end of its stream.
func (c *compound) chain(first uint32) []uint32 {
	var chain []uint32
	perSector := c.sector / 4
	for sector := first; sector <= lastSector && len(chain) < c.sectors(); {
		chain = append(chain, sector)
		index := int64(sector) / perSector
		if index >= int64(len(c.table)) {
			break
		}
		sector = c.word(c.table[index], int64(sector)%perSector)
	}
	return chain
}

// childrenOfRoot walks the tree of entries below the first one.
func (c *compound) childrenOfRoot(directory []uint32) (found streams) {
	root := c.entry(directory, 0)
	if len(root) != entrySize || root[66] != entryRoot {
		return streams{damaged: true}
	}
	waiting := []uint32{binary.LittleEndian.Uint32(root[76:])}
	for visited := 0; len(waiting) > 0 && visited < maxEntriesRead; visited++ {
		id := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		entry := c.entry(directory, id)
		if entry == nil {
			continue
		}
		if entry[66] == entryStream && binary.LittleEndian.Uint32(entry[120:]) > 0 {
			length := min(int(binary.LittleEndian.Uint16(entry[64:])), maxEntryNameLen)
			var name []uint16
			for i := 0; i+1 < length-1; i += 2 { // the length counts a final zero
				name = append(name, binary.LittleEndian.Uint16(entry[i:]))
			}
			switch string(utf16.Decode(name)) {
			case "WordDocument":
				found.word = true
			case "Workbook", "Book":
				found.excel = true
			}
		}
		waiting = append(waiting,
			binary.LittleEndian.Uint32(entry[68:]), binary.LittleEndian.Uint32(entry[72:]))
	}
	return found
}

// entry reads one directory entry, nil beyond the end.
func (c *compound) entry(directory []uint32, id uint32) []byte {
	perSector := uint32(c.sector / entrySize)
	if id/perSector >= uint32(len(directory)) {
		return nil
	}
	entry := make([]byte, entrySize)
	offset := (int64(directory[id/perSector])+1)*c.sector + int64(id%perSector)*entrySize
	if _, err := c.content.ReadAt(entry, offset); err != nil {
		return nil
	}
	return entry
}
