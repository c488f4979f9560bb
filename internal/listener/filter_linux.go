package listener

import (
	"log/slog"
	"net"

	"golang.org/x/sys/unix"
)

// turnAway drops packets that would begin a new connection at a listener, and lets those pass that
// complete one. The client repeats its packet a second later, and is refused if nothing listens by
// then.
func turnAway(listener *net.TCPListener) {
	const flags, synAck, syn = 13, 0x12, 0x02
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: flags},
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: synAck},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: syn, Jt: 0, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0xffffffff},
	}
	raw, err := listener.SyscallConn()
	if err == nil {
		controlErr := raw.Control(func(fd uintptr) {
			err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
				&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
		})
		if err == nil {
			err = controlErr
		}
	}
	if err != nil {
		slog.Warn("turning new connections away; one may be reset", "error", err)
	}
}
