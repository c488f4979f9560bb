//go:build !unix

package document

// checkFreeSpace does not know how much is free.
func checkFreeSpace(string, int64) error { return nil }
