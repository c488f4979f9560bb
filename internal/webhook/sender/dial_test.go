package sender

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// answers is a resolver that returns one set of addresses after the other, and repeats
// the last, like a name that is rebound on purpose.
type answers struct {
	asked atomic.Int32
	sets  [][]string
	host  atomic.Value
}

func (r *answers) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	r.host.Store(network + " " + host)
	at := min(int(r.asked.Add(1)), len(r.sets)) - 1
	return names{strings.TrimSuffix(host, "."): r.sets[at]}.LookupNetIP(ctx, network, host)
}

// failing is a resolver that returns an error.
type failing struct{ err error }

func (r failing) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, r.err
}

// hanging is a resolver that answers only when its caller gives up.
type hanging struct{}

func (hanging) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	<-ctx.Done()
	return nil, &net.DNSError{Err: "i/o timeout", IsTimeout: true}
}

// A name that is public when the subscription is saved and resolves to an internal
// address when the event is sent gets nothing, on any attempt.
func TestSendBlocksRebinding(t *testing.T) {
	t.Parallel()
	end := serve(t, nil, respond(ok200))
	inside := "https://" + net.JoinHostPort(hookName, strconv.Itoa(end.port())) + "/"
	for _, second := range [][]string{
		{"127.0.0.1"},
		{"::ffff:127.0.0.1"},
		{"169.254.169.254"},
		{"10.0.0.1"},
		{"::1"},
		{"64:ff9b::7f00:1"},
		{"93.184.216.34", "127.0.0.1"},
		{"fd00:ec2::254"},
	} {
		resolver := &answers{sets: [][]string{{"93.184.216.34"}, second}}
		sender := newTestSender(t, func(c *Config) {
			c.Policy, c.Resolver = Policy{}, resolver
		})
		u, err := Policy{}.CheckURL(inside)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (Policy{}).CheckResolved(t.Context(), resolver, u); err != nil {
			t.Fatalf("when it is saved: %v", err)
		}
		for range 2 {
			attempt := sender.Send(t.Context(), hook(inside))
			if attempt.Class != ClassBlocked || attempt.Sent || attempt.Timings.Connect != 0 ||
				!strings.HasPrefix(attempt.Error, CauseBlocked.Text()) || !attempt.Address.IsValid() {
				t.Errorf("%v: class %q, error %q", second, attempt.Class, attempt.Error)
			}
		}
	}
	if _, conns := end.got(); conns != 0 {
		t.Errorf("the endpoint got %d connections", conns)
	}
}

// Each connection queries DNS once: the address that was checked is dialled.
func TestSendResolvesOncePerConnection(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	end := serve(t, ca.issue(t, hookName, -time.Hour, time.Hour), once(ok200))
	resolver := &answers{sets: [][]string{{"127.0.0.1"}, {"10.0.0.1"}}}
	sender := newTestSender(t, func(c *Config) { c.RootCAs, c.Resolver = ca.pool, resolver })
	attempt := sender.Send(t.Context(), hook(end.secure()))
	if !attempt.Delivered() || resolver.asked.Load() != 1 {
		t.Errorf("error %q, %d questions", attempt.Error, resolver.asked.Load())
	}
	if asked := resolver.host.Load(); asked != "ip hooks.example." {
		t.Errorf("asked for %q, want the absolute name", asked)
	}
}

// A name of one label is found in the machine's hosts file, and in no search domain of the machine.
func TestSystemResolverFindsShortHosts(t *testing.T) {
	t.Parallel()
	ips, err := systemResolver.LookupNetIP(t.Context(), "ip", "localhost.")
	if err != nil || len(ips) == 0 || !ips[0].Unmap().IsLoopback() {
		t.Errorf("localhost is %v (%v)", ips, err)
	}
	var asked atomic.Int32
	servers := &net.Resolver{
		PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
			asked.Add(1)
			return nil, errNoAddress
		},
	}
	resolver := &system{all: servers, hosts: systemResolver.(*system).hosts}
	for name, want := range map[string]bool{
		"localhost.": false, "no-such-host.": true, "a.example.": true,
	} {
		asked.Store(0)
		_, err := resolver.LookupNetIP(t.Context(), "ip4", name)
		if got := asked.Load(); (got > 0) != want || (err != nil) != want {
			t.Errorf("%s: %d questions, error %v", name, got, err)
		}
	}
}

// The check on the socket works by itself, in case anything ever bypasses the one before
// it.
func TestDialerControlChecksTheSocket(t *testing.T) {
	t.Parallel()
	end := serve(t, nil, respond(ok200))
	d := dialer{policy: Policy{}}
	addr := netip.MustParseAddrPort(end.listener.Addr().String())
	conn, err := d.connect(t.Context(), addr, true)
	if blocked, ok := errors.AsType[*BlockedError](err); !ok || conn != nil || blocked.Addr != addr {
		t.Errorf("connection %v, error %v", conn, err)
	}
	if f := connectError(t.Context(), err); !strings.HasPrefix(f.Error(), CauseBlocked.Text()) {
		t.Errorf("fault %v", f)
	}
}

func TestSendTriesEveryAddress(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	end := serve(t, ca.issue(t, hookName, -time.Hour, time.Hour), respond(ok200))
	tests := []struct {
		name  string
		addrs []string
		class ErrorClass
		last  string
	}{
		{"the second answers", []string{"127.0.0.2", "127.0.0.1"}, "", "127.0.0.1"},
		{"the last answers", []string{"127.0.0.2", "::1", "127.0.0.3", "127.0.0.1"}, "", "127.0.0.1"},
		{"none answers", []string{"127.0.0.2", "127.0.0.3"}, ClassConnect, "127.0.0.3"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			sender := newTestSender(t, func(c *Config) {
				c.RootCAs, c.Resolver = ca.pool, names{hookName: test.addrs}
			})
			attempt := sender.Send(t.Context(), hook(end.secure()))
			if attempt.Class != test.class || attempt.Address.Addr().String() != test.last {
				t.Errorf("class %q, error %q, address %s", attempt.Class, attempt.Error, attempt.Address)
			}
		})
	}
}

func TestSendDNSFailures(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		resolver Resolver
		class    ErrorClass
		text     string
	}{
		{"no such name", names{}, ClassDNS, "the host name does not exist: hooks.example"},
		{"no address", names{hookName: {}}, ClassDNS, "the host name has no address: hooks.example"},
		{"server failure", failing{&net.DNSError{
			Err: "server misbehaving", Server: "10.9.8.7:53", IsTemporary: true,
		}}, ClassDNS, "the name servers gave no answer: hooks.example: server misbehaving"},
		{
			"the resolver's own timeout",
			failing{&net.DNSError{Err: "i/o timeout", IsTimeout: true}},
			ClassDNS, "the name servers gave no answer: hooks.example: i/o timeout",
		},
		{"another error", failing{errors.New("x")}, ClassDNS, "the name servers gave no answer"},
		{"slow", hanging{}, ClassTimeout, "time ran out while the name was looked up"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			sender := newTestSender(t, func(c *Config) {
				if c.Resolver = test.resolver; test.class == ClassTimeout {
					c.Timeout = 200 * time.Millisecond
				}
			})
			attempt := sender.Send(t.Context(), hook("https://"+hookName+"/"))
			if attempt.Class != test.class || !strings.HasPrefix(attempt.Error, test.text) ||
				strings.Contains(attempt.Error, "10.9.8.7") {
				t.Errorf("class %q, error %q; want %q", attempt.Class, attempt.Error, test.text)
			}
			if attempt.Address.IsValid() || attempt.Sent || attempt.Timings.DNS <= 0 {
				t.Errorf("address %s, sent %v, DNS %s", attempt.Address, attempt.Sent,
					attempt.Timings.DNS)
			}
		})
	}
}

func TestSendConnectionRefused(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	_ = listener.Close()
	attempt := newTestSender(t, nil).Send(t.Context(), hook("https://"+addr+"/"))
	if attempt.Class != ClassConnect || attempt.Error != CauseRefused.Text() || attempt.Sent ||
		attempt.Address.String() != addr {
		t.Errorf("class %q, error %q, address %s", attempt.Class, attempt.Error, attempt.Address)
	}
}

// An endpoint whose queue of connections is full does not answer at all.
func TestSendConnectTimesOut(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-ctx.Done()
	d := dialer{policy: loopback}
	_, err := d.dial(ctx, &url.URL{Scheme: "https", Host: "127.0.0.1:8443"})
	f, ok := errors.AsType[*sendError](err)
	if !ok || f.class != ClassTimeout || f.cause != CauseConnectTime {
		t.Errorf("error %v", err)
	}
}

// The system's resolver is used if no other is configured.
func TestSendUsesTheSystemResolver(t *testing.T) {
	t.Parallel()
	sender := newTestSender(t, func(c *Config) { c.Resolver = nil })
	attempt := sender.Send(t.Context(), hook("https://no-such-host.invalid/"))
	if attempt.Class != ClassDNS && attempt.Class != ClassTimeout {
		t.Errorf("class %q, error %q", attempt.Class, attempt.Error)
	}
}
