package listener

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestConnectionsThatWaitAreBounded opens more connections than may wait for a request: the
// oldest of them are closed, and nothing else is.
func TestConnectionsThatWaitAreBounded(t *testing.T) {
	t.Parallel()
	finish := make(chan struct{})
	handler := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-finish
		}
		_, _ = io.WriteString(w, "answered")
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(handler))
	server.Config.ConnState = NewConnections(3).Note
	server.Start()
	t.Cleanup(server.Close)
	dial := func(path string) (net.Conn, *bufio.Reader) {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		if path != "" {
			_, _ = io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n")
		}
		return conn, bufio.NewReader(conn)
	}
	answered := func(from *bufio.Reader) {
		t.Helper()
		response, err := http.ReadResponse(from, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(response.Body); string(body) != "answered" {
			t.Fatalf("the answer is %q, %v", body, err)
		}
	}
	_, slow := dial("/slow")
	_, silent := dial("")
	_, first := dial("/")
	answered(first)
	for range 3 {
		_, another := dial("/")
		answered(another)
	}
	for name, closed := range map[string]*bufio.Reader{"silent": silent, "first": first} {
		if _, err := closed.ReadByte(); !errors.Is(err, io.EOF) {
			t.Errorf("reading from the %s connection: %v, want its end", name, err)
		}
	}
	close(finish)
	answered(slow)
}
