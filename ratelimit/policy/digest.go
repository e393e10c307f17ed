package policy

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/headgate-io/headgate/ratelimit"
)

// digestBytes is how much of a hash a revision shows; enough to tell two
// revisions of one policy apart.
const digestBytes = 6

// Digest is a short hash of what the policy says, for sources that number no
// revisions of their own. Equal policies have equal digests, on every node.
func Digest(p *ratelimit.Policy) string {
	data, err := EncodeJSON(p)
	if err != nil {
		return "" // never: a policy holds nothing that JSON cannot
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:digestBytes])
}
