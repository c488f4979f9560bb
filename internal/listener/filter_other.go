//go:build !linux

package listener

import "net"

// turnAway has no means here: a connection that is made in the last instant may be
// reset.
func turnAway(*net.TCPListener) {}
