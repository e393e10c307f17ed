package kvstore

import (
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// fixedFaults names the settings of a bucket that are wrong and that no update
// can change without losing what is in it.
func fixedFaults(bucket string, have, want jetstream.StreamConfig) error {
	var f []string
	differ := func(name string, have, want any) {
		f = append(f, fmt.Sprintf("%s is %v, must be %v", name, have, want))
	}
	if have.Storage != want.Storage {
		differ("storage", have.Storage, want.Storage)
	}
	if have.Retention != want.Retention {
		differ("retention", have.Retention, want.Retention)
	}
	if !slices.Equal(have.Subjects, want.Subjects) {
		differ("subjects", have.Subjects, want.Subjects)
	}
	if have.Mirror != nil || len(have.Sources) > 0 {
		differ("source", "another stream", "none")
	}
	if have.AllowMsgCounter {
		differ("allow_msg_counter", true, false)
	}
	if have.Sealed {
		differ("sealed", true, false)
	}
	if len(f) == 0 {
		return nil
	}
	return &settingsError{bucket: bucket, fields: f}
}

// repair returns have with the settings changed that must be as in want, and
// whether there were any. What an operator may choose (placement, bounds,
// compression) stays; replicas are raised only.
func repair(have, want jetstream.StreamConfig) (fixed jetstream.StreamConfig, changed bool) {
	fixed = have
	fixed.Replicas = max(have.Replicas, want.Replicas)
	fixed.Discard = want.Discard
	fixed.MaxMsgsPerSubject = want.MaxMsgsPerSubject
	if want.MaxMsgsPerSubject > 1 { // history may be longer
		fixed.MaxMsgsPerSubject = max(have.MaxMsgsPerSubject, want.MaxMsgsPerSubject)
	}
	fixed.MaxAge = want.MaxAge
	fixed.AllowMsgTTL = have.AllowMsgTTL || want.AllowMsgTTL // it cannot be taken back
	fixed.SubjectDeleteMarkerTTL = want.SubjectDeleteMarkerTTL
	fixed.AllowDirect = want.AllowDirect
	fixed.MirrorDirect = false
	fixed.AllowRollup = want.AllowRollup
	fixed.NoAck = false
	changed = fixed.Replicas != have.Replicas ||
		fixed.Discard != have.Discard ||
		fixed.MaxMsgsPerSubject != have.MaxMsgsPerSubject ||
		fixed.MaxAge != have.MaxAge ||
		fixed.AllowMsgTTL != have.AllowMsgTTL ||
		fixed.SubjectDeleteMarkerTTL != have.SubjectDeleteMarkerTTL ||
		fixed.AllowDirect != have.AllowDirect ||
		fixed.MirrorDirect != have.MirrorDirect ||
		fixed.AllowRollup != have.AllowRollup ||
		fixed.NoAck != have.NoAck
	if have.Metadata[formatKey] == "" {
		fixed.Metadata = maps.Clone(have.Metadata)
		if fixed.Metadata == nil {
			fixed.Metadata = make(map[string]string)
		}
		fixed.Metadata[formatKey] = want.Metadata[formatKey]
		changed = true
	}
	return fixed, changed
}
