package email

import (
	"strings"
	"testing"
)

func TestParseServer(t *testing.T) {
	t.Parallel()
	for rawURL, want := range map[string]Server{
		"smtp://mail.example":      {Host: "mail.example", Port: 25},
		"smtp://mail.example:2525": {Host: "mail.example", Port: 2525},
		"smtp://mail.example/":     {Host: "mail.example", Port: 25},
		"smtp://127.0.0.1:1025":    {Host: "127.0.0.1", Port: 1025},
		"smtp://[::1]:1025":        {Host: "::1", Port: 1025},
		"SMTPS://mail.example":     {Host: "mail.example", Port: 465, ImplicitTLS: true},
		"smtp://ana:pw@mail.example": {
			Host: "mail.example", Port: 587, User: "ana", Password: "pw",
		},
		"smtps://a%40b:p%2F%3F@mail.ex:99": {
			Host: "mail.ex", Port: 99, ImplicitTLS: true, User: "a@b", Password: "p/?",
		},
	} {
		got, err := ParseServer(rawURL)
		if err != nil || got != want {
			t.Errorf("%s is %+v: %v", rawURL, got, err)
		}
	}
}

func TestParseServerRefuses(t *testing.T) {
	t.Parallel()
	for rawURL, want := range map[string]string{
		"":                              "must look like",
		"mail.example:25":               "must look like",
		"http://mail.example":           "must look like",
		"smtp:mail.example":             "must end after host and port",
		"smtp://":                       "host",
		"smtp://:25":                    "host",
		"smtp://secret@mail.example":    "user and a password",
		"smtp://ana:@mail.example":      "user and a password",
		"smtp://:secret@mail.example":   "user and a password",
		"smtp://mail.example:0":         "port",
		"smtp://mail.example:65536":     "port",
		"smtp://mail.example:secret":    "must look like",
		"smtp://mail.example/inbox":     "must end after host and port",
		"smtp://mail.example?tls=off":   "must end after host and port",
		"smtp://mail.example?":          "must end after host and port",
		"smtp://a:secret#x@mail.ex":     "must",
		"smtp://a:secret%00@mail.ex":    "line breaks",
		"smtp://a:secret%0d%0a@mail.ex": "line breaks",
		"smtp://a:secret@mail.ex\r\n":   "must look like",
		"smtp://ma il.example":          "must look like",
		"smtp://mäil.example":           "host",
	} {
		server, err := ParseServer(rawURL)
		if err == nil {
			t.Errorf("%q is %+v", rawURL, server)
			continue
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", rawURL, err, want)
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error quotes the password: %v", rawURL, err)
		}
	}
}

// FuzzParseServer: an accepted server can be dialled and holds no character that would end a
// command early.
func FuzzParseServer(f *testing.F) {
	for _, seed := range []string{
		"smtp://mail.example", "smtps://a:b@mail.example:465", "smtp://[::1%25eth0]:25",
		"smtp://a:%00@x", "smtp://%41:%zz@x", "smtp://x:99999", "//x", "smtp:///", "smtp://a:b@",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, rawURL string) {
		server, err := ParseServer(rawURL)
		if err != nil {
			return
		}
		if server.Host == "" || server.Port < 1 || server.Port > 65535 {
			t.Fatalf("%q is %+v", rawURL, server)
		}
		if (server.User == "") != (server.Password == "") {
			t.Fatalf("%q has half the credentials: %+v", rawURL, server)
		}
		if strings.ContainsAny(server.Host+server.User+server.Password, "\r\n\x00") {
			t.Fatalf("%q smuggles a line break: %+v", rawURL, server)
		}
	})
}
