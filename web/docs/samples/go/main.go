// Command go checks a webhook signature. It reads the body from standard input, and
// takes the secret and the signature headers as arguments.
//
//	go run . SECRET SIGNATURE [PREVIOUS_SIGNATURE] < body
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
)

// genuine reports whether one of the signatures was made with secret over the
// raw body. Pass x-hmac-signature and x-hmac-signature-previous, which is
// present while a secret is being rotated.
func genuine(secret string, body []byte, signatures ...string) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	expected := []byte(hex.EncodeToString(mac.Sum(nil)))
	for _, signature := range signatures {
		if hmac.Equal(expected, []byte(signature)) { // constant time
			return true
		}
	}
	return false
}

// In a handler: read the raw body before anything parses it.
//
//	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
//	genuine(secret, body, r.Header.Get("x-hmac-signature"),
//		r.Header.Get("x-hmac-signature-previous"))

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: go run . SECRET SIGNATURE [PREVIOUS_SIGNATURE] < body")
		os.Exit(2)
	}
	body, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if !genuine(os.Args[1], body, os.Args[2:]...) {
		fmt.Fprintln(os.Stdout, "forged")
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, "genuine")
}
