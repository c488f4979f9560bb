package operator

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"fmt"
	"image/png"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"
	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
)

// The second factor is a time-based code (RFC 6238): six digits, a new one every
// 30 seconds, by HMAC-SHA-1, which is what every authenticator app can do.
const (
	codeStep   = 30
	codeDigits = otp.DigitsSix
	// codeSkew is how many steps a clock may be off, in either direction.
	codeSkew    = 1
	totpBytes   = 20
	totpIssuer  = "Drawbridge"
	qrSize      = 240
	recoveryNum = 10
	// recoveryBytes is enough entropy for a plain hash to protect a recovery code.
	recoveryBytes = 10
	recoveryGroup = 4
)

// The table and columns that a sealed secret of a second factor is bound to.
const (
	sealTable  = "second_factors"
	sealColumn = "secret_sealed"
	// enrolmentColumn is for a secret that awaits its first code in a session.
	enrolmentColumn = "enrolment"
)

// totpAlphabet is the encoding in which authenticator apps accept a secret.
var totpAlphabet = base32.StdEncoding.WithPadding(base32.NoPadding)

// enrolmentLife is how long an enrolment waits for its first code.
const enrolmentLife = 15 * time.Minute

// Enrolment is a second factor that waits for its first code.
type Enrolment struct {
	// Secret is the secret to type into an app that cannot read the QR code.
	Secret secret.String
	email  string
}

// Spaced returns the secret in groups of four.
func (e Enrolment) Spaced() string { return groups(e.Secret.Reveal(), 4, " ") }

// QR returns the QR code for authenticator apps, as PNG.
func (e Enrolment) QR() ([]byte, error) {
	address := "otpauth://totp/" + totpIssuer + ":" + url.PathEscape(e.email) +
		"?secret=" + e.Secret.Reveal() + "&issuer=" + totpIssuer
	key, err := otp.NewKeyFromURL(address)
	if err != nil {
		return nil, fmt.Errorf("writing the address of a second factor: %w", err)
	}
	picture, err := key.Image(qrSize, qrSize)
	if err != nil {
		return nil, fmt.Errorf("drawing a second factor: %w", err)
	}
	var out bytes.Buffer
	if err := png.Encode(&out, picture); err != nil {
		return nil, fmt.Errorf("drawing a second factor: %w", err)
	}
	return out.Bytes(), nil
}

// SecondFactors serves the second factors of the users.
type SecondFactors struct{ users *Service }

// SecondFactors returns the second factors of the service's users.
func (s *Service) SecondFactors() SecondFactors { return SecondFactors{s} }

// Enrol begins to set up the second factor of the signed-in user. The session keeps the returned
// text, which can be opened only by the same user in the same session and with the same
// password. Error: INVALID_STATE if there already is a factor.
func (f SecondFactors) Enrol(signed Signed) (kept string, err error) {
	if f.users.Keys == nil {
		return "", lending.NewError(lending.CodeInvalidState,
			"this process has no keys to encrypt a second factor with")
	}
	if signed.SecondFactor {
		return "", errEnrolled()
	}
	random := make([]byte, totpBytes)
	rand.Read(random) // never fails: crypto/rand ends the process instead
	begun := strconv.FormatInt(f.users.DB.Now().Unix(), 10)
	plain := []byte(begun + " " + totpAlphabet.EncodeToString(random))
	return f.users.Keys.Seal(plain, sealTable, enrolmentColumn, enrolmentPlace(signed)), nil
}

// Enrolling returns the enrolment that Enrol began, and false if there is none: nothing was
// begun in this session, the password has changed, or too much time has passed.
func (f SecondFactors) Enrolling(signed Signed, kept string) (Enrolment, bool) {
	if f.users.Keys == nil || kept == "" {
		return Enrolment{}, false
	}
	plain, err := f.users.Keys.Open(kept, sealTable, enrolmentColumn, enrolmentPlace(signed))
	begun, text, _ := strings.Cut(string(plain), " ")
	seconds, parseErr := strconv.ParseInt(begun, 10, 64)
	if err != nil || parseErr != nil || f.users.DB.Now().Sub(time.Unix(seconds, 0)) > enrolmentLife {
		return Enrolment{}, false
	}
	return Enrolment{Secret: secret.New(text), email: signed.Email}, true
}

// enrolmentPlace binds an enrolment to its user, session and password.
func enrolmentPlace(signed Signed) string {
	return strings.Join([]string{
		signed.User.UID.String(), signed.Session.UID.String(), signed.Credential,
	}, " ")
}

func errEnrolled() error {
	return lending.NewError(lending.CodeInvalidState,
		"you already have a second factor; turn it off before you set up another")
}

// Confirm activates the second factor that Enrol began, given its first code, and returns the
// recovery codes, which are shown once. Errors: VALIDATION_ERROR for a wrong code, INVALID_STATE
// without an enrolment.
func (f SecondFactors) Confirm(
	ctx context.Context, tx *postgres.Tx, signed Signed, kept, code string,
) ([]string, error) {
	enrolment, ok := f.Enrolling(signed, kept)
	if !ok {
		return nil, lending.NewError(lending.CodeInvalidState,
			"no second factor is being set up, or its time ran out; begin again")
	}
	text := enrolment.Secret.Reveal()
	step, ok := matchStep(text, cleanCode(code), tx.Now, 0)
	if !ok {
		return nil, lending.Invalid("code",
			`"code" is not the one that the app shows now; check that the device's clock is right`)
	}
	user := signed.User
	count, err := postgres.Affected(tx.ExecContext(ctx, `
		INSERT INTO second_factors (user_uid, secret_sealed, confirmed_at, last_step, created_at)
		VALUES ($1, $2, $3, $4, $3)
		ON CONFLICT (user_uid) DO UPDATE
		   SET secret_sealed = excluded.secret_sealed, confirmed_at = excluded.confirmed_at,
		       last_step = excluded.last_step, created_at = excluded.created_at
		 WHERE second_factors.confirmed_at IS NULL`, user.UID,
		f.users.Keys.Seal([]byte(text), sealTable, sealColumn, user.UID.String()), tx.Now, step))
	if err != nil {
		return nil, fmt.Errorf("confirming the second factor of %s: %w", user.Email, err)
	}
	if count == 0 {
		return nil, errEnrolled()
	}
	return f.NewRecoveryCodes(ctx, tx, user)
}

// NewRecoveryCodes replaces a user's recovery codes. They are shown once: only
// their hashes are kept.
func (f SecondFactors) NewRecoveryCodes(
	ctx context.Context, tx *postgres.Tx, user User,
) ([]string, error) {
	codes := make([]string, recoveryNum)
	hashes := make([][]byte, recoveryNum)
	for i := range codes {
		random := make([]byte, recoveryBytes)
		rand.Read(random) // as above
		codes[i] = plainText(random, recoveryGroup)
		hashes[i] = hashCode(user.UID, cleanCode(codes[i]))
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM recovery_codes WHERE user_uid = $1`, user.UID)
	if err == nil {
		_, err = tx.ExecContext(ctx, `
			INSERT INTO recovery_codes (user_uid, code_hash)
			SELECT $1, unnest($2::bytea[])`, user.UID, pq.ByteaArray(hashes))
	}
	if err != nil {
		return nil, fmt.Errorf("storing the recovery codes of %s: %w", user.Email, err)
	}
	return codes, nil
}

// RecoveryLeft counts the recovery codes that a user has not used.
func (f SecondFactors) RecoveryLeft(ctx context.Context, user User) (int, error) {
	var count int
	err := f.users.DB.GetContext(ctx, &count, `
		SELECT count(*) FROM recovery_codes WHERE user_uid = $1 AND used_at IS NULL`, user.UID)
	if err != nil {
		return 0, fmt.Errorf("counting the recovery codes of %s: %w", user.Email, err)
	}
	return count, nil
}

// Remove turns a user's second factor off, recovery codes included.
func (f SecondFactors) Remove(ctx context.Context, tx *postgres.Tx, user User) error {
	_, err := tx.ExecContext(ctx, `
		WITH codes AS (DELETE FROM recovery_codes WHERE user_uid = $1)
		DELETE FROM second_factors WHERE user_uid = $1`, user.UID)
	if err != nil {
		return fmt.Errorf("removing the second factor of %s: %w", user.Email, err)
	}
	return nil
}

// Check checks the code of a second factor, or a recovery code instead, in which case recovered
// is true. Neither works twice. The limits are those of passwords, counted separately. Errors:
// RATE_LIMITED, UNAUTHORIZED.
func (f SecondFactors) Check(
	ctx context.Context, user User, code string, from Visitor,
) (recovered bool, err error) {
	account, address := from.keys(triedCodes, normalEmail(user.Email))
	if _, err := f.users.countAttempt(ctx, account, address, triedCodes); err != nil {
		return false, err
	}
	code = cleanCode(code)
	recovered = len(code) != codeDigits.Length()
	var ok bool
	if recovered {
		ok, err = f.spend(ctx, `
			UPDATE recovery_codes SET used_at = $3
			 WHERE user_uid = $1 AND code_hash = $2 AND used_at IS NULL`,
			user.UID, hashCode(user.UID, code), f.users.DB.Now())
	} else {
		ok, err = f.useCode(ctx, user, code)
	}
	if err != nil {
		return false, err
	}
	if !ok {
		return false, lending.NewError(lending.CodeUnauthorized,
			"The code is wrong or was used before. Wait for the next one and try again.")
	}
	return recovered, f.users.clearAttempts(ctx, account)
}

// useCode uses up a code of the app: of two requests with the same code, the guard lets one
// through.
func (f SecondFactors) useCode(ctx context.Context, user User, code string) (bool, error) {
	var kept struct {
		Sealed   string `db:"secret_sealed"`
		LastStep int64  `db:"last_step"`
	}
	err := f.users.DB.GetContext(ctx, &kept, `
		SELECT secret_sealed, last_step FROM second_factors
		 WHERE user_uid = $1 AND confirmed_at IS NOT NULL`, user.UID)
	if postgres.IsNoRows(err) || err == nil && f.users.Keys == nil {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("loading the second factor of %s: %w", user.Email, err)
	}
	plain, err := f.users.Keys.Open(kept.Sealed, sealTable, sealColumn, user.UID.String())
	if err != nil {
		return false, fmt.Errorf("reading the second factor of %s: %w", user.Email, err)
	}
	step, ok := matchStep(string(plain), code, f.users.DB.Now(), kept.LastStep)
	if !ok {
		return false, nil
	}
	return f.spend(ctx, `
		UPDATE second_factors SET last_step = $2 WHERE user_uid = $1 AND last_step < $2`,
		user.UID, step)
}

// spend runs an update that only one caller can make.
func (f SecondFactors) spend(ctx context.Context, statement string, args ...any) (bool, error) {
	count, err := postgres.Affected(f.users.DB.ExecContext(ctx, statement, args...))
	if err != nil {
		return false, fmt.Errorf("using a code: %w", err)
	}
	return count == 1, nil
}

// matchStep returns the time step of a code: the present one or a neighbour, and later than the
// last one used.
func matchStep(text, code string, now time.Time, last int64) (int64, bool) {
	if len(code) != codeDigits.Length() {
		return 0, false
	}
	present := now.Unix() / codeStep
	found, ok := int64(0), false
	for step := present - codeSkew; step <= present+codeSkew; step++ {
		if step <= last || step < 0 {
			continue
		}
		want, err := hotp.GenerateCodeCustom(text, uint64(step), hotp.ValidateOpts{
			Digits: codeDigits, Algorithm: otp.AlgorithmSHA1,
		})
		if err == nil && subtle.ConstantTimeCompare([]byte(want), []byte(code)) == 1 && !ok {
			found, ok = step, true
		}
	}
	return found, ok
}

// cleanCode removes what people type between and around the characters of a code.
func cleanCode(code string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= '0' && r <= '9', r >= 'a' && r <= 'z':
			return r
		case r >= 'A' && r <= 'Z':
			return r + ('a' - 'A')
		}
		return -1
	}, clip(code, 64))
}

// hashCode binds a recovery code to its user.
func hashCode(user uuid.UUID, code string) []byte {
	sum := sha256.Sum256(append(user[:], code...))
	return sum[:]
}

// Roles returns the roles whose users must have a second factor.
func (f SecondFactors) Roles(ctx context.Context) ([]Role, error) {
	var names pq.StringArray
	err := f.users.DB.GetContext(ctx, &names, `SELECT second_factor_roles FROM sign_in_settings`)
	if err != nil {
		return nil, fmt.Errorf("loading the sign-in settings: %w", err)
	}
	return rolesOf(names), nil
}

func rolesOf(names []string) []Role {
	roles := make([]Role, len(names))
	for i, name := range names {
		roles[i] = Role(name)
	}
	return roles
}

// Require sets the roles whose users must have a second factor. Users who lack one must set it
// up before they see anything else, in open sessions too. It returns the previous roles. Error:
// VALIDATION_ERROR.
func (f SecondFactors) Require(ctx context.Context, tx *postgres.Tx, roles []Role) ([]Role, error) {
	names := make(pq.StringArray, len(roles))
	for i, role := range roles {
		if !role.Allows(RoleSupport) {
			return nil, lending.Invalid("roles", `"roles" names the unknown role %q`, role)
		}
		names[i] = string(role)
	}
	var before pq.StringArray
	err := tx.GetContext(ctx, &before, `
		UPDATE sign_in_settings
		   SET second_factor_roles = $1
		  FROM (SELECT second_factor_roles AS before FROM sign_in_settings FOR UPDATE) AS b
		RETURNING b.before`, names)
	if err != nil {
		return nil, fmt.Errorf("saving the sign-in settings: %w", err)
	}
	return rolesOf(before), nil
}
