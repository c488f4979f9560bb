package statement

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"time"

	"drawbridge/internal/postgres"
)

// Algorithm is the signature algorithm of statements.
const Algorithm = "Ed25519"

// Key is the public half of a signing key.
type Key struct {
	ID        string `json:"kid"`
	Algorithm string `json:"algorithm"`
	// PublicKey is PEM, which openssl and the libraries of all languages read.
	PublicKey string    `json:"public_key"`
	From      time.Time `json:"from"`
	// Until is when another key replaced it, nil for the current key.
	Until *time.Time `json:"until"`
}

// keyRow is a key as it is stored.
type keyRow struct {
	ID     string     `db:"key_id"`
	Public []byte     `db:"public_key"`
	Sealed *string    `db:"private_sealed"`
	From   time.Time  `db:"valid_from"`
	Until  *time.Time `db:"valid_until"`
}

const keyColumns = `key_id, public_key, private_sealed, valid_from, valid_until`

func (r keyRow) key() (Key, error) {
	text, err := x509.MarshalPKIXPublicKey(ed25519.PublicKey(r.Public))
	if err != nil {
		return Key{}, fmt.Errorf("writing the public key %s: %w", r.ID, err)
	}
	made := Key{
		ID: r.ID, Algorithm: Algorithm, From: r.From.UTC(),
		PublicKey: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: text})),
	}
	if r.Until != nil {
		made.Until = new(r.Until.UTC())
	}
	return made, nil
}

// PublicKeys lists every key there ever was, the current one first. It creates the first key if
// there is none, and decrypts no private key.
func (s *Service) PublicKeys(ctx context.Context) ([]Key, error) {
	rows, err := s.keyRows(ctx)
	if err == nil && len(rows) == 0 {
		err = s.DB.InTx(ctx, func(tx *postgres.Tx) error {
			_, err := s.currentKey(ctx, tx)
			return err
		})
		if err == nil {
			rows, err = s.keyRows(ctx)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("listing the keys of statements: %w", err)
	}
	keys := make([]Key, 0, len(rows))
	for _, row := range rows {
		key, err := row.key()
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func (s *Service) keyRows(ctx context.Context) ([]keyRow, error) {
	var rows []keyRow
	err := s.DB.SelectContext(ctx, &rows, `
		SELECT `+keyColumns+`
		  FROM statement_keys
		 ORDER BY valid_until DESC NULLS FIRST, valid_from DESC`)
	return rows, err
}

// RotateKey makes a new key, which signs from now on. It removes the private half of the
// previous one, and works even if that is lost.
func (s *Service) RotateKey(
	ctx context.Context, tx *postgres.Tx,
) (made Key, before string, err error) {
	_, err = tx.ExecContext(ctx, `LOCK TABLE statement_keys IN SHARE ROW EXCLUSIVE MODE`)
	if err != nil {
		return Key{}, "", fmt.Errorf("locking the keys of statements: %w", err)
	}
	err = tx.GetContext(ctx, &before, `
		UPDATE statement_keys
		   SET valid_until = greatest($1, valid_from), private_sealed = NULL
		 WHERE valid_until IS NULL
		RETURNING key_id`, tx.Now)
	if err != nil && !postgres.IsNoRows(err) {
		return Key{}, "", fmt.Errorf("ending the key of statements: %w", err)
	}
	row, err := s.currentKey(ctx, tx)
	if err != nil {
		return Key{}, "", err
	}
	made, err = row.key()
	return made, before, err
}

// makeKey makes a key unless there is a current one.
func (s *Service) makeKey(ctx context.Context, tx *postgres.Tx) error {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return fmt.Errorf("making a key for statements: %w", err)
	}
	sum := sha256.Sum256(public)
	id := hex.EncodeToString(sum[:8])
	_, err = tx.ExecContext(ctx, `
		INSERT INTO statement_keys (key_id, public_key, private_sealed, valid_from)
		VALUES ($1, $2, $3, $4)
		ON CONFLICT DO NOTHING`,
		id, []byte(public), s.Keys.Seal(private.Seed(), "statement_keys", "private_sealed", id), tx.Now)
	if err != nil {
		return fmt.Errorf("storing a key for statements: %w", err)
	}
	return nil
}

// currentKey returns the key that signs, creating the first one. A rotation waits for
// transactions that have read it.
func (s *Service) currentKey(ctx context.Context, tx *postgres.Tx) (keyRow, error) {
	var row keyRow
	load := func() error {
		return tx.GetContext(ctx, &row, `
			SELECT `+keyColumns+` FROM statement_keys WHERE valid_until IS NULL FOR SHARE`)
	}
	err := load()
	if postgres.IsNoRows(err) {
		if err := s.makeKey(ctx, tx); err != nil {
			return keyRow{}, err
		}
		err = load()
	}
	if err != nil {
		return keyRow{}, fmt.Errorf("loading the key of statements: %w", err)
	}
	return row, nil
}

// signer signs bytes with a key.
type signer struct {
	id  string
	key ed25519.PrivateKey
}

func (s signer) sign(content []byte) []byte { return ed25519.Sign(s.key, content) }

// signer decrypts the current key.
func (s *Service) signer(ctx context.Context, tx *postgres.Tx) (signer, error) {
	row, err := s.currentKey(ctx, tx)
	if err != nil {
		return signer{}, err
	}
	seed, err := s.Keys.Open(*row.Sealed, "statement_keys", "private_sealed", row.ID)
	if err != nil {
		return signer{}, fmt.Errorf("the key of statements does not open; "+
			"put its secrets key back or run drawbridge statement rotate-key: %w", err)
	}
	return signer{row.ID, ed25519.NewKeyFromSeed(seed)}, nil
}
