package sender

import (
	"testing"

	"drawbridge/internal/secret"
)

func BenchmarkSign(b *testing.B) {
	key := secret.New(testSecret)
	for b.Loop() {
		Sign(key, testBody)
	}
}
