//go:build !linux

package listener

import "net"

// turnAway can do nothing on this system: a connection that is made in the last instant may be
// reset.
func turnAway(*net.TCPListener) {}
