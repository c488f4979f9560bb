package listener

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// TestAnswersThatNobodyReads writes to a client that reads nothing: little of it stays in the
// kernel.
func TestAnswersThatNobodyReads(t *testing.T) {
	t.Parallel()
	listener, err := New(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	client, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if err := client.(*net.TCPConn).SetReadBuffer(unread); err != nil {
		t.Fatal(err)
	}
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	const most = 8 * unread
	chunk, kept := make([]byte, 16<<10), 0
	for kept <= most {
		_ = conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		n, err := conn.Write(chunk)
		if kept += n; errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Errorf("more than %d KiB are kept of what nobody reads", most>>10)
}
