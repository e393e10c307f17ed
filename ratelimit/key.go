package ratelimit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
)

// Key is the name of a counter in the store: <function>.<version>.<tier>.<identity>,
// each token escaped injectively into [-/_=a-zA-Z0-9], at most [MaxKeyBytes]
// long. A [Keyring] makes it; subjects in it are hashed, accounts are in clear.
type Key string

// MaxKeyBytes bounds a [Key]: a control line over 4 KiB makes a NATS server drop
// the whole connection, and far shorter ones are hard to read.
const MaxKeyBytes = 200

const (
	// Four tokens of at most 48 bytes, three dots, and the escape of a subject
	// stay below MaxKeyBytes. A longer token is hashed.
	maxTokenBytes = 48
	hashBytes     = 16
)

// ErrKey is returned by [ParseKey] for what no [Keyring] made.
var ErrKey = errors.New("not a counter's key")

// Keyring makes keys. Subjects are hashed with a secret that all nodes share;
// until it is set no key of the subject tier can be made. The zero Keyring is
// not usable, see [NewKeyring]. All methods may be called concurrently.
type Keyring struct {
	secret atomic.Pointer[[]byte]
}

// NewKeyring returns a Keyring without a secret.
func NewKeyring() *Keyring { return &Keyring{} }

// SetSecret sets the secret that subjects are hashed with. It must be the same
// on every node: a node with another one keeps counters of its own.
func (k *Keyring) SetSecret(secret []byte) {
	own := append([]byte(nil), secret...)
	k.secret.Store(&own)
}

// Key names the counter of one tier's identity. Version is the policy's, so
// [Any] counts all versions together. It reports false while there is no secret
// and the tier is Subject.
func (k *Keyring) Key(tier Tier, function, version, account, subject string) (Key, bool) {
	head := FunctionPrefix(function, version) + tier.String()
	switch tier {
	case Account:
		return Key(head + "." + escape(account)), true
	case Subject:
		secret := k.secret.Load()
		if secret == nil {
			return "", false
		}
		return Key(head + "." + hashSubject(*secret, account, subject)), true
	default:
		return Key(head + "._"), true
	}
}

// hashSubject is HMAC-SHA-256 over the account and the subject, cut to 128
// bits. The account's length goes in front, so that no two pairs are the same
// bytes.
func hashSubject(secret []byte, account, subject string) string {
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%d:%s%s", len(account), account, subject)
	return hex.EncodeToString(mac.Sum(nil)[:hashBytes])
}

// FunctionPrefix is what every key of a function's counters under a policy's
// version starts with, including the final dot.
func FunctionPrefix(function, version string) string {
	return escape(function) + "." + escape(version) + "."
}

// EscapeToken is the injective escape of one token of a key; see [Key].
func EscapeToken(token string) string { return escape(token) }

// escape maps any text to a token of [-_a-zA-Z0-9=/]: plain bytes stand for
// themselves, every other byte is =XX in hex, the empty text is a lone "=", and
// the text "*" is "/any". A token that would be longer than maxTokenBytes is
// "/" and a hash: no plain token holds a slash, so the two kinds never meet.
func escape(token string) string {
	switch token {
	case "":
		return "="
	case Any:
		return "/any"
	}
	var b strings.Builder
	for i := range len(token) {
		if c := token[i]; plain(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	if b.Len() <= maxTokenBytes {
		return b.String()
	}
	sum := sha256.Sum256([]byte(token))
	return "/" + hex.EncodeToString(sum[:hashBytes])
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

// KeyParts is what can be read from a [Key].
type KeyParts struct {
	Function string
	Version  string
	Tier     Tier
	// Identity is the account, or the hash of a subject, or empty for the
	// whole function.
	Identity string
	// Hashed names the parts that were too long for a key and stand as "/" and
	// a hash: "function", "version", "identity".
	Hashed []string
}

// ParseKey reads a key. The error is [ErrKey].
func ParseKey(key Key) (KeyParts, error) {
	tokens := strings.Split(string(key), ".")
	if len(tokens) != 4 {
		return KeyParts{}, fmt.Errorf("%w: %d tokens, want 4", ErrKey, len(tokens))
	}
	tier, ok := parseTier(tokens[2])
	if !ok {
		return KeyParts{}, fmt.Errorf("%w: unknown tier", ErrKey)
	}
	p := KeyParts{Tier: tier}
	fields := []struct {
		name, token string
		into        *string
	}{{"function", tokens[0], &p.Function}, {"version", tokens[1], &p.Version}, {"identity", tokens[3], &p.Identity}}
	for _, f := range fields {
		text, hashed, ok := unescape(f.token)
		if !ok {
			return KeyParts{}, fmt.Errorf("%w: bad %s token", ErrKey, f.name)
		}
		if hashed {
			p.Hashed = append(p.Hashed, f.name)
		}
		*f.into = text
	}
	if tier == Total {
		p.Identity = ""
	}
	return p, nil
}

// escapedFunction is the function's token of a key.
func escapedFunction(key Key) string {
	function, _, _ := strings.Cut(string(key), ".")
	return function
}

func parseTier(text string) (Tier, bool) {
	for t := Subject; t <= Total; t++ {
		if t.String() == text {
			return t, true
		}
	}
	return NoTier, false
}

// unescape undoes escape; a hashed token stays as it stands.
func unescape(token string) (text string, hashed, ok bool) {
	switch {
	case token == "=":
		return "", false, true
	case token == "/any":
		return Any, false, true
	case strings.HasPrefix(token, "/"):
		return token, true, true
	}
	var b strings.Builder
	for i := 0; i < len(token); i++ {
		if plain(token[i]) {
			b.WriteByte(token[i])
			continue
		}
		if token[i] != '=' || i+2 >= len(token) {
			return "", false, false
		}
		raw, err := hex.DecodeString(token[i+1 : i+3])
		if err != nil {
			return "", false, false
		}
		b.Write(raw)
		i += 2
	}
	return b.String(), false, token != ""
}
