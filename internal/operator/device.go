package operator

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"drawbridge/internal/postgres"
)

// DeviceLife is for how long after a sign-in its browser is known.
const DeviceLife = 180 * 24 * time.Hour

// The place that the sealed name of a device is bound to, with the account.
const (
	deviceTable  = "devices"
	deviceColumn = "cookie"
)

// DeviceCookie tells the accounts of one browser apart in the names of its cookies.
func DeviceCookie(email string) string {
	sum := sha256.Sum256([]byte(normalEmail(email)))
	return "device-" + hex.EncodeToString(sum[:6])
}

// NewDevice names the browser that an account has signed in by, sealed for it to keep.
// Known is what it is known as already, so that its wrong tries stay counted. Without
// keys no browser is known, and the name is empty.
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

// Device is what a browser that keeps a name from NewDevice is known as when it tries
// to sign in to an account; empty for a stranger.
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
