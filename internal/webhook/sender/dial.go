package sender

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Resolver asks DNS. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// patience is how long an address may take to answer while others wait. The
// last one gets all the time that is left.
const patience = 3 * time.Second

// system is the machine's resolver. It reads the system's configuration but leaves out
// what only the C library does, so that a lookup always ends when its context does.
type system struct{ all, hosts *net.Resolver }

// systemResolver asks no server by its hosts, which leaves the machine's list of hosts.
var systemResolver Resolver = &system{
	all: &net.Resolver{PreferGo: true},
	hosts: &net.Resolver{
		PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("no server is asked")
		},
	},
}

// LookupNetIP looks an absolute name up, which ends in a dot. The list of hosts has a name
// without another dot as it is; asked for in this form, DNS would add the domains of the machine.
func (s *system) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if name := strings.TrimSuffix(host, "."); !strings.Contains(name, ".") {
		if ips, err := s.hosts.LookupNetIP(ctx, network, name); err == nil {
			return ips, nil
		}
	}
	return s.all.LookupNetIP(ctx, network, host)
}

// errNoAddress is the answer of a name that exists and has no address.
var errNoAddress = errors.New("the name has no address")

// resolve returns the addresses of a URL that CheckURL accepted, in the order
// of preference, IPv4-mapped ones unwrapped. There is at least one.
func resolve(ctx context.Context, resolver Resolver, u *url.URL) ([]netip.AddrPort, error) {
	port, host := portOf(u), u.Hostname()
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.AddrPort{netip.AddrPortFrom(ip, port)}, nil
	}
	if resolver == nil {
		resolver = systemResolver
	}
	// The dot at the end keeps the search list of the machine out: what an
	// operator saved as "hooks.example" must not become "hooks.example.corp".
	ips, err := resolver.LookupNetIP(ctx, "ip", host+".")
	if err != nil {
		return nil, err
	}
	if len(ips) == 0 {
		return nil, errNoAddress
	}
	addrs := make([]netip.AddrPort, len(ips))
	for i, ip := range ips {
		addrs[i] = netip.AddrPortFrom(ip.Unmap(), port)
	}
	return addrs, nil
}

func portOf(u *url.URL) uint16 {
	if u.Port() == "" {
		return 443 // plain http always names its port: 80 is refused
	}
	port, _ := strconv.ParseUint(u.Port(), 10, 16)
	return uint16(port)
}

// dialer opens TCP connections to addresses that the policy permits. It knows
// no proxy: one would dial where it likes.
type dialer struct {
	policy   Policy
	resolver Resolver
}

// link is an open TCP connection and what opening it took.
type link struct {
	conn         net.Conn
	addr         netip.AddrPort
	dns, connect time.Duration
}

// dial resolves the host of u, checks every address and connects to the first
// that answers. The link's address and timings are filled in as far as it
// came, also when it fails; a failure is a *sendError.
//
// One refused address among several blocks the attempt: a name that leads into
// a private network at times is not one to trust the rest of the time.
func (d *dialer) dial(ctx context.Context, u *url.URL) (link, error) {
	var made link
	start := time.Now()
	addrs, err := resolve(ctx, d.resolver, u)
	made.dns = time.Since(start)
	if err != nil {
		return made, dnsError(ctx, u.Hostname(), err)
	}
	for _, addr := range addrs {
		if err := d.policy.CheckAddr(addr); err != nil {
			made.addr = addr
			return made, blockedError(err)
		}
	}
	start = time.Now()
	for i, addr := range addrs {
		made.addr = addr
		made.conn, err = d.connect(ctx, addr, i == len(addrs)-1)
		made.connect = time.Since(start)
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return made, connectError(ctx, err)
	}
	return made, nil
}

func (d *dialer) connect(ctx context.Context, addr netip.AddrPort, last bool) (net.Conn, error) {
	if !last {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	// The addresses were checked before; the rule holds even if a later change of the code
	// above dials something else.
	tcp := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		addr, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("reading the address to dial: %w", err)
		}
		return d.policy.CheckAddr(addr)
	}}
	return tcp.DialContext(ctx, "tcp", addr.String())
}
