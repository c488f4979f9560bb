package reencrypt_test

import (
	"maps"
	"testing"

	"drawbridge/internal/postgres/pgtest"
)

// TestVerifyOpensEverything has values under two keys, one that was moved to another row and one
// that is not an encrypted value at all.
func TestVerifyOpensEverything(t *testing.T) {
	t.Parallel()
	const subscriptions = 3
	s := newSafe(t, subscriptions)
	all := 5*subscriptions + 3
	old, fresh := ring(t, s.old), ring(t, s.new)
	pgtest.Exec(t, s.db, `UPDATE second_factors SET secret_sealed = $1`, fresh.Seal(
		[]byte("factor"), "second_factors", "secret_sealed", s.user.String()))
	found, err := s.service(t, s.new, s.old).Verify(t.Context())
	if err != nil || found.BrokenCount != 0 || len(found.Unknown) != 0 || !maps.Equal(found.Opened,
		map[string]int{old.Current(): all - 1, fresh.Current(): 1}) {
		t.Errorf("with both keys: %+v, %v", found, err)
	}
	found, err = s.service(t, s.new).Verify(t.Context())
	if err != nil || found.BrokenCount != 0 || found.Opened[fresh.Current()] != 1 ||
		!maps.Equal(found.Unknown, map[string]int{old.Current(): all - 1}) {
		t.Errorf("with the new key alone: %+v, %v", found, err)
	}
	pgtest.Exec(t, s.db, `
		UPDATE subscriptions SET secret_sealed = (SELECT secret_sealed FROM subscriptions
		                                           WHERE subscription_uid = $1)
		 WHERE subscription_uid = $2`, s.uids[0], s.uids[1])
	pgtest.Exec(t, s.db, `UPDATE tls_certificates SET data_sealed = 'plain'`)
	found, err = s.service(t, s.new, s.old).Verify(t.Context())
	if err != nil || found.BrokenCount != 2 || len(found.Broken) != 2 ||
		found.Broken[0] != "subscriptions.secret_sealed of "+s.uids[1].String() ||
		found.Broken[1] != "tls_certificates.data_sealed of a.b" {
		t.Errorf("with broken values: %+v, %v", found, err)
	}
}
