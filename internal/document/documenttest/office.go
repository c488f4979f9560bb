package documenttest

import (
	"bytes"
	"encoding/binary"
)

// DOC returns a Word 97-2003 document that consists of one line of text.
func DOC(line string) []byte {
	return Compound(
		Entry{Name: "WordDocument", Content: wordStream(line)},
		Entry{Name: "1Table", Content: pieceTable(line)},
	)
}

// textStart is the offset of the text in the main stream, after the file information block.
const textStart = 1024

func wordStream(line string) []byte {
	stream := make([]byte, smallStream)
	at := func(offset int, value uint32) { binary.LittleEndian.PutUint32(stream[offset:], value) }
	short := func(offset int, value uint16) { binary.LittleEndian.PutUint16(stream[offset:], value) }
	short(0x00, 0xA5EC) // signature
	short(0x02, 0x00C1) // version: Word 97
	short(0x06, 0x0409) // language
	short(0x0A, 0x0200) // the piece table is in 1Table
	short(0x0C, 0x00BF)
	at(0x18, textStart)
	at(0x1C, uint32(textStart+len(line)+1))
	short(0x20, 14)
	short(0x3E, 22)
	at(0x40, smallStream)
	at(0x4C, uint32(len(line)+1)) // characters of text
	short(0x98, 93)
	at(0x01A2, 0) // where the piece table begins
	at(0x01A6, uint32(len(pieceTable(line))))
	copy(stream[textStart:], line+"\r")
	return stream
}

// pieceTable describes the whole text as one piece of 8-bit characters.
func pieceTable(line string) []byte {
	var out bytes.Buffer
	write(&out, byte(2), uint32(16), uint32(0), uint32(len(line)+1))
	write(&out, uint16(0), uint32(textStart*2|1<<30), uint16(0))
	return out.Bytes()
}

// XLS returns an Excel 97-2003 workbook with one cell of text.
func XLS(text string) []byte {
	return Compound(Entry{Name: "Workbook", Content: workbookStream(text)})
}

func workbookStream(text string) []byte {
	const sheet = "Panels"
	var globals bytes.Buffer
	record(&globals, 0x0809, []uint16{0x0600, 0x0005, 0x0DBB, 0x07CC}, uint32(0), uint32(6))
	record(&globals, 0x0042, uint16(1200))
	sheetAt := uint32(globals.Len() + 4 + 8 + len(sheet) + 4)
	record(&globals, 0x0085, sheetAt, uint16(0), byte(len(sheet)), byte(0), []byte(sheet))
	record(&globals, 0x000A)

	record(&globals, 0x0809, []uint16{0x0600, 0x0010, 0x0DBB, 0x07CC}, uint32(0), uint32(6))
	record(&globals, 0x0200, uint32(0), uint32(1), []uint16{0, 1, 0})
	record(&globals, 0x0204, []uint16{0, 0, 0, uint16(len(text))}, byte(0), []byte(text))
	record(&globals, 0x000A)
	return globals.Bytes()
}

func record(out *bytes.Buffer, kind uint16, values ...any) {
	var body bytes.Buffer
	write(&body, values...)
	write(out, kind, uint16(body.Len()), body.Bytes())
}
