package e2etest

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// Apart runs a command in a mount namespace of its own, after a shell script that
// changes what is mounted there: nothing outside of it notices. Anyone who is not
// root becomes so in a user namespace.
func Apart(command *exec.Cmd, script string) *exec.Cmd {
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

// Ordinary has a command that runs Apart run as another user than root: as that one if this
// is root, else as this user by another number, in a user namespace within the first.
func Ordinary(command *exec.Cmd, user *syscall.Stat_t) *exec.Cmd {
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
