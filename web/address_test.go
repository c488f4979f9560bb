package web

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

func TestAddressOfAClient(t *testing.T) {
	t.Parallel()
	proxies := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("::1/128")}
	for _, test := range []struct {
		name      string
		trusted   []netip.Prefix
		peer      string
		forwarded []string
		want      string
	}{
		{"nobody is trusted", nil, "127.0.0.1:9", []string{"203.0.113.7"}, "127.0.0.1"},
		{"no header", proxies, "10.1.0.5:9", nil, "10.1.0.5"},
		{"a proxy speaks", proxies, "10.1.0.5:9", []string{"203.0.113.7"}, "203.0.113.7"},
		{"a proxy over IPv6", proxies, "[::1]:9", []string{"203.0.113.7"}, "203.0.113.7"},
		{"a stranger speaks", proxies, "198.51.100.9:9", []string{"203.0.113.7"}, "198.51.100.9"},
		{"a private address is a stranger", proxies, "10.2.0.5:9", []string{"203.0.113.7"}, "10.2.0.5"},
		{
			"the client forges", proxies, "10.1.0.5:9",
			[]string{"192.0.2.1, 203.0.113.7"},
			"203.0.113.7",
		},
		{
			"two proxies", proxies, "10.1.0.5:9",
			[]string{"192.0.2.1, 203.0.113.7, 10.1.0.6"},
			"203.0.113.7",
		},
		{
			"two headers", proxies, "10.1.0.5:9",
			[]string{"192.0.2.1", "203.0.113.7"},
			"203.0.113.7",
		},
		{
			"with ports", proxies, "10.1.0.5:9",
			[]string{"192.0.2.1, 203.0.113.7:51234, 10.1.0.6:80"},
			"203.0.113.7",
		},
		{"IPv6 with a port", proxies, "10.1.0.5:9", []string{"[2001:db8::7]:51234"}, "2001:db8::7"},
		{"IPv6", proxies, "10.1.0.5:9", []string{"2001:db8::7"}, "2001:db8::7"},
		{"rubbish", proxies, "10.1.0.5:9", []string{"<script>"}, "10.1.0.5"},
	} {
		request := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		request.RemoteAddr = test.peer
		request.Header["X-Forwarded-For"] = test.forwarded
		if got := extractAddress(test.trusted)(request); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// Requests to the console and the probes are not API requests, even if the API has no base
// path.
func TestWhatIsOfTheAPI(t *testing.T) {
	t.Parallel()
	for base, paths := range map[string]map[string]bool{
		"/api": {"/api/v2/events": true, "/api/nothing": true, "/console": false, "/": false},
		"": {
			"/v2/events": true, "/nothing": true, "/consoles": true, "/": false, "/console": false,
			"/console/deliveries": false, "/healthz": false, "/docs/egress.json": false,
		},
	} {
		for path, want := range paths {
			if got := (Options{BasePath: base}).isAPIPath(path); got != want {
				t.Errorf("%s under %q: %t, want %t", path, base, got, want)
			}
		}
	}
}
