package e2etest

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"drawbridge/internal/waittest"
)

// Server is a running service.
type Server struct {
	T       *testing.T
	URL     string
	Command *exec.Cmd
	ended   chan struct{}
	mu      sync.Mutex
	log     bytes.Buffer
}

// Write collects the service's log.
func (s *Server) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(text)
}

// Logged is what the service has logged so far.
func (s *Server) Logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// Serve starts the service and waits for its ready line.
func (w *Harness) Serve(args ...string) *Server {
	w.T.Helper()
	return w.Start(w.Command(append([]string{"serve"}, args...)...))
}

// Start runs a command that serves, and waits for its ready line.
func (w *Harness) Start(command *exec.Cmd) *Server {
	w.T.Helper()
	s := &Server{T: w.T, Command: command}
	s.ended = make(chan struct{})
	s.Command.Stderr = s
	stdout, err := s.Command.StdoutPipe()
	if err != nil {
		w.T.Fatal(err)
	}
	if err := s.Command.Start(); err != nil {
		w.T.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	address, found := strings.CutPrefix(strings.TrimSpace(line), "ready ")
	s.URL = address
	go func() {
		_ = s.Command.Wait() // the status is read from ProcessState
		close(s.ended)
	}()
	w.T.Cleanup(s.Kill)
	if err != nil || !found {
		w.T.Fatalf("serve printed %q (%v) and logged %s", line, err, s.Logged())
	}
	return s
}

// Kill ends the service as a crash would.
func (s *Server) Kill() {
	_ = s.Command.Process.Signal(syscall.SIGKILL) // it may have ended already
	<-s.ended
}

// Stop asks the service to end and returns its exit status.
func (s *Server) Stop() int {
	s.T.Helper()
	if err := s.Command.Process.Signal(syscall.SIGTERM); err != nil {
		s.T.Fatal(err)
	}
	select {
	case <-s.ended:
	case <-time.After(35 * time.Second):
		s.T.Fatalf("the service did not end within 35 s; it logged %s", s.Logged())
	}
	return s.Command.ProcessState.ExitCode()
}

// WaitForLog waits until the service has logged a text.
func (s *Server) WaitForLog(text string) {
	s.T.Helper()
	defer func() {
		if s.T.Failed() {
			s.T.Logf("the service logged %s", s.Logged())
		}
	}()
	waittest.Within(s.T, time.Minute, fmt.Sprintf("the service has logged %q", text), func() bool {
		return strings.Contains(s.Logged(), text)
	})
}

// SignsIn tells whether a demo user gets into the console.
func SignsIn(t *testing.T, base string, user DemoUser) bool {
	t.Helper()
	form := url.Values{"email": {user.Email}, "password": {user.Password}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		base+"/console/sign-in", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusSeeOther && len(response.Cookies()) > 0
}
