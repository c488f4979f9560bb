package email

import (
	"net/mail"
	"strings"
	"testing"

	"drawbridge/internal/lending"
)

func TestCheckAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"ana@example.com":                        "ana@example.com",
		"Ana.Lopez@Example.COM":                  "Ana.Lopez@example.com",
		"ana+solar_1=x@mail.example.com":         "ana+solar_1=x@mail.example.com",
		"o'brien@example.ie":                     "o'brien@example.ie",
		"!#$%&'*+/=?^_`{|}~-@example.com":        "!#$%&'*+/=?^_`{|}~-@example.com",
		`"john doe"@example.com`:                 `"john doe"@example.com`,
		`"a@b"@example.com`:                      `"a@b"@example.com`,
		`"quo\"te"@example.com`:                  `"quo\"te"@example.com`,
		"anna@münchen.de":                        "anna@xn--mnchen-3ya.de",
		"anna@MÜNCHEN.de":                        "anna@xn--mnchen-3ya.de",
		"用户@例え.jp":                               "", // the local part is not ASCII
		"user@例え.jp":                             "user@xn--r8jz45g.jp",
		"user@مثال.إختبار":                       "user@xn--mgbh0fb.xn--kgbechtv",
		"user@xn--mnchen-3ya.de":                 "user@xn--mnchen-3ya.de",
		"a@localhost":                            "a@localhost",
		"a@1.example":                            "a@1.example",
		"a@" + strings.Repeat("x", 63) + ".com":  "a@" + strings.Repeat("x", 63) + ".com",
		strings.Repeat("x", 64) + "@example.com": strings.Repeat("x", 64) + "@example.com",

		"":                                "",
		"ana":                             "",
		"@example.com":                    "",
		"ana@":                            "",
		"ana@@example.com":                "",
		"ana@example..com":                "",
		"ana@.example.com":                "",
		"ana@example.com.":                "",
		".ana@example.com":                "",
		"ana.@example.com":                "",
		"an..a@example.com":               "",
		"an a@example.com":                "",
		"ana@exam ple.com":                "",
		" ana@example.com":                "",
		"ana@example.com ":                "",
		"ana@-example.com":                "",
		"ana@example-.com":                "",
		"ana@exa_mple.com":                "",
		"ana@[127.0.0.1]":                 "",
		"ana@example.com, bo@example.com": "",
		"ana@example.com;bo@example.com":  "",
		"Ana <ana@example.com>":           "",
		"<ana@example.com>":               "",
		"ana@example.com (home)":          "",
		"(x)ana@example.com":              "",
		"ana@example.com\r\nBcc: all@example.com":   "",
		"ana@example.com\nRCPT TO:<all@x.example>":  "",
		"ana@exam\tple.com":                         "",
		"ana\x00@example.com":                       "",
		"\"ana\r\n\"@example.com":                   "",
		"ana@example.com>\x7f":                      "",
		"ana@exam\xffple.com":                       "",
		"zoë@example.com":                           "",
		"group: ana@example.com;":                   "",
		"=?utf-8?q?ana?= <ana@example.com>":         "",
		"a@" + strings.Repeat("x", 64) + ".com":     "",
		strings.Repeat("x", 65) + "@example.com":    "",
		"a@" + strings.Repeat("x.", 130) + "com":    "",
		"a@" + strings.Repeat("x", 100_000) + ".io": "",
	} {
		err := CheckAddress(address)
		got, normalizeErr := NormalizeAddress(address)
		if (err == nil) != (want != "") || (normalizeErr == nil) != (err == nil) {
			t.Errorf("%.80q: %v", address, err)
			continue
		}
		if got != want {
			t.Errorf("%.80q goes out as %q, want %q", address, got, want)
		}
		if err != nil && (lending.ErrorCode(err) != lending.CodeValidation ||
			!strings.Contains(err.Error(), `"email"`)) {
			t.Errorf("%.80q: the error does not name the field: %v", address, err)
		}
	}
}

func TestParseSender(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, name, address string }{
		{"no-reply@localhost", "", "no-reply@localhost"},
		{"Drawbridge <no-reply@localhost>", "Drawbridge", "no-reply@localhost"},
		{`"Meadow, Lending" <mail@meadow.example>`, "Meadow, Lending", "mail@meadow.example"},
		{"Zoë <z@münchen.de>", "Zoë", "z@xn--mnchen-3ya.de"},
		{"Drawbridge", "", ""},
		{"Drawbridge <no-reply>", "", ""},
		{"a@x.example, b@x.example", "", ""},
		{"A <a@exa_mple.com>", "", ""},
		{"", "", ""},
	} {
		sender, err := ParseSender(test.text)
		if test.address == "" {
			if err == nil || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%q: %v", test.text, err)
			}
			continue
		}
		if err != nil || sender.Name != test.name || sender.Address != test.address {
			t.Errorf("%q is %+v: %v", test.text, sender, err)
		}
	}
}

// TestNamesSurvive sends each name through its header form and back.
func TestNamesSurvive(t *testing.T) {
	t.Parallel()
	for name, want := range hostileNames() {
		address, err := headerAddress(name, `"john doe"@münchen.de`)
		if err != nil {
			t.Fatal(err)
		}
		wire := address.String()
		back, err := mail.ParseAddress(wire)
		if err != nil {
			t.Errorf("%q became %q: %v", name, wire, err)
			continue
		}
		if back.Name != want || back.Address != "john doe@xn--mnchen-3ya.de" {
			t.Errorf("%q came back as %+v", name, back)
		}
		if path := wirePath(address); path != `<"john doe"@xn--mnchen-3ya.de>` {
			t.Errorf("the envelope says %s", path)
		}
	}
}

// hostileNames maps names to their form on arrival.
func hostileNames() map[string]string {
	long := strings.Repeat("ä", 300)
	return map[string]string{
		"":                             "",
		"Ana López":                    "Ana López",
		`Ana "Sunny" López`:            `Ana "Sunny" López`,
		"López, Ana":                   "López, Ana",
		"O'Brien; <admin@evil.test>":   "O'Brien; <admin@evil.test>",
		`back\slash`:                   `back\slash`,
		"Müller (GmbH & Co. KG)":       "Müller (GmbH & Co. KG)",
		"עברית שם":                     "עברית שם",
		"عبد الرحمن":                   "عبد الرحمن",
		"李小龍":                          "李小龍",
		"👩‍👩‍👧 Familie":                "👩‍👩‍👧 Familie",
		"=?utf-8?q?fake?=":             "=?utf-8?q?fake?=",
		"two  spaces":                  "two spaces",
		"Ana\r\nBcc: all@evil.test":    "Ana Bcc: all@evil.test",
		"Ana\x00\x1b[31m":              "Ana [31m",
		"bad\xffutf8":                  "bad\uFFFDutf8",
		long:                           strings.Repeat("ä", maxName),
		strings.Repeat("word ", 30):    strings.TrimSpace(strings.Repeat("word ", 30)),
		"Zoë@home":                     "Zoë@home",
		"trailing quote\"":             "trailing quote\"",
		"a\u2028b":                     "a b",
		"\u202eright to left\u202c ok": "\u202eright to left\u202c ok",
	}
}

// FuzzCheckAddress: an accepted address does no harm on the wire and means the same to another
// parser.
func FuzzCheckAddress(f *testing.F) {
	for _, seed := range []string{
		"ana@example.com", `"a b"@example.com`, "a@münchen.de", "a@b\r\nDATA", "A <a@b.c>",
		"a@xn--mnchen-3ya.de", "\"\\\"\"@x.de", "a(c)@x.de", "ａ@ｅ.ｃｏｍ", "a@ﬁ.de",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		normalized, err := NormalizeAddress(address)
		if err != nil {
			if lending.ErrorCode(err) != lending.CodeValidation {
				t.Fatalf("%q: %v", address, err)
			}
			return
		}
		for _, r := range normalized {
			if r < ' ' || r > '~' {
				t.Fatalf("%q goes out as %q", address, normalized)
			}
		}
		if len(normalized) > maxAddress {
			t.Fatalf("%q is longer than SMTP carries", normalized)
		}
		again, err := NormalizeAddress(normalized)
		if err != nil || again != normalized {
			t.Fatalf("%q became %q and then %q: %v", address, normalized, again, err)
		}
		parsed, err := mail.ParseAddress(normalized)
		if err != nil || parsed.Name != "" {
			t.Fatalf("net/mail reads %q as %v: %v", normalized, parsed, err)
		}
		if path := wirePath(parsed); path != "<"+normalized+">" {
			t.Fatalf("the envelope of %q says %s", normalized, path)
		}
	})
}
