package operator

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"drawbridge/internal/postgres"
)

// DeviceLife is how long a browser is recognised after a sign-in.
const DeviceLife = 180 * 24 * time.Hour

// The table and column that a sealed device name is bound to, besides the account.
const (
	deviceTable  = "devices"
	deviceColumn = "cookie"
)

// DeviceCookie names the cookie of an account, which differs by account within a browser.
func DeviceCookie(email string) string {
	sum := sha256.Sum256([]byte(normalEmail(email)))
	return "device-" + hex.EncodeToString(sum[:6])
}

// NewDevice returns a sealed name, for the browser to keep, by which it is recognised as one
// that signed in to the account. Known is its existing device name, so that its failed attempts
// stay counted. Without keys no browser is recognised, and the name is empty.
func (s *Service) NewDevice(email, known string) string {
	if s.Keys == nil {
		return ""
	}
	now := s.DB.Now()
	if known == "" {
		known = "device:" + postgres.NewUID(now).String()
	}
	plain := known + " " + strconv.FormatInt(now.Add(DeviceLife).Unix(), 10)
	return s.Keys.Seal([]byte(plain), deviceTable, deviceColumn, normalEmail(email))
}

// Device returns the device name of a browser that tries to sign in to an account and presents a
// name from NewDevice; it is empty for an unknown browser.
func (s *Service) Device(email, kept string) string {
	if s.Keys == nil || kept == "" {
		return ""
	}
	plain, err := s.Keys.Open(kept, deviceTable, deviceColumn, normalEmail(email))
	known, until, _ := strings.Cut(string(plain), " ")
	seconds, parseErr := strconv.ParseInt(until, 10, 64)
	if err != nil || parseErr != nil || s.DB.Now().After(time.Unix(seconds, 0)) {
		return ""
	}
	return known
}
