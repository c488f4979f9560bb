package migrations

import (
	"strings"
	"testing"
)

// An old server is refused in words, not by the first statement that it does not know.
func TestOldServersAreRefused(t *testing.T) {
	t.Parallel()
	for number, refused := range map[int]string{
		90624: "Postgres 9;", 130021: "Postgres 13;", 140000: "", 180001: "",
	} {
		err := supported(number)
		if refused == "" && err != nil ||
			refused != "" && (err == nil || !strings.Contains(err.Error(), refused)) {
			t.Errorf("%d: %v", number, err)
		}
	}
}
