package sender

import "strings"

// IsMasked tells whether a logged header value stands in place of a secret.
func IsMasked(value string) bool { return strings.Contains(value, Masked) }
