package email_test

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"drawbridge/internal/email"
	"drawbridge/internal/email/emailtest"
)

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func decode(line string) string {
	text, err := base64.StdEncoding.DecodeString(line)
	if err != nil {
		return "not base64: " + line
	}
	return string(text)
}

// TestMechanisms signs in by each mechanism; the server's side checks it as its RFC describes.
func TestMechanisms(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		offer string
		serve func(*emailtest.Talk) bool
	}{
		{"PLAIN", servePlain},
		{"LOGIN", serveLogin},
		{"CRAM-MD5", serveCramMD5},
		{"SCRAM-SHA-256", serveScram},
		{"NTLM login XOAUTH2", serveLogin},
		{"PLAIN LOGIN SCRAM-SHA-256", serveScram},
	} {
		t.Run(test.offer, func(t *testing.T) {
			t.Parallel()
			script := emailtest.NewTLSScript(t, func(talk *emailtest.Talk) {
				talk.Greet("AUTH " + test.offer)
				if !test.serve(talk) {
					talk.Say("535 wrong")
					return
				}
				talk.Say("235 welcome")
				talk.Envelope()
				talk.Message()
				talk.Say("250 taken")
				talk.Silence()
			})
			client := newSMTPClient(t, "smtps://ana:secret@"+script.Address(), email.DefaultLimits())
			receipt := client.Send(t.Context(), envelope(1), agree)
			if receipt.Outcome != email.OutcomeSent {
				t.Errorf("the receipt is %+v", receipt)
			}
		})
	}
}

func TestNoCommonMechanism(t *testing.T) {
	t.Parallel()
	for _, extension := range []string{"AUTH GSSAPI NTLM", "PIPELINING"} {
		script := emailtest.NewTLSScript(t, func(talk *emailtest.Talk) {
			talk.Greet(extension)
			talk.Silence()
		})
		client := newSMTPClient(t, "smtps://ana:secret@"+script.Address(), quick())
		receipt := client.Send(t.Context(), envelope(1), agree)
		if receipt.Outcome != email.OutcomeRefused || receipt.Stage != email.StageAuth ||
			!strings.Contains(receipt.Error, "offers none of") {
			t.Errorf("%s: the receipt is %+v", extension, receipt)
		}
	}
}

func servePlain(talk *emailtest.Talk) bool {
	return talk.Hear() == "AUTH PLAIN "+encode("\x00ana\x00secret")
}

func serveLogin(talk *emailtest.Talk) bool {
	if talk.Hear() != "AUTH LOGIN" {
		return false
	}
	talk.Say("334 " + encode("Username:"))
	user := decode(talk.Hear())
	talk.Say("334 " + encode("Password:"))
	return user == "ana" && decode(talk.Hear()) == "secret"
}

// serveCramMD5 is the server of RFC 2195.
func serveCramMD5(talk *emailtest.Talk) bool {
	if talk.Hear() != "AUTH CRAM-MD5" {
		return false
	}
	const challenge = "<1896.697170952@localhost>"
	talk.Say("334 " + encode(challenge))
	code := hmac.New(md5.New, []byte("secret"))
	code.Write([]byte(challenge))
	return decode(talk.Hear()) == "ana "+hex.EncodeToString(code.Sum(nil))
}

// serveScram is the server of RFC 5802 with SHA-256 (RFC 7677).
func serveScram(talk *emailtest.Talk) bool {
	if talk.Hear() != "AUTH SCRAM-SHA-256" {
		return false
	}
	talk.Say("334 ")
	clientFirst := strings.TrimPrefix(decode(talk.Hear()), "n,,")
	_, nonce, _ := strings.Cut(clientFirst, ",r=")
	if !strings.HasPrefix(clientFirst, "n=ana,") {
		return false
	}
	const salt, rounds = "pepper and salt", 4096
	serverFirst := fmt.Sprintf("r=%sserver,s=%s,i=%d", nonce, encode(salt), rounds)
	talk.Say("334 " + encode(serverFirst))
	withoutProof, proof, _ := strings.Cut(decode(talk.Hear()), ",p=")
	salted, err := pbkdf2.Key(sha256.New, "secret", []byte(salt), rounds, sha256.Size)
	if err != nil {
		return false
	}
	clientKey := mac(salted, "Client Key")
	stored := sha256.Sum256(clientKey)
	conversation := clientFirst + "," + serverFirst + "," + withoutProof
	signature := mac(stored[:], conversation)
	for i := range signature {
		signature[i] ^= clientKey[i]
	}
	if decode(proof) != string(signature) {
		return false
	}
	talk.Say("334 " + encode("v="+encode(string(mac(mac(salted, "Server Key"), conversation)))))
	return talk.Hear() == ""
}

func mac(key []byte, text string) []byte {
	code := hmac.New(sha256.New, key)
	code.Write([]byte(text))
	return code.Sum(nil)
}
