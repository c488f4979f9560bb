// Package network tells whose address an address is.
package network

import "net/netip"

// subscriberBits is how long a prefix one customer has for themselves in IPv6.
const subscriberBits = 64

// Of returns what an address is counted as: itself, or of IPv6 the /64 that one
// customer has for themselves. What is no address counts as itself.
func Of(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	return netip.PrefixFrom(ip, subscriberBits).Masked().String()
}
