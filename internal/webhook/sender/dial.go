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

// Resolver queries DNS. *net.Resolver implements it.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// addressTimeout is how long to wait for an address while others are left to try. The last one
// gets all the remaining time.
const addressTimeout = 3 * time.Second

// system is the machine's resolver. It reads the system's configuration but leaves out
// what only the C library implements, so that a lookup always ends when its context does.
type system struct{ all, hosts *net.Resolver }

// systemResolver's hosts queries no server, so it only reads the hosts file.
var systemResolver Resolver = &system{
	all: &net.Resolver{PreferGo: true},
	hosts: &net.Resolver{
		PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("no server is asked")
		},
	},
}

// LookupNetIP looks up an absolute name, which ends in a dot. The hosts file has a name without
// another dot as it is; looked up in this form, DNS would add the machine's search domains.
func (s *system) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if name := strings.TrimSuffix(host, "."); !strings.Contains(name, ".") {
		if ips, err := s.hosts.LookupNetIP(ctx, network, name); err == nil {
			return ips, nil
		}
	}
	return s.all.LookupNetIP(ctx, network, host)
}

// errNoAddress means that the name exists but has no address.
var errNoAddress = errors.New("the name has no address")

// resolve returns the addresses of a URL that CheckURL accepted, in order of preference,
// with IPv4-mapped ones unmapped. There is at least one.
func resolve(ctx context.Context, resolver Resolver, u *url.URL) ([]netip.AddrPort, error) {
	port, host := portOf(u), u.Hostname()
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.AddrPort{netip.AddrPortFrom(ip, port)}, nil
	}
	if resolver == nil {
		resolver = systemResolver
	}
	// The dot at the end disables the machine's search list: what an operator saved as
	// "hooks.example" must not become "hooks.example.corp".
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

// dialer opens TCP connections to addresses that the policy permits. It uses no proxy,
// because a proxy would dial any address.
type dialer struct {
	policy   Policy
	resolver Resolver
}

// link is an open TCP connection and how long opening it took.
type link struct {
	conn         net.Conn
	addr         netip.AddrPort
	dns, connect time.Duration
}

// dial resolves the host of u, checks every address and connects to the first that
// answers. The link's address and timings are filled in as far as dial got, also on
// failure; a failure is a *sendError.
//
// One refused address among several blocks the attempt: a name that sometimes resolves
// into a private network cannot be trusted the rest of the time.
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
		ctx, cancel = context.WithTimeout(ctx, addressTimeout)
		defer cancel()
	}
	// The addresses were checked above; this enforces the rule even if a later change of
	// that code dials something else.
	tcp := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		addr, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("reading the address to dial: %w", err)
		}
		return d.policy.CheckAddr(addr)
	}}
	return tcp.DialContext(ctx, "tcp", addr.String())
}
