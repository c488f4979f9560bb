package sender

import (
	"fmt"
	"net/netip"
	"slices"
)

// BlockedError says that a webhook may not be sent to an address.
type BlockedError struct {
	// Addr is the refused address.
	Addr netip.AddrPort
	// Why is the rule that refuses it, for example "it is a loopback address".
	Why string
}

// Error names the address and the rule.
func (e *BlockedError) Error() string {
	return fmt.Sprintf("%s may not be called: %s", e.Addr, e.Why)
}

// network is a range of addresses and the description of one of them.
type network struct {
	prefix netip.Prefix
	what   string
}

// metadataAddresses serve the machine's own credentials at the cloud providers. They lie
// inside ranges that an operator may have good reason to allow, so one is reachable only
// if that single address is allowed.
var metadataAddresses = map[netip.Addr]bool{
	netip.MustParseAddr("169.254.169.254"): true, // AWS, Google, Azure, Oracle and others
	netip.MustParseAddr("169.254.169.253"): true, // AWS name server
	netip.MustParseAddr("169.254.170.2"):   true, // AWS container credentials
	netip.MustParseAddr("169.254.170.23"):  true, // AWS pod identity
	netip.MustParseAddr("169.254.0.23"):    true, // Tencent
	netip.MustParseAddr("100.100.100.200"): true, // Alibaba
	netip.MustParseAddr("168.63.129.16"):   true, // Azure host, in public space
	netip.MustParseAddr("192.0.0.192"):     true, // Oracle Classic
	netip.MustParseAddr("fd00:ec2::254"):   true, // AWS
	netip.MustParseAddr("fd00:ec2::23"):    true, // AWS pod identity
	netip.MustParseAddr("fd20:ce::254"):    true, // Google
}

// refusedNetworks are the special-purpose ranges of the IANA registries, the narrower
// before the wider, so that the description fits. IPv4-mapped addresses are unmapped
// before they are looked up.
var refusedNetworks = []network{
	{netip.MustParsePrefix("0.0.0.0/32"), "the unspecified address"},
	{netip.MustParsePrefix("0.0.0.0/8"), "a reserved address"},
	{netip.MustParsePrefix("10.0.0.0/8"), "a private address"},
	{netip.MustParsePrefix("100.64.0.0/10"), "a carrier-grade NAT address"},
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address"},
	{netip.MustParsePrefix("172.16.0.0/12"), "a private address"},
	{netip.MustParsePrefix("192.0.0.0/24"), "a reserved address"},
	{netip.MustParsePrefix("192.0.2.0/24"), "a documentation address"},
	{netip.MustParsePrefix("192.31.196.0/24"), "a reserved address"},
	{netip.MustParsePrefix("192.52.193.0/24"), "a reserved address"},
	{netip.MustParsePrefix("192.88.99.0/24"), "a 6to4 relay address"},
	{netip.MustParsePrefix("192.168.0.0/16"), "a private address"},
	{netip.MustParsePrefix("192.175.48.0/24"), "a reserved address"},
	{netip.MustParsePrefix("198.18.0.0/15"), "a benchmark address"},
	{netip.MustParsePrefix("198.51.100.0/24"), "a documentation address"},
	{netip.MustParsePrefix("203.0.113.0/24"), "a documentation address"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("255.255.255.255/32"), "the broadcast address"},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved address"},

	{netip.MustParsePrefix("::/128"), "the unspecified address"},
	{netip.MustParsePrefix("::1/128"), "a loopback address"},
	{netip.MustParsePrefix("::/96"), "an IPv4-compatible address"},
	{netip.MustParsePrefix("::ffff:0:0:0/96"), "an IPv4-translated address"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "a local NAT64 address"},
	{netip.MustParsePrefix("100::/64"), "a discard address"},
	{netip.MustParsePrefix("2001::/32"), "a Teredo address"},
	{netip.MustParsePrefix("2001:2::/48"), "a benchmark address"},
	{netip.MustParsePrefix("2001:10::/28"), "an ORCHID address"},
	{netip.MustParsePrefix("2001:20::/28"), "an ORCHID address"},
	{netip.MustParsePrefix("2001::/23"), "a reserved address"},
	{netip.MustParsePrefix("2001:db8::/32"), "a documentation address"},
	{netip.MustParsePrefix("2002::/16"), "a 6to4 address"},
	{netip.MustParsePrefix("2620:4f:8000::/48"), "a reserved address"},
	{netip.MustParsePrefix("3ffe::/16"), "a reserved address"},
	{netip.MustParsePrefix("3fff::/20"), "a documentation address"},
	{netip.MustParsePrefix("fc00::/7"), "a private address"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("fec0::/10"), "a site-local address"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
}

var (
	// globalUnicast is the only IPv6 space that is allocated; all else is reserved, whatever
	// it may be used for later.
	globalUnicast = netip.MustParsePrefix("2000::/3")
	// nat64 embeds an IPv4 address in its last four bytes. Networks without IPv4 reach
	// public IPv4 hosts through it, so the embedded address is judged.
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
)

// CheckAddr decides whether a connection may be made to an address, which must be the one
// actually dialled. The port rule applies to allowed ranges too. A refusal is a
// *BlockedError.
func (p Policy) CheckAddr(addr netip.AddrPort) error {
	if !allowedPort(addr.Port()) {
		return &BlockedError{Addr: addr, Why: portRule}
	}
	if what := p.refusal(addr.Addr()); what != "" {
		return &BlockedError{Addr: addr, Why: "it is " + what}
	}
	return nil
}

// refusal describes an address that may not be reached, else it returns "".
func (p Policy) refusal(ip netip.Addr) string {
	if !ip.IsValid() {
		return "not an address"
	}
	if ip.Zone() != "" {
		return "a link-local address"
	}
	ip = ip.Unmap()
	if p.allows(ip) {
		return ""
	}
	return special(ip)
}

func (p Policy) allows(ip netip.Addr) bool {
	return slices.ContainsFunc(p.Allow, func(prefix netip.Prefix) bool {
		return prefix.Contains(ip) && (prefix.IsSingleIP() || !metadataAddresses[ip])
	})
}

// special describes why an address is not public, "" if it is public. The address must be
// unmapped and have no zone.
func special(ip netip.Addr) string {
	if metadataAddresses[ip] {
		return "a cloud metadata address"
	}
	for _, n := range refusedNetworks {
		if n.prefix.Contains(ip) {
			return n.what
		}
	}
	if ip.Is4() {
		return ""
	}
	if nat64.Contains(ip) {
		return carried("a NAT64 form of ", ip)
	}
	if !globalUnicast.Contains(ip) {
		return "a reserved address"
	}
	// The interface identifiers of RFC 5214: 0:5efe or 200:5efe before an IPv4 address.
	if b := ip.As16(); b[8]&^0x02 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe {
		return carried("an ISATAP form of ", ip)
	}
	return ""
}

// carried judges the IPv4 address in the last four bytes of an IPv6 one.
func carried(form string, ip netip.Addr) string {
	b := ip.As16()
	if what := special(netip.AddrFrom4([4]byte(b[12:]))); what != "" {
		return form + what
	}
	return ""
}
