package web_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"drawbridge/internal/app/apptest"
)

// TestWhatIsNoRequestIsAnsweredInPlainText sends the requests that the guide lists as
// exceptions to the envelope.
func TestWhatIsNoRequestIsAnsweredInPlainText(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t)
	address, _, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), "/")
	for text, status := range map[string]int{
		"GET /api/v2/events?after=a b HTTP/1.1\r\nHost: x\r\n\r\n": http.StatusBadRequest,
		"GET /api/v2/events HTTP/1.1\r\nHost: x\r\nx-long: " +
			strings.Repeat("x", 2<<20) + "\r\n\r\n": http.StatusRequestHeaderFieldsTooLarge,
	} {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		go func() { _, _ = io.WriteString(connection, text) }() // refused before its end
		answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		if answer.StatusCode != status || answer.Header.Get("X-Request-Id") != "" ||
			!strings.HasPrefix(answer.Header.Get("Content-Type"), "text/plain") {
			t.Errorf("%.40q was answered %d %v %s", text, answer.StatusCode, answer.Header, body)
		}
	}
}
