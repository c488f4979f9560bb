package sender

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"drawbridge/internal/lending"
)

// loopback is the policy of a development machine.
var loopback = Policy{
	Allow: []netip.Prefix{
		netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"),
	},
	AllowHTTP: true,
}

func TestCheckURLAccepts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		raw    string
		want   string // "" means raw
		policy Policy
	}{
		{raw: "https://example.com"},
		{raw: "https://example.com/"},
		{raw: "https://hooks.example.com/drawbridge?tenant=7&x=%20y"},
		{raw: "HTTPS://Hooks.Example.COM/Path", want: "https://hooks.example.com/Path"},
		{raw: "https://example.com:443/hook"},
		{raw: "https://example.com:1024/hook"},
		{raw: "https://example.com:8443/hook"},
		{raw: "https://example.com:65535/hook"},
		{raw: "https://xn--bcher-kva.example/hook"},
		{raw: "https://xn--zckzah.xn--zckzah/"},
		{raw: "https://my_hook.example.com/"},
		{raw: "https://a--b.example.com/"},
		{raw: "https://r3---sn-4g5.example.com/"},
		{raw: "https://8.8.8.8/hook"},
		{raw: "https://8.8.8.8:8443/hook"},
		{raw: "https://[2606:4700::6810:1]/hook"},
		{raw: "https://[2606:4700::6810:1]:8443/hook"},
		{raw: "https://1.2.3.4.example.com/"},
		{raw: "https://127.0.0.1.example.com/"},
		{raw: "https://123.example.com/"},
		{raw: "https://example.0xyz/"},
		{raw: "https://localhost.example.com/"},
		{raw: "https://notlocalhost/"},
		{raw: "https://example.com/%23/a@b/%00"},
		{raw: "https://example.com/?next=https://user:pass@localhost/"},
		{raw: "https://127.0.0.1:8443/hook", policy: loopback},
		{raw: "http://127.0.0.1:8080/hook", policy: loopback},
		{raw: "http://[::1]:8080/hook", policy: loopback},
		{raw: "https://127.9.9.9/hook", policy: loopback},
		{raw: "https://" + strings.Repeat("a", 63) + ".example.com/"},
		{raw: "https://example.com/" + strings.Repeat("a", maxURL-len("https://example.com/"))},
	}
	for _, test := range tests {
		t.Run(test.raw[:min(len(test.raw), 60)], func(t *testing.T) {
			t.Parallel()
			u, err := test.policy.CheckURL(test.raw)
			if err != nil {
				t.Fatalf("refused: %v", err)
			}
			want := test.want
			if want == "" {
				want = test.raw
			}
			if u.String() != want {
				t.Errorf("CheckURL = %s, want %s", u, want)
			}
		})
	}
}

// hostileURLs are refused by the strict policy, each with a reason that
// contains the word.
var hostileURLs = []struct{ raw, word string }{
	// Text
	{"", "required"},
	{" https://example.com/", "space"},
	{"https://example.com/ ", "space"},
	{"https://exam ple.com/", "space"},
	{"https://example.com/a b", "space"},
	{"https://example.com/?q=a b", "space"},
	{"https://example.com/\tx", "control"},
	{"https://example.com/\r\nx-injected: 1", "control"},
	{"https://example.com/\nGET / HTTP/1.1", "control"},
	{"https://example.com/\x00", "control"},
	{"https://example.com/\x7f", "control"},
	{"https://127.0.0.1\x00.example.com/", "control"},
	{"java\tscript:alert(1)", "control"},
	{"https:\\\\example.com\\", "backslash"},
	{"https://example.com\\@127.0.0.1/", "backslash"},
	{"https://example.com/\\..", "backslash"},
	{"https://example.com/#", "fragment"},
	{"https://example.com/#part", "fragment"},
	{"https://example.com#@127.0.0.1/", "fragment"},
	{"https://bücher.example/", "ASCII"},
	{"https://example.com/wébhook", "ASCII"},
	{"https://ⓛocalhost/", "ASCII"},
	{"https://１２７.0.0.1/", "ASCII"},
	{"https://127。0。0。1/", "ASCII"},
	{"https://①②⑦.⓪.⓪.①/", "ASCII"},
	{"https://exаmple.com/", "ASCII"}, // a Cyrillic letter
	{"https://example.com\u200b/", "ASCII"},
	{"https://example.com\u2044path", "ASCII"},
	{"https://\xff\xfe/", "ASCII"},
	{"https://example.com/" + strings.Repeat("a", maxURL), "2048"},

	// Scheme
	{"http://example.com/", "https://"},
	{"http://example.com:8080/", "https://"},
	{"ftp://example.com/", "https://"},
	{"file:///etc/passwd", "https://"},
	{"gopher://example.com:1024/_x", "https://"},
	{"dict://example.com:11111/", "https://"},
	{"ldap://example.com/", "https://"},
	{"unix:///var/run/docker.sock", "https://"},
	{"data:text/plain,x", "https://"},
	{"javascript:alert(1)", "https://"},
	{"wss://example.com/", "https://"},
	{"httpss://example.com/", "https://"},
	{"https+unix://example.com/", "https://"},
	{"example.com", "https://"},
	{"example.com:443/hook", "https://"},
	{"//example.com/", "https://"},
	{"/hook", "https://"},
	{"https", "https://"},
	{"://example.com", "not a URL"},
	{"1https://example.com/", "not a URL"},

	// Shape
	{"https:", "no host"},
	{"https:example.com", "no host"},
	{"https:/example.com", "no host"},
	{"https://", "no host"},
	{"https:///hook", "no host"},
	{"https:////example.com/", "no host"},
	{"https://?q", "no host"},
	{"https://:443/", ""},
	{"https://user@example.com/", "user name"},
	{"https://user:password@example.com/", "user name"},
	{"https://:password@example.com/", "user name"},
	{"https://@example.com/", "user name"},
	{"https://:@example.com/", "user name"},
	{"https://example.com@127.0.0.1/", "user name"},
	{"https://example.com:443@127.0.0.1/", "user name"},
	{"https://127.0.0.1@example.com/", "user name"},
	{"https://a@b@example.com/", ""},
	{"https://us%65r@example.com/", "user name"},
	{"https://example.com%40127.0.0.1/", ""},
	{"https://%6c%6f%63%61%6c%68%6f%73%74/", ""},
	{"https://127.0.0.1%2f@example.com/", "user name"},
	{"https://example.com%2f.evil.test/", ""},
	{"https://ex%c3%a4mple.com/", "unusual"},
	{"https://example.com%00/", ""},
	{"https://example.com%20/", ""},
	{"https://[fe80::1%25eth0]/", ""},
	{"https://[fe80::1%eth0]/", ""},
	{"https://[2606:4700::1%251]/", ""},

	// Port
	{"https://example.com:80/", "port 80"},
	{"https://example.com:22/", "port 22"},
	{"https://example.com:25/", "port 25"},
	{"https://example.com:53/", "port 53"},
	{"https://example.com:442/", "port 442"},
	{"https://example.com:444/", "port 444"},
	{"https://example.com:1023/", "port 1023"},
	{"https://8.8.8.8:21/", "port 21"},
	{"https://example.com:1/", "port 1"},
	{"https://example.com:0/", "1 to 65535"},
	{"https://example.com:65536/", "1 to 65535"},
	{"https://example.com:99999999999999999999/", "1 to 65535"},
	{"https://example.com:0443/", "1 to 65535"},
	{"https://example.com:00443/", "1 to 65535"},
	{"https://example.com:/", "colon"},
	{"https://8.8.8.8:/", "colon"},
	{"https://example.com:-443/", "not a URL"},
	{"https://example.com:+443/", "not a URL"},
	{"https://example.com:443x/", "not a URL"},
	{"https://example.com:443:443/", ""},
	{"https://example.com:0x1bb/", "not a URL"},

	// Names
	{"https://localhost/", "this machine"},
	{"https://LOCALHOST/", "this machine"},
	{"https://LocalHost:8443/", "this machine"},
	{"https://foo.localhost/", "this machine"},
	{"https://a.b.localhost/", "this machine"},
	{"https://localhost.localdomain/", "this machine"},
	{"https://localhost6/", "this machine"},
	{"https://ip6-localhost/", "this machine"},
	{"https://ip6-loopback/", "this machine"},
	{"https://localhost./", "dot"},
	{"https://example.com./", "dot"},
	{"https://example.com../", "dot"},
	{"https://./", "dot"},
	{"https://.example.com/", "empty part"},
	{"https://example..com/", "empty part"},
	{"https://metadata/", "metadata"},
	{"https://metadata.google.internal/computeMetadata/v1/", "metadata"},
	{"https://METADATA.google.INTERNAL/", "metadata"},
	{"https://x.metadata.google.internal/", "metadata"},
	{"https://metadata.goog/", "metadata"},
	{"https://metadata.tencentyun.com/", "metadata"},
	{"https://instance-data/latest/meta-data/", "metadata"},
	{"https://instance-data.ec2.internal/", "metadata"},
	{"https://rancher-metadata/", "metadata"},
	{"https://-example.com/", "hyphen"},
	{"https://example-.com/", "hyphen"},
	{"https://exam!ple.com/", "contains"},
	{"https://exam*ple.com/", "contains"},
	{"https://example.com,evil.test/", "contains"},
	{"https://example.com;evil.test/", "contains"},
	{"https://exam'ple.com/", "contains"},
	{"https://(example).com/", "contains"},
	{"https://exam<ple.com/", ""},
	{"https://$(id).example.com/", "contains"},
	{"https://`id`.example.com/", ""},
	{"https://{host}/", ""},
	{"https://xn--/", "hyphen"},
	{"https://xn--a/", "punycode"},
	{"https://xn--zz--zz.example/", "punycode"},
	{"https://xn--example-.com/", "hyphen"},
	{"https://xn--ls8h=.example/", "contains"},
	{"https://xn--localhost-.example/", "hyphen"},
	{"https://xn--99999999999.example/", "punycode"},
	{"https://" + strings.Repeat("a", 64) + ".example.com/", "63"},
	{"https://" + strings.Repeat("a.", 130) + "com/", "at most 253"},

	// IPv4 in old notations
	{"https://127.1/", "ends in a number"},
	{"https://127.0.1/", "ends in a number"},
	{"https://0/", "ends in a number"},
	{"https://1/", "ends in a number"},
	{"https://2130706433/", "ends in a number"},
	{"https://017700000001/", "ends in a number"},
	{"https://0x7f000001/", "ends in a number"},
	{"https://0X7F000001/", "ends in a number"},
	{"https://0x7f.1/", "ends in a number"},
	{"https://0x7f.0x0.0x0.0x1/", "ends in a number"},
	{"https://0177.0.0.1/", "ends in a number"},
	{"https://0177.0.0.01/", "ends in a number"},
	{"https://127.0.0.01/", "ends in a number"},
	{"https://127.000.000.001/", "ends in a number"},
	{"https://127.0.0.0x1/", "ends in a number"},
	{"https://127.0.0.1.1/", "ends in a number"},
	{"https://256.256.256.256/", "ends in a number"},
	{"https://8.8.8.8.8/", "ends in a number"},
	{"https://example.123/", "ends in a number"},
	{"https://example.0x/", "ends in a number"},
	{"https://example.0x1f/", "ends in a number"},
	{"https://3232235777/", "ends in a number"},
	{"https://127.0.0.1./", "dot"},
	{"https://0x/", "ends in a number"},

	// IPv6 notations
	{"https://::1/", ""},
	{"https://2606:4700::1/", ""},
	{"https://[::1/", "not a URL"},
	{"https://::1]/", ""},
	{"https://[]/", ""},
	{"https://[1.2.3.4]/", "not a URL"},
	{"https://[example.com]/", "not a URL"},
	{"https://[v1.fe80::1]/", ""},
	{"https://[::1]x/", "not a URL"},
	{"https://[12345::1]/", "not a URL"},
	{"https://[1::2::3]/", "not a URL"},
	{"https://[::ffff:127.0.0.1]/", "hides an IPv4"},
	{"https://[::ffff:7f00:1]/", "hides an IPv4"},
	{"https://[::FFFF:8.8.8.8]/", "hides an IPv4"},
	{"https://[0:0:0:0:0:ffff:10.0.0.1]/", "hides an IPv4"},
	{"https://[64:ff9b::127.0.0.1]/", "hides an IPv4"},
	{"https://[64:ff9b::808:808]/", "hides an IPv4"},
	{"https://[::127.0.0.1]/", "IPv4-compatible"},
	{"https://[0000:0000:0000:0000:0000:0000:0000:0001]/", "loopback"},
}

func TestCheckURLRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range hostileURLs {
		t.Run(test.raw[:min(len(test.raw), 60)], func(t *testing.T) {
			t.Parallel()
			u, err := Policy{}.CheckURL(test.raw)
			if err == nil {
				t.Fatalf("accepted as %s", u)
			}
			refusal, ok := errors.AsType[*lending.Error](err)
			if !ok || refusal.Code != lending.CodeValidation ||
				len(refusal.Details) != 1 || refusal.Details[0].Field != "url" {
				t.Fatalf("error %#v is not a validation error of the field url", err)
			}
			if !strings.Contains(err.Error(), test.word) {
				t.Errorf("error %q, want one with %q", err, test.word)
			}
			if strings.Contains(err.Error(), "password@") {
				t.Errorf("the error shows a password: %v", err)
			}
		})
	}
}

// An address that may not be dialled may not be saved either.
func TestCheckURLRefusesEveryHostileAddress(t *testing.T) {
	t.Parallel()
	for _, test := range hostileAddresses {
		host := test.addr
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		for _, raw := range []string{"https://" + host + "/", "https://" + host + ":8443/"} {
			if u, err := (Policy{}).CheckURL(raw); err == nil {
				t.Errorf("%s is accepted as %s", raw, u)
			}
		}
	}
	if total := len(hostileAddresses) + len(hostileURLs); total < 150 {
		t.Errorf("only %d hostile cases", total)
	}
}

func TestCheckURLPolicy(t *testing.T) {
	t.Parallel()
	noHTTP := Policy{Allow: loopback.Allow}
	noRange := Policy{AllowHTTP: true}
	tests := []struct {
		name   string
		policy Policy
		raw    string
		ok     bool
	}{
		{"allowed range", loopback, "https://127.0.0.1:8443/", true},
		{"plain http in it", loopback, "http://127.0.0.1:8443/", true},
		{"plain http outside", loopback, "http://8.8.8.8:8443/", false},
		{"plain http to a name", loopback, "http://example.com:8443/", false},
		{"plain http to localhost", loopback, "http://localhost:8443/", false},
		{"localhost is a name", loopback, "https://localhost:8443/", false},
		{"plain http on its own port", loopback, "http://127.0.0.1/", false},
		{"plain http on port 80", loopback, "http://127.0.0.1:80/", false},
		{"a low port in it", loopback, "https://127.0.0.1:25/", false},
		{"IPv4-mapped in it", loopback, "https://[::ffff:127.0.0.1]:8443/", false},
		{"another private range", loopback, "https://10.0.0.1/", false},
		{"plain http switched off", noHTTP, "http://127.0.0.1:8443/", false},
		{"https still on", noHTTP, "https://127.0.0.1:8443/", true},
		{"plain http without a range", noRange, "http://8.8.8.8:8443/", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if _, err := test.policy.CheckURL(test.raw); (err == nil) != test.ok {
				t.Errorf("CheckURL(%s): %v, want accepted %v", test.raw, err, test.ok)
			}
		})
	}
}

// names is a resolver that has a few names; others do not exist.
type names map[string][]string

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	texts, known := n[strings.TrimSuffix(host, ".")]
	if !known {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	var addrs []netip.Addr
	for _, text := range texts {
		addrs = append(addrs, netip.MustParseAddr(text))
	}
	return addrs, nil
}

func TestCheckResolved(t *testing.T) {
	t.Parallel()
	resolver := names{
		"public.example":  {"93.184.216.34", "2606:4700::1"},
		"private.example": {"10.0.0.7"},
		"mixed.example":   {"93.184.216.34", "::ffff:127.0.0.1"},
		"nat64.example":   {"64:ff9b::5db8:d822"},
		"empty.example":   {},
	}
	tests := []struct {
		host             string
		policy           Policy
		warning, refusal string
	}{
		{host: "public.example"},
		{host: "nat64.example"},
		{host: "93.184.216.34"},
		{host: "private.example", refusal: "resolves to 10.0.0.7, which is a private address"},
		{host: "mixed.example", refusal: "resolves to 127.0.0.1, which is a loopback address"},
		{host: "mixed.example", policy: loopback},
		{host: "missing.example", warning: "missing.example does not resolve now"},
		{host: "empty.example", warning: "empty.example does not resolve now"},
	}
	for _, test := range tests {
		t.Run(test.host, func(t *testing.T) {
			t.Parallel()
			u, err := test.policy.CheckURL("https://" + test.host + "/hook")
			if err != nil {
				t.Fatal(err)
			}
			warning, err := test.policy.CheckResolved(t.Context(), resolver, u)
			if test.refusal == "" && err != nil || test.refusal != "" &&
				(lending.ErrorCode(err) != lending.CodeValidation ||
					!strings.Contains(err.Error(), test.refusal)) {
				t.Errorf("refusal %v, want %q", err, test.refusal)
			}
			if (warning == "") != (test.warning == "") || !strings.Contains(warning, test.warning) {
				t.Errorf("warning %q, want %q", warning, test.warning)
			}
		})
	}
}

func FuzzCheckURL(f *testing.F) {
	for _, test := range hostileURLs {
		f.Add(test.raw)
	}
	f.Add("https://hooks.example.com:8443/drawbridge?x=1")
	f.Add("http://127.0.0.1:8080/hook")
	f.Add("https://[2606:4700::6810:1]:8443/hook")
	f.Fuzz(func(t *testing.T, raw string) {
		for _, policy := range []Policy{{}, loopback} {
			u, err := policy.CheckURL(raw)
			if err != nil {
				if lending.ErrorCode(err) != lending.CodeValidation {
					t.Fatalf("%q: an internal error: %v", raw, err)
				}
				continue
			}
			checkAccepted(t, policy, raw, u)
		}
	})
}

// checkAccepted checks the properties that every accepted URL must have.
func checkAccepted(t *testing.T, policy Policy, raw string, u *url.URL) {
	t.Helper()
	if u.Scheme != "https" && (u.Scheme != "http" || !policy.AllowHTTP) || u.User != nil ||
		u.Fragment != "" || strings.ContainsAny(u.RequestURI(), " \r\n\t\\#") {
		t.Fatalf("%q is accepted as %s", raw, u)
	}
	again, err := policy.CheckURL(u.String())
	if err != nil || again.String() != u.String() {
		t.Fatalf("%q is accepted as %s, which is not accepted itself: %v", raw, u, err)
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return
	}
	if err := policy.CheckAddr(netip.AddrPortFrom(ip, portOf(u))); err != nil {
		t.Fatalf("%q is accepted, but may not be dialled: %v", raw, err)
	}
}

func BenchmarkCheckURL(b *testing.B) {
	for b.Loop() {
		if _, err := (Policy{}).CheckURL("https://hooks.example.com:8443/drawbridge?x=1"); err != nil {
			b.Fatal(err)
		}
	}
}
