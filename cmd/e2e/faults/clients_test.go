package faults

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
)

// TestStopResetsNobody stops a process while many clients open a new connection for each
// request: every accepted connection gets a response. Meanwhile the process says that it
// is not ready and goes on answering.
func TestStopResetsNobody(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	w.Env["DRAWBRIDGE_DRAIN"] = "2s"
	s := w.Serve("--roles", "api")
	address := strings.TrimPrefix(s.URL, "http://")
	var answered, unready atomic.Int64
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for {
				status, err := requestOnce(address, "/readyz")
				switch {
				case errors.Is(err, syscall.ECONNREFUSED):
					return
				case err != nil:
					t.Errorf("a request on a new connection was cut off: %v", err)
					return
				case status == http.StatusServiceUnavailable:
					unready.Add(1)
				default:
					answered.Add(1)
				}
			}
		})
	}
	for answered.Load() < 50 && t.Context().Err() == nil {
		if status, err := requestOnce(address, "/healthz"); err != nil || status != http.StatusOK {
			t.Fatalf("answered %d, %v", status, err)
		}
	}
	if status := s.Stop(); status != 0 {
		t.Errorf("the service ended with %d: %s", status, s.Logged())
	}
	callers.Wait()
	if unready.Load() == 0 {
		t.Error("nobody was told that the process is not ready any more")
	}
}

// requestOnce makes a request on a new connection.
func requestOnce(address, path string) (int, error) {
	conn, err := net.DialTimeout("tcp", address, 30*time.Second)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return 0, err
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nhost: x\r\n\r\n", path); err != nil {
		return 0, err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, fmt.Errorf("reading the answer: %w", err)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}

// TestReadersThatNeverRead lets clients request more than the socket buffers hold and read
// nothing: they are disconnected within two minutes, and cost little until then.
func TestReadersThatNeverRead(t *testing.T) {
	t.Parallel()
	readers := 100
	if *chaos {
		readers = 1500
	}
	w := e2etest.New(t)
	s := w.Serve("--roles", "api")
	address := strings.TrimPrefix(s.URL, "http://")
	before := gauge(t, s, "process_resident_memory_bytes")
	idle := gauge(t, s, "process_open_fds")
	requests := strings.Repeat("GET /docs/openapi.yaml HTTP/1.1\r\nhost: x\r\n\r\n", 200)
	for range readers {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetReadBuffer(4 << 10)
		}
		if err := conn.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, requests); err != nil {
			t.Fatal(err)
		}
	}
	peak, began := before, time.Now()
	for range time.Tick(200 * time.Millisecond) {
		peak = max(peak, gauge(t, s, "process_resident_memory_bytes"))
		open := gauge(t, s, "process_open_fds")
		if open <= idle+5 {
			break
		}
		if time.Since(began) > 2*time.Minute {
			t.Fatalf("%v files are open, %v before", open, idle)
		}
	}
	t.Logf("%d readers cost %.0f MiB and were gone after %s", readers, (peak-before)/(1<<20),
		time.Since(began).Round(time.Second))
	if grown := peak - before; grown > 100<<20 {
		t.Errorf("the process grew by %.0f MiB", grown/(1<<20))
	}
}

// gauge reads metrics of the process at one moment and returns their sum.
func gauge(t *testing.T, s *e2etest.Server, names ...string) float64 {
	t.Helper()
	answer, err := http.Get(s.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	sum, found := 0.0, 0
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if !slices.Contains(names, name) {
			continue
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += value
		found++
	}
	if found < len(names) {
		t.Fatalf("%d of the metrics %s", found, names)
	}
	return sum
}
