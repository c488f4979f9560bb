// Package documenttest makes the documents that tests upload: small real files
// of every accepted type, hostile ones, and the multipart bodies around them.
package documenttest
