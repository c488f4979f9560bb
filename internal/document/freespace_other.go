//go:build !unix

package document

// checkFreeSpace does nothing: free space is not known here.
func checkFreeSpace(string, int64) error { return nil }
