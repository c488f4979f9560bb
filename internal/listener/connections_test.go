package listener

import (
	"bufio"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestConnectionsThatWaitAreBounded opens more connections than may wait for a request or for the
// rest of one: the oldest of them are closed, and nothing else is.
func TestConnectionsThatWaitAreBounded(t *testing.T) {
	t.Parallel()
	finish, read, idle := make(chan struct{}), make(chan struct{}), make(chan struct{}, 10)
	handler := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			read <- struct{}{}
			<-finish
		}
		for buffer := make([]byte, 1); r.Method == http.MethodPost; {
			if n, err := r.Body.Read(buffer); err != nil {
				break
			} else if n > 0 {
				read <- struct{}{}
			}
		}
		_, _ = io.WriteString(w, "answered")
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(handler))
	newConnections(4).Follow(server.Config)
	note := server.Config.ConnState
	server.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		if note(conn, state); state == http.StateIdle {
			idle <- struct{}{}
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	dial := func(text string) (net.Conn, *bufio.Reader) {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		_, _ = io.WriteString(conn, text)
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
		<-idle
	}
	const rest = " HTTP/1.1\r\nHost: x\r\n"
	const post = "POST /" + rest + "content-length: 3\r\n\r\na"
	_, slow := dial("GET /slow" + rest + "\r\n")
	<-read
	_, silent := dial("")
	_, begun := dial("GET / HT")
	_, half := dial(post)
	<-read
	dripping, drops := dial(post)
	<-read
	_, first := dial("GET /" + rest + "\r\n")
	answered(first)
	_, _ = io.WriteString(dripping, "b")
	<-read
	for range 3 {
		_, another := dial("GET /" + rest + "\r\n")
		answered(another)
	}
	for name, closed := range map[string]*bufio.Reader{
		"silent": silent, "begun": begun, "half": half, "first": first,
	} {
		if _, err := closed.ReadByte(); !errors.Is(err, io.EOF) {
			t.Errorf("reading from the %s connection: %v, want its end", name, err)
		}
	}
	_, _ = io.WriteString(dripping, "c")
	answered(drops)
	close(finish)
	answered(slow)
}

func TestWaitingConnectionsLeaveDescriptors(t *testing.T) {
	t.Parallel()
	for descriptors, want := range map[uint64]int{
		1024: 512, 1 << 20: maxWaiting, math.MaxUint64: maxWaiting,
	} {
		if got := mostWaiting(descriptors); got != want {
			t.Errorf("with %d descriptors %d connections wait, want %d", descriptors, got, want)
		}
	}
	if got := NewConnections().most; got < 1 || got > maxWaiting {
		t.Errorf("%d connections may wait", got)
	}
}

// TestUsedHTTP2ConnectionStays opens connections beyond the bound while one is in use whose request
// is there in part: others may go on over it.
func TestUsedHTTP2ConnectionStays(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(
		func(_ http.ResponseWriter, r *http.Request) {
			close(begun)
			_, _ = io.Copy(io.Discard, r.Body)
		}))
	newConnections(1).Follow(server.Config)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	body, rest := io.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		response, err := server.Client().Do(request)
		if err == nil {
			err = response.Body.Close()
		}
		answered <- err
	}()
	<-begun
	var silent []net.Conn
	for range 3 {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		silent = append(silent, conn)
	}
	if _, err := silent[1].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Error("a silent connection too many is not closed")
	}
	_ = rest.Close()
	if err := <-answered; err != nil {
		t.Errorf("the request in part ended with %v", err)
	}
}
