package sender

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

// hostileAddresses may never be dialled by the strict policy.
var hostileAddresses = []struct{ addr, what string }{
	{"0.0.0.0", "the unspecified address"},
	{"0.0.0.1", "a reserved address"},
	{"0.255.255.255", "a reserved address"},
	{"10.0.0.0", "a private address"},
	{"10.255.255.255", "a private address"},
	{"100.64.0.1", "a carrier-grade NAT address"},
	{"100.127.255.255", "a carrier-grade NAT address"},
	{"100.100.100.200", "a cloud metadata address"},
	{"127.0.0.1", "a loopback address"},
	{"127.255.255.254", "a loopback address"},
	{"168.63.129.16", "a cloud metadata address"},
	{"169.254.0.1", "a link-local address"},
	{"169.254.169.254", "a cloud metadata address"},
	{"169.254.169.253", "a cloud metadata address"},
	{"169.254.170.2", "a cloud metadata address"},
	{"169.254.255.255", "a link-local address"},
	{"172.16.0.1", "a private address"},
	{"172.31.255.255", "a private address"},
	{"192.0.0.1", "a reserved address"},
	{"192.0.0.192", "a cloud metadata address"},
	{"192.0.2.1", "a documentation address"},
	{"192.31.196.1", "a reserved address"},
	{"192.52.193.1", "a reserved address"},
	{"192.88.99.1", "a 6to4 relay address"},
	{"192.168.0.1", "a private address"},
	{"192.168.255.255", "a private address"},
	{"192.175.48.1", "a reserved address"},
	{"198.18.0.1", "a benchmark address"},
	{"198.19.255.255", "a benchmark address"},
	{"198.51.100.7", "a documentation address"},
	{"203.0.113.7", "a documentation address"},
	{"224.0.0.1", "a multicast address"},
	{"239.255.255.255", "a multicast address"},
	{"240.0.0.1", "a reserved address"},
	{"255.255.255.254", "a reserved address"},
	{"255.255.255.255", "the broadcast address"},

	{"::", "the unspecified address"},
	{"::1", "a loopback address"},
	{"::7f00:1", "an IPv4-compatible address"},
	{"::8.8.8.8", "an IPv4-compatible address"},
	{"::ffff:127.0.0.1", "a loopback address"},
	{"::ffff:10.0.0.1", "a private address"},
	{"::ffff:169.254.169.254", "a cloud metadata address"},
	{"::ffff:0:127.0.0.1", "an IPv4-translated address"},
	{"64:ff9b::127.0.0.1", "a NAT64 form of a loopback address"},
	{"64:ff9b::10.1.2.3", "a NAT64 form of a private address"},
	{"64:ff9b::a9fe:a9fe", "a NAT64 form of a cloud metadata address"},
	{"64:ff9b:1::1", "a local NAT64 address"},
	{"64:ff9b:1:ffff::8.8.8.8", "a local NAT64 address"},
	{"64:ff9b:2::8.8.8.8", "a reserved address"},
	{"100::1", "a discard address"},
	{"100:0:0:1::1", "a reserved address"},
	{"2001::1", "a Teredo address"},
	{"2001:0:4136:e378:8000:63bf:3fff:fdd2", "a Teredo address"},
	{"2001:1::1", "a reserved address"},
	{"2001:2::1", "a benchmark address"},
	{"2001:4:112::1", "a reserved address"},
	{"2001:10::1", "an ORCHID address"},
	{"2001:20::1", "an ORCHID address"},
	{"2001:1ff:ffff::1", "a reserved address"},
	{"2001:db8::1", "a documentation address"},
	{"2002:7f00:1::1", "a 6to4 address"},
	{"2002:a00:1::", "a 6to4 address"},
	{"2002:808:808::1", "a 6to4 address"},
	{"2600:1f18::5efe:10.0.0.1", "an ISATAP form of a private address"},
	{"2600:1f18::200:5efe:127.0.0.1", "an ISATAP form of a loopback address"},
	{"2620:4f:8000::1", "a reserved address"},
	{"3ffe::1", "a reserved address"},
	{"3fff::1", "a documentation address"},
	{"4000::1", "a reserved address"},
	{"5f00::1", "a reserved address"},
	{"8000::1", "a reserved address"},
	{"fc00::1", "a private address"},
	{"fd00::1", "a private address"},
	{"fd00:ec2::254", "a cloud metadata address"},
	{"fd20:ce::254", "a cloud metadata address"},
	{"fe80::1", "a link-local address"},
	{"fe80::5efe:10.0.0.1", "a link-local address"},
	{"fec0::1", "a site-local address"},
	{"ff02::1", "a multicast address"},
	{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "a multicast address"},
}

func TestCheckAddrRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range hostileAddresses {
		t.Run(test.addr, func(t *testing.T) {
			t.Parallel()
			addr := netip.AddrPortFrom(netip.MustParseAddr(test.addr), 443)
			blocked, ok := errors.AsType[*BlockedError](Policy{}.CheckAddr(addr))
			if !ok {
				t.Fatal("it is accepted")
			}
			if blocked.Why != "it is "+test.what || blocked.Addr != addr {
				t.Errorf("%v %q, want %q", blocked.Addr, blocked.Why, "it is "+test.what)
			}
		})
	}
}

func TestCheckAddrAccepts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.1", "100.63.255.255", "100.128.0.0",
		"126.255.255.255", "128.0.0.1", "169.253.255.255", "172.15.255.255", "172.32.0.0",
		"192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255",
		"::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2001:200::1", "2001:4860:4860::8888",
		"2003::1", "2606:4700::1", "2a00:1450::1", "2600:1f18::5efe:8.8.8.8",
	} {
		for _, port := range []uint16{443, 1024, 8443, 65535} {
			addr := netip.AddrPortFrom(netip.MustParseAddr(text), port)
			if err := (Policy{}).CheckAddr(addr); err != nil {
				t.Errorf("%s: %v", addr, err)
			}
		}
	}
}

func TestCheckAddrPolicy(t *testing.T) {
	t.Parallel()
	prefixes := func(texts ...string) Policy {
		var p Policy
		for _, text := range texts {
			p.Allow = append(p.Allow, netip.MustParsePrefix(text))
		}
		return p
	}
	tests := []struct {
		name   string
		policy Policy
		addr   string
		ok     bool
	}{
		{"allowed", prefixes("10.0.0.0/8"), "10.1.2.3:443", true},
		{"allowed, mapped", prefixes("10.0.0.0/8"), "[::ffff:10.1.2.3]:443", true},
		{"allowed, low port", prefixes("10.0.0.0/8"), "10.1.2.3:22", false},
		{"allowed, port 80", prefixes("10.0.0.0/8"), "10.1.2.3:80", false},
		{"beside the range", prefixes("10.0.0.0/8"), "192.168.1.1:443", false},
		{"another form of the range", prefixes("10.0.0.0/8"), "[64:ff9b::10.1.2.3]:443", false},
		{"public", prefixes("10.0.0.0/8"), "8.8.8.8:443", true},
		{"public, low port", Policy{}, "8.8.8.8:53", false},
		{"public, port 0", Policy{}, "8.8.8.8:0", false},
		{"metadata in a wide range", prefixes("169.254.0.0/16"), "169.254.169.254:443", false},
		{"beside metadata", prefixes("169.254.0.0/16"), "169.254.1.1:443", true},
		{"metadata in a range of all", prefixes("0.0.0.0/0", "::/0"), "[fd00:ec2::254]:443", false},
		{"metadata by itself", prefixes("169.254.169.254/32"), "169.254.169.254:443", true},
		{"a zone", prefixes("fe80::/10"), "[fe80::1%eth0]:443", false},
		{"link-local without zone", prefixes("fe80::/10"), "[fe80::1]:443", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := test.policy.CheckAddr(netip.MustParseAddrPort(test.addr))
			if (err == nil) != test.ok {
				t.Errorf("CheckAddr(%s): %v, want accepted %v", test.addr, err, test.ok)
			}
		})
	}
	if err := (Policy{}).CheckAddr(netip.AddrPortFrom(netip.Addr{}, 443)); err == nil {
		t.Error("the zero address is accepted")
	}
}

func TestBlockedErrorNamesAddressAndRule(t *testing.T) {
	t.Parallel()
	err := Policy{}.CheckAddr(netip.MustParseAddrPort("10.1.2.3:8443"))
	if err == nil || !strings.Contains(err.Error(), "10.1.2.3:8443") ||
		!strings.Contains(err.Error(), "private") {
		t.Errorf("error %v", err)
	}
}
