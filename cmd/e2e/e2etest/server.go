package e2etest

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
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
	log     string
}

// Logged returns what the service has logged so far. The service writes directly to a file, so
// everything that it logged before it was ready, or before it ended, is there by then.
func (s *Server) Logged() string {
	s.T.Helper()
	text, err := os.ReadFile(s.log)
	if err != nil {
		s.T.Fatal(err)
	}
	return string(text)
}

// Serve starts the service and waits for its ready line.
func (w *Harness) Serve(args ...string) *Server {
	w.T.Helper()
	return w.Start(w.Command(append([]string{"serve"}, args...)...))
}

// Start runs a command that serves, and waits for its ready line. The caller may have set the
// command's standard error itself.
func (w *Harness) Start(command *exec.Cmd) *Server {
	w.T.Helper()
	log, err := os.CreateTemp(w.T.TempDir(), "log")
	if err != nil {
		w.T.Fatal(err)
	}
	defer log.Close()
	s := &Server{T: w.T, Command: command, ended: make(chan struct{}), log: log.Name()}
	if s.Command.Stderr == nil {
		s.Command.Stderr = log
	}
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
	_ = s.Command.Process.Signal(syscall.SIGKILL) // it may already have ended
	<-s.ended
}

// Stop stops the service and returns its exit status.
func (s *Server) Stop() int {
	s.T.Helper()
	return s.StopBy(syscall.SIGTERM)
}

// StopBy stops the service by a signal.
func (s *Server) StopBy(signal syscall.Signal) int {
	s.T.Helper()
	if err := s.Command.Process.Signal(signal); err != nil {
		s.T.Fatal(err)
	}
	select {
	case <-s.ended:
	case <-time.After(35 * time.Second):
		s.T.Fatalf("the service did not end within 35 s; it logged %s", s.Logged())
	}
	return s.Command.ProcessState.ExitCode()
}

// WaitForLog waits until a text appears in the service's log.
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

// SignsIn reports whether a demo user can sign in to the console.
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
