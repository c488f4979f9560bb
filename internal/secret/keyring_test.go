package secret

import (
	"bytes"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"
)

// material returns 32 bytes, each different, that depend on the seed.
func material(seed byte) []byte {
	key := make([]byte, keyBytes)
	for i := range key {
		key[i] = seed + byte(i)*7
	}
	return key
}

func ring(t *testing.T, seeds ...byte) *Keyring {
	t.Helper()
	var parts []string
	for _, seed := range seeds {
		parts = append(parts, keyScheme+base64.StdEncoding.EncodeToString(material(seed)))
	}
	parsed, err := ParseKeyring(strings.Join(parts, ","))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestParseKeyring(t *testing.T) {
	t.Parallel()
	std := base64.StdEncoding.EncodeToString(material(250))
	url := base64.URLEncoding.EncodeToString(material(250))
	other := base64.StdEncoding.EncodeToString(material(1))
	zero := base64.StdEncoding.EncodeToString(make([]byte, keyBytes))
	if std == url {
		t.Fatal("the key must tell the two alphabets apart")
	}
	tests := []struct {
		name, raw string
		keys      int
		want      string // part of the error
	}{
		{"standard base64", keyScheme + std, 1, ""},
		{"URL-safe base64", keyScheme + url, 1, ""},
		{"without padding", keyScheme + strings.TrimRight(std, "="), 1, ""},
		{"two keys", keyScheme + std + "," + keyScheme + other, 2, ""},
		{"two keys, one scheme", keyScheme + std + ", " + other, 2, ""},
		{"generated", GenerateKey(), 1, ""},
		{"empty", "", 0, "key 1 must begin with base64key://"},
		{"no scheme", std, 0, "key 1 must begin with base64key://"},
		{"other scheme", "awskms://alias/x", 0, "key 1 must begin with base64key://"},
		{"second has another scheme", keyScheme + std + ",awskms://x", 0, "key 2 must begin"},
		{"no key", keyScheme, 0, "key 1 has 0 bytes and must have 32"},
		{"too short", keyScheme + std[:40], 0, "key 1 has 30 bytes"},
		{"too long", keyScheme + std[:43] + "AAAA", 0, "key 1"},
		{"not base64", keyScheme + "!" + std[1:], 0, "key 1 is not base64"},
		{"all zero", keyScheme + zero, 1, ""},
		{"twice", keyScheme + std + "," + keyScheme + url, 0, "key 2 is given twice"},
		{"trailing comma", keyScheme + std + ",", 0, "key 2 has 0 bytes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			parsed, err := ParseKeyring(test.raw)
			if test.want == "" {
				if err != nil || len(parsed.IDs()) != test.keys {
					t.Fatalf("keys %v, error %v", parsed, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("error %v, want one with %q", err, test.want)
			}
			for _, key := range []string{std, url, other} {
				if strings.Contains(err.Error(), key[:8]) {
					t.Errorf("the error quotes the key: %v", err)
				}
			}
		})
	}
}

func TestSealAndOpen(t *testing.T) {
	t.Parallel()
	r := ring(t, 1)
	for _, text := range []string{"", "s", "whsec_abc", strings.Repeat("ä\x00", 5000)} {
		sealed := r.Seal([]byte(text), "subscription", "secret", "42")
		if len(text) > 3 && strings.Contains(sealed, text) {
			t.Fatal("the sealed value shows the text")
		}
		opened, err := r.Open(sealed, "subscription", "secret", "42")
		if err != nil || string(opened) != text {
			t.Errorf("opening gives %d bytes, %v", len(opened), err)
		}
		if again := r.Seal([]byte(text), "subscription", "secret", "42"); again == sealed {
			t.Error("sealing twice gives the same value: the nonce is not random")
		}
	}
}

func TestOpenRefusesWhatWasNotSealedForThisPlace(t *testing.T) {
	t.Parallel()
	r := ring(t, 1)
	sealed := r.Seal([]byte("top secret"), "subscription", "secret", "42")
	last := sealed[:len(sealed)-1] + string(sealed[len(sealed)-1]^1)
	tests := []struct {
		name, sealed, table, column, row string
		want                             error
	}{
		{"another row", sealed, "subscription", "secret", "43", ErrCorrupt},
		{"another column", sealed, "subscription", "previous_secret", "42", ErrCorrupt},
		{"another table", sealed, "version", "secret", "42", ErrCorrupt},
		{"parts shifted", sealed, "subscriptions", "ecret", "42", ErrCorrupt},
		{"damaged", last, "subscription", "secret", "42", ErrCorrupt},
		{"cut", sealed[:len(sealed)-8], "subscription", "secret", "42", ErrCorrupt},
		{"cut to the nonce", sealed[:len("v1.00000000.")+16], "subscription", "secret", "42", ErrCorrupt},
		{"empty", "", "subscription", "secret", "42", ErrCorrupt},
		{"plain text", "top secret", "subscription", "secret", "42", ErrCorrupt},
		{"no box", sealed[:len("v1.00000000.")], "subscription", "secret", "42", ErrCorrupt},
		{"other version", "v2" + sealed[2:], "subscription", "secret", "42", ErrCorrupt},
		{"other key id", "v1.00000000" + sealed[11:], "subscription", "secret", "42", ErrUnknownKey},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			opened, err := r.Open(test.sealed, test.table, test.column, test.row)
			if !errors.Is(err, test.want) || opened != nil {
				t.Fatalf("opened %q, error %v, want %v", opened, err, test.want)
			}
			if strings.Contains(err.Error(), "top secret") {
				t.Errorf("the error shows a text: %v", err)
			}
		})
	}
}

// stale reports whether a value must be re-encrypted with the current key.
func stale(r *Keyring, sealed string) bool {
	id, ok := KeyID(sealed)
	return !ok || id != r.Current()
}

func TestKeyRotation(t *testing.T) {
	t.Parallel()
	before, during, after := ring(t, 1), ring(t, 2, 1), ring(t, 2)
	old := before.Seal([]byte("v"), "t", "c", "1")
	if id, ok := KeyID(old); !ok || id != before.Current() {
		t.Fatalf("KeyID = %q, %v", id, ok)
	}
	if !stale(during, old) || stale(before, old) || !stale(during, "rubbish") {
		t.Error("stale must be exactly the values that the first key did not seal")
	}
	opened, err := during.Open(old, "t", "c", "1")
	if err != nil {
		t.Fatalf("the old key still opens while it is in the ring: %v", err)
	}
	renewed := during.Seal(opened, "t", "c", "1")
	if stale(during, renewed) || !slices.Equal(during.IDs(), []string{
		after.Current(), before.Current(),
	}) {
		t.Error("the first key must seal")
	}
	if got, err := after.Open(renewed, "t", "c", "1"); err != nil || !bytes.Equal(got, opened) {
		t.Errorf("after the rotation: %q, %v", got, err)
	}
	if _, err := after.Open(old, "t", "c", "1"); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("a value that was not sealed again: %v, want ErrUnknownKey", err)
	}
}

func FuzzParseKeyring(f *testing.F) {
	f.Add(keyScheme + base64.StdEncoding.EncodeToString(material(1)))
	f.Add(keyScheme + base64.URLEncoding.EncodeToString(material(250)) + "," + keyScheme)
	f.Add("base64key://,,")
	f.Add("awskms://x")
	f.Fuzz(func(t *testing.T, raw string) {
		parsed, err := ParseKeyring(raw)
		if err != nil {
			return
		}
		sealed := parsed.Seal([]byte("v"), "t", "c", "1")
		if got, err := parsed.Open(sealed, "t", "c", "1"); err != nil || string(got) != "v" {
			t.Errorf("an accepted key ring does not work: %q, %v", got, err)
		}
	})
}

func FuzzOpen(f *testing.F) {
	parsed, err := ParseKeyring(keyScheme + base64.StdEncoding.EncodeToString(material(1)))
	if err != nil {
		f.Fatal(err)
	}
	// Encrypted once: fuzzing runs in several processes.
	const genuine = "v1.79bfe304.PAojZIg51b1nPXar6KP-M73p2mZXOtMEMGl-yn0"
	if _, err := parsed.Open(genuine, "t", "c", "1"); err != nil {
		f.Fatal(err)
	}
	f.Add(genuine)
	f.Add("v1." + parsed.Current() + ".")
	f.Add("v1..")
	f.Add("")
	f.Fuzz(func(t *testing.T, sealed string) {
		if _, err := parsed.Open(sealed, "t", "c", "1"); err == nil && sealed != genuine {
			t.Errorf("opened a value that was never sealed: %q", sealed)
		}
	})
}

func BenchmarkSealAndOpen(b *testing.B) {
	parsed, err := ParseKeyring(GenerateKey())
	if err != nil {
		b.Fatal(err)
	}
	text := []byte(NewToken("whsec_").Reveal())
	for b.Loop() {
		sealed := parsed.Seal(text, "subscription", "secret", "42")
		if _, err := parsed.Open(sealed, "subscription", "secret", "42"); err != nil {
			b.Fatal(err)
		}
	}
}

func TestTrivial(t *testing.T) {
	t.Parallel()
	zero := base64.StdEncoding.EncodeToString(make([]byte, keyBytes))
	for raw, want := range map[string]bool{
		GenerateKey():                          false,
		keyScheme + zero:                       true,
		GenerateKey() + "," + keyScheme + zero: true,
	} {
		keys, err := ParseKeyring(raw)
		if err != nil {
			t.Fatal(err)
		}
		if keys.Trivial() != want {
			t.Errorf("%s is trivial: %v, want %v", raw, !want, want)
		}
	}
}
