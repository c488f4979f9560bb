package documenttest

import (
	"bytes"
	"encoding/binary"
	"sort"
	"unicode/utf16"
)

// Entry is a stream of a compound file, or a folder if it has children.
type Entry struct {
	Name     string
	Content  []byte
	Children []Entry
}

const (
	sectorSize  = 512
	perSector   = sectorSize / 4
	inHeader    = 109 // sectors of the allocation table listed in the header
	smallStream = 4096
	endOfChain  = 0xFFFFFFFE
	freeSector  = 0xFFFFFFFF
	tableSector = 0xFFFFFFFD
	listSector  = 0xFFFFFFFC
)

// Compound returns a compound file, the container of the old Office formats. Streams that are not
// empty are padded to 4096 bytes; shorter ones would be stored in a second file system inside the
// first.
func Compound(entries ...Entry) []byte {
	w := &compoundWriter{}
	w.add(Entry{Name: "Root Entry", Children: entries}, 5)
	for len(w.directory)%(sectorSize/entryBytes) != 0 {
		w.directory = append(w.directory,
			directoryEntry{left: freeSector, right: freeSector, child: freeSector})
	}
	return w.bytes()
}

const entryBytes = 128

type directoryEntry struct {
	name               string
	kind               byte
	left, right, child uint32
	content            []byte
	first              uint32
}

// compoundWriter collects the directory before it lays out the file.
type compoundWriter struct {
	directory []directoryEntry
}

func (w *compoundWriter) add(entry Entry, kind byte) uint32 {
	id := uint32(len(w.directory))
	content := entry.Content
	if kind == 2 && len(content) > 0 && len(content) < smallStream {
		content = append(bytes.Clone(content), make([]byte, smallStream-len(content))...)
	}
	w.directory = append(w.directory, directoryEntry{
		name: entry.Name, kind: kind, content: content,
		left: freeSector, right: freeSector, child: freeSector, first: endOfChain,
	})
	children := append([]Entry(nil), entry.Children...)
	// The format orders names by length first. A list to the right is a valid,
	// if unbalanced, tree.
	sort.Slice(children, func(i, j int) bool {
		a, b := children[i].Name, children[j].Name
		return len(a) < len(b) || len(a) == len(b) && a < b
	})
	previous := uint32(freeSector)
	for _, child := range children {
		kind := byte(2)
		if child.Children != nil {
			kind = 1
		}
		added := w.add(child, kind)
		if previous == freeSector {
			w.directory[id].child = added
		} else {
			w.directory[previous].right = added
		}
		previous = added
	}
	return id
}

// bytes lays the file out: header, allocation table, its list if it does not fit in the header,
// streams, directory.
func (w *compoundWriter) bytes() []byte {
	directorySectors := len(w.directory) * entryBytes / sectorSize
	data := directorySectors
	for _, entry := range w.directory {
		data += sectorsOf(len(entry.content))
	}
	tables, lists := 1, 0
	for (tables+lists+data) > tables*perSector || tables > inHeader+lists*(perSector-1) {
		if tables > inHeader+lists*(perSector-1) {
			lists++
			continue
		}
		tables++
	}
	table := make([]uint32, tables*perSector)
	for i := range table {
		switch {
		case i < tables:
			table[i] = tableSector
		case i < tables+lists:
			table[i] = listSector
		default:
			table[i] = freeSector
		}
	}
	next := tables + lists
	chain := func(sectors int) uint32 {
		first := next
		for range sectors {
			table[next] = uint32(next + 1)
			next++
		}
		if sectors == 0 {
			return endOfChain
		}
		table[next-1] = endOfChain
		return uint32(first)
	}
	for i := range w.directory {
		w.directory[i].first = chain(sectorsOf(len(w.directory[i].content)))
	}
	directoryStart := chain(directorySectors)

	var out bytes.Buffer
	w.header(&out, tables, lists, directoryStart)
	write(&out, table)
	writeLists(&out, tables, lists)
	for _, entry := range w.directory {
		out.Write(entry.content)
		out.Write(make([]byte, sectorsOf(len(entry.content))*sectorSize-len(entry.content)))
	}
	w.entries(&out)
	return out.Bytes()
}

func sectorsOf(size int) int { return (size + sectorSize - 1) / sectorSize }

func (w *compoundWriter) header(out *bytes.Buffer, tables, lists int, directory uint32) {
	write(out, uint64(0xE11AB1A1E011CFD0), [16]byte{})
	write(out, []uint16{0x3E, 3, 0xFFFE, 9, 6}, [6]byte{})
	firstList := uint32(endOfChain)
	if lists > 0 {
		firstList = uint32(tables)
	}
	write(out, []uint32{
		0, uint32(tables), directory, 0, smallStream, endOfChain, 0, firstList,
		uint32(lists),
	})
	for i := range inHeader {
		write(out, numberOr(i, tables))
	}
}

// writeLists writes the sectors that list the sectors of the allocation table for which the header
// has no room.
func writeLists(out *bytes.Buffer, tables, lists int) {
	at := inHeader
	for list := range lists {
		for range perSector - 1 {
			write(out, numberOr(at, tables))
			at++
		}
		if list == lists-1 {
			write(out, uint32(endOfChain))
		} else {
			write(out, uint32(tables+list+1))
		}
	}
}

func numberOr(i, limit int) uint32 {
	if i < limit {
		return uint32(i)
	}
	return freeSector
}

func (w *compoundWriter) entries(out *bytes.Buffer) {
	for _, entry := range w.directory {
		var name [32]uint16
		length := copy(name[:31], utf16.Encode([]rune(entry.name)))
		bytesOfName := uint16(0)
		if length > 0 {
			bytesOfName = uint16(2 * (length + 1))
		}
		write(out, name, bytesOfName, entry.kind, byte(1), entry.left, entry.right, entry.child)
		write(out, [36]byte{}, entry.first, uint64(len(entry.content)))
	}
}

func write(out *bytes.Buffer, values ...any) {
	for _, value := range values {
		must(binary.Write(out, binary.LittleEndian, value))
	}
}
