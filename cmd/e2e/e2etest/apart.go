package e2etest

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// InMountNamespace runs a command in a separate mount namespace, after a shell script that changes
// the mounts there. Nothing outside is affected. A user other than root becomes root in
// a user namespace.
func InMountNamespace(command *exec.Cmd, script string) *exec.Cmd {
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

// AsOrdinaryUser makes a command for InMountNamespace run as a user other than root: as user if
// this process is root, else as this user under another number, in a nested user namespace.
func AsOrdinaryUser(command *exec.Cmd, user *syscall.Stat_t) *exec.Cmd {
	by := []string{"unshare", "--user", "--map-user=1000", "--map-group=1000"}
	if os.Geteuid() == 0 {
		by = []string{
			"setpriv", "--reuid=" + strconv.Itoa(int(user.Uid)),
			"--regid=" + strconv.Itoa(int(user.Gid)), "--clear-groups",
		}
	}
	changed := exec.Command(by[0], append(append(by[1:], command.Path), command.Args[1:]...)...)
	changed.Dir, changed.Env = command.Dir, command.Env
	return changed
}
