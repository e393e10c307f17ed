package kvstore

import (
	"errors"
	"fmt"

	"github.com/headgate-io/headgate/ratelimit"
)

// Errors of a [Store] beside those of [ratelimit.Store].
var (
	// ErrDataDirInUse: another process runs a server on [Config.DataDir].
	// [Store.Start] returns it.
	ErrDataDirInUse = errors.New("data directory is in use by another process")
	// ErrDataDirNode: [Config.DataDir] belongs to a node of another name. A
	// replicated bucket never heals when a member comes back under a new name,
	// so the name has to be put back. [Store.Start] returns it.
	ErrDataDirNode = errors.New("data directory belongs to a node of another name")
	// ErrDataDirShape: [Config.DataDir] was written by a member of a cluster
	// and cannot be served by a server alone. [Store.Start] returns it.
	ErrDataDirShape = errors.New("data directory belongs to a member of a cluster")
	// ErrStarted: [Store.Start] was called before.
	ErrStarted = errors.New("store was started before")
)

// errNotJoined is what exchanges get before the store is joined.
var errNotJoined = fmt.Errorf("%w: not joined yet", ratelimit.ErrUnavailable)

// errNoHeartbeat: this node sent no heartbeat yet.
var errNoHeartbeat = errors.New("no heartbeat written yet")

// errStopped is what exchanges get after Stop.
var errStopped = fmt.Errorf("%w: stopped", ratelimit.ErrUnavailable)

// ConfigError is one rejected setting of a [Config].
type ConfigError struct {
	Field string // "Cluster.Routes"
	Value any    // as it was set; never a secret
	Why   string // "must name at least 2 members"
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("kvstore: %s=%v: %s", e.Field, e.Value, e.Why)
}

// settingsError is a bucket whose stream differs from what this package needs
// in a way that it cannot or must not repair.
type settingsError struct {
	bucket string
	fields []string // "storage is memory, must be file"
}

func (e *settingsError) Error() string {
	return fmt.Sprintf("bucket %s: %v", e.bucket, e.fields)
}
