// Package document receives completion documents: it reads the multipart body of a request, checks
// the real type of each file, and keeps the files in a bucket, from which support staff download
// them.
//
// # From the wire to the bucket
//
// ReadForm streams. One file at a time passes through a nameless temporary file, because the type
// of a Word or Excel file shows at its end or is scattered through it; memory holds a copy buffer
// and the small values, whatever the size of the upload. A file reaches the bucket only after its
// content was checked against its extension, and as one write of known length.
//
// # Why there are markers
//
// A file is stored before the transaction that refers to it, and the two cannot commit together. So
// each file has a marker in the bucket until it is settled:
//
//	pending/UID      written first, empty
//	documents/UID    the content, under its final name from the start
//
//	committed        Form.Keep removes the marker
//	refused, failed  Form.Discard removes the content, then the marker
//	died in between  Store.Sweep finds the marker and checks the database
//	storage silent   the content may come later: the marker stays for Store.Sweep
//
// Nothing is ever moved, so a committed row is right at the instant of its commit. The sweep lists
// only markers: its cost depends on the number of crashes, not the number of documents, and pointed
// at a wrong or restored database it cannot touch a document whose upload was settled. Deleting
// every object that no row refers to would be less code but have neither property.
//
// When the outcome of a commit is unknown (the connection died during it), call neither Keep nor
// Discard: the sweep will settle it from the database.
package document
