package partner

import (
	"sync"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
)

const (
	// cacheLife is how long a process relies on what it has read of a client, counted from before
	// the query. Whoever changes a client waits as long after the commit; every process then uses
	// the change, without any communication between them.
	cacheLife = 250 * time.Millisecond
	// maxCached bounds how many credentials a process remembers.
	maxCached = 10_000
)

// cacheKey is a client and the merchant that its request names, if any.
type cacheKey struct {
	client   string
	merchant uuid.NullUUID
}

// credentialCache holds recently accepted credentials, so that a busy client does not cost a
// query per request. The zero value is ready; it is safe for concurrent use.
type credentialCache struct {
	mu   sync.Mutex
	kept map[cacheKey]cachedCredential
}

type cachedCredential struct {
	credential

	until time.Time
}

// get returns the cached credential of a client.
func (k *credentialCache) get(who cacheKey) (credential, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	found, ok := k.kept[who]
	return found.credential, ok && time.Now().Before(found.until)
}

// put caches a credential that was queried at a time.
func (k *credentialCache) put(who cacheKey, found credential, asked time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept == nil || len(k.kept) >= maxCached {
		k.kept = make(map[cacheKey]cachedCredential)
	}
	k.kept[who] = cachedCredential{found, asked.Add(cacheLife)}
}

// awaitCaches delays the return of a client's change until every process uses it.
func awaitCaches(tx *postgres.Tx) { tx.AfterCommit(func() { <-time.After(cacheLife) }) }
