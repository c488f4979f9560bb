package faults

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"drawbridge/cmd/e2e/e2etest"
)

// apart runs a command in a mount namespace of its own, after a shell script that
// changes what is mounted there: nothing outside of it notices. Whoever is not
// root becomes so in a user namespace.
func apart(command *exec.Cmd, script string) *exec.Cmd {
	command.Args = append([]string{"sh", "-ec", script + "\nexec \"$0\" \"$@\"", command.Path},
		command.Args[1:]...)
	command.Path = "/bin/sh"
	command.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		command.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
	}
	return command
}

// within is where a folder of such a process is seen from outside.
func within(s *e2etest.Server, folder string) string {
	return fmt.Sprintf("/proc/%d/root%s", s.Command.Process.Pid, folder)
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	block := []byte(strings.Repeat("x", 4096))
	for range 100_000 {
		if _, err := file.Write(block); err != nil {
			return
		}
	}
	t.Fatalf("%s never got full", path)
}
