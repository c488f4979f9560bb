// Package network returns the network that an address counts as, for limits.
package network

import "net/netip"

// subscriberBits is the length of the prefix that one IPv6 customer has.
const subscriberBits = 64

// Of returns what an address is counted as: itself, or for IPv6 the /64 that one customer has. Text
// that is not an address counts as itself.
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
