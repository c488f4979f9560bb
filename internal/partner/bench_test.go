package partner_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/partner"
)

func BenchmarkAuthenticate(b *testing.B) {
	h := newHarness(b)
	issued := h.plain(b)
	tests := []struct {
		name, id, secret, merchant string
		ok                         bool
	}{
		{"plain", issued.ClientID, issued.Secret, "", true},
		{"merchant named", issued.ClientID, issued.Secret, issued.MerchantUIDs[0].String(), true},
		{"wrong secret", issued.ClientID, "wrong", "", false},
		{"unknown id", partner.DemoCredentials("x").ClientID, issued.Secret, "", false},
		{"nothing", "", "", uuid.Nil.String(), false},
	}
	for _, test := range tests {
		b.Run(test.name, func(b *testing.B) {
			for b.Loop() {
				_, err := h.Authenticate(b.Context(), partner.Presented{
					ClientID: test.id, Secret: test.secret, Merchant: test.merchant,
				})
				if (err == nil) != test.ok {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkTake(b *testing.B) {
	tests := []struct {
		name        string
		rate, burst int
	}{
		{"a statement each", 50, 200_000},
		{"a statement for 64", 100_000, 200_000},
	}
	h := newHarness(b)
	h.DB.Now = time.Now
	for _, test := range tests {
		caller := h.limited(b, test.rate, test.burst)
		limiter := &partner.Limiter{DB: h.DB}
		b.Run(test.name, func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := limiter.Take(context.Background(), caller); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
