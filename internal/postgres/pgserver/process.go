//go:build linux

package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stopPatience is how long each way of stopping may take before the next, harsher one.
const stopPatience = 10 * time.Second

// maxLog is the size beyond which a start truncates the server's log.
const maxLog = 8 << 20

var errPortTaken = errors.New("the port is taken")

// process is a child of ours. exited is closed after err is set.
type process struct {
	command *exec.Cmd
	exited  chan struct{}
	err     error
}

// command prepares a program of the cluster: as its account, with a bare environment so that none
// of our PG variables leaks in, in its own process group so that a Ctrl-C in the terminal reaches
// only us, and with SIGQUIT from the kernel should we die first.
func (h home) command(path string, arguments ...string) *exec.Cmd {
	//nolint:noctx // a server outlives the context of its start
	command := exec.Command(path, arguments...)
	command.Dir = h.folder
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "TZ=UTC"}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGQUIT}
	h.account.apply(command)
	return command
}

// spawn starts the command on a thread that lasts as long as the child: the kernel treats the end
// of the thread that started it as the parent's death.
func spawn(command *exec.Cmd) (*process, error) {
	child := &process{command: command, exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err != nil {
			return
		}
		child.err = command.Wait()
		close(child.exited)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", command.Path, err)
	}
	return child, nil
}

// wait returns the child's exit error, and kills the child's group when ctx ends.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-p.exited:
		return p.err
	case <-ctx.Done():
		_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL) // it may have ended already
		<-p.exited
		return ctx.Err()
	}
}

// stop shuts the server down: cleanly, or at once where the data is volatile.
func (p *process) stop(volatile bool) error {
	signals := []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL}
	if volatile {
		signals = signals[1:]
	}
	for i, signal := range signals {
		if p.done() {
			return nil
		}
		if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("stopping Postgres: %w", err)
		}
		// The wait has no context: SIGKILL ends it in any case.
		ended, _ := waitFor(context.Background(), stopPatience, p.done)
		if ended && i == 0 {
			return nil
		}
	}
	return errors.New("the server did not stop when asked and was killed; its data is safe")
}

func (p *process) done() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// launch runs the server on the port and waits until it accepts connections. It returns
// errPortTaken when another process has the port.
func (h home) launch(
	ctx context.Context, programs programs, port int, options Options,
) (*process, error) {
	flags := os.O_CREATE | os.O_RDWR | os.O_APPEND
	if info, err := os.Stat(h.logPath()); err == nil && info.Size() > maxLog {
		flags |= os.O_TRUNC
	}
	log, err := os.OpenFile(h.logPath(), flags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the server's log: %w", err)
	}
	defer func() { _ = log.Close() }() // the server has its own handle
	offset, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("reading the server's log: %w", err)
	}
	command := h.command(programs.path("postgres"), h.arguments(port, options)...)
	command.Stdout = log
	command.Stderr = log
	child, err := spawn(command)
	if err != nil {
		return nil, err
	}
	pid := strconv.Itoa(command.Process.Pid)
	_, err = waitFor(ctx, startLimit, func() bool { return child.done() || h.ready(pid) })
	if err == nil && !child.done() {
		return child, nil
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("waiting for Postgres: %w", err), child.stop(true))
	}
	return nil, h.whyEnded(offset)
}

// arguments are the server's command line. It holds everything that differs between starts, instead
// of postgresql.conf.
func (h home) arguments(port int, options Options) []string {
	settings := options.settings()
	settings["cluster_name"] = h.clusterName()
	settings["listen_addresses"] = "127.0.0.1"
	settings["port"] = strconv.Itoa(port)
	settings["unix_socket_directories"] = ""
	arguments := []string{"-D", h.dataDir()}
	for name, value := range settings {
		arguments = append(arguments, "--"+name+"="+value)
	}
	slices.Sort(arguments[2:])
	return arguments
}

// ready reads the state that the server keeps in its process id file: the
// eighth line says "ready" once it takes connections.
func (h home) ready(pid string) bool {
	text, err := os.ReadFile(filepath.Join(h.dataDir(), "postmaster.pid"))
	if err != nil {
		return false // not written yet
	}
	lines := strings.Split(string(text), "\n")
	return len(lines) >= 8 && lines[0] == pid && strings.TrimSpace(lines[7]) == "ready"
}

// whyEnded explains from its log why a server ended during its start.
func (h home) whyEnded(offset int64) error {
	text, err := os.ReadFile(h.logPath())
	if err != nil {
		return fmt.Errorf("reading why Postgres ended: %w", err)
	}
	text = text[min(offset, int64(len(text))):]
	if strings.Contains(string(text), "could not bind") {
		return errPortTaken
	}
	return fmt.Errorf("the server ended: %s", lastLines(text))
}
