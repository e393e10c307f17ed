// Package client asks a running headgate over HTTP: the front door for a
// check, the admin listener for everything else.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Bounds of an answer: a list of many policies fits, an endless one does not.
const (
	maxAnswerBytes = 64 << 20
	// DefaultTimeout bounds one request when the caller does not.
	DefaultTimeout = 10 * time.Second
)

// ErrServer: the server's address cannot be used.
var ErrServer = errors.New("invalid server address")

// Problem is a refusal by the server, as its JSON tells it.
type Problem struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Field   string `json:"field,omitempty"`
	// Faults is all that is wrong with a policy.
	Faults []Fault `json:"faults,omitempty"`
	// Revision is where a policy is, when it is not where it was expected.
	Revision string `json:"revision,omitempty"`
}

// Fault is one thing wrong in a policy.
type Fault struct {
	Path   string `json:"path"`
	Value  string `json:"value"`
	Reason string `json:"reason"`
	Line   int    `json:"line"`
}

// String is the fault for people.
func (f Fault) String() string {
	text := f.Reason
	if f.Value != "" {
		text = fmt.Sprintf("%q %s", f.Value, text)
	}
	if f.Path != "" {
		text = f.Path + ": " + text
	}
	return text
}

// Error says what the server said.
func (p *Problem) Error() string {
	if p.Message == "" {
		return fmt.Sprintf("the server answered %d %s", p.Status, http.StatusText(p.Status))
	}
	text := p.Message
	for _, f := range p.Faults {
		text += "\n" + f.String()
	}
	return text
}

// Client asks one server. Use [New]. It may be used concurrently.
type Client struct {
	base *url.URL
	http *http.Client
}

// New returns a client of server: host:port, or a URL with http or https. It
// asks nothing yet. The error is [ErrServer].
func New(server string, timeout time.Duration) (*Client, error) {
	text := server
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	base, err := url.Parse(text)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, fmt.Errorf("%w %q: must be host:port, or a URL with http or https", ErrServer, server)
	}
	return &Client{base: base, http: &http.Client{Timeout: timeout}}, nil
}

// Request is what is asked.
type Request struct {
	Method string
	// Path is escaped, and below the server's own; see [Path].
	Path  string
	Query url.Values
	Body  any // sent as JSON; a [Raw] as it is; nil is none
	// Header fields beside those that a body needs.
	Header http.Header
}

// Raw is a body that is sent as it is.
type Raw struct {
	ContentType string
	Data        []byte
}

// Path joins steps into a path, each escaped.
func Path(steps ...string) string {
	var b strings.Builder
	for _, s := range steps {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}

// Do asks and decodes the answer into into, unless that is nil. A refusal is a
// [*Problem]. It returns the answer's header.
func (c *Client) Do(ctx context.Context, r Request, into any) (http.Header, error) {
	req, err := c.request(ctx, r)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.base.Host, reason(err))
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", c.base.Host, err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return resp.Header, problem(resp.StatusCode, data)
	}
	if into == nil || len(data) == 0 {
		return resp.Header, nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return resp.Header, fmt.Errorf("the answer of %s is not what was expected: %w", c.base.Host, err)
	}
	return resp.Header, nil
}

// reason takes method and URL off an error: paths hold accounts and subjects.
func reason(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

func (c *Client) request(ctx context.Context, r Request) (*http.Request, error) {
	var body io.Reader
	kind := ""
	switch b := r.Body.(type) {
	case nil:
	case Raw:
		body, kind = bytes.NewReader(b.Data), b.ContentType
	default:
		data, err := json.Marshal(b)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		body, kind = bytes.NewReader(data), "application/json"
	}
	target := strings.TrimSuffix(c.base.String(), "/") + r.Path
	if len(r.Query) > 0 {
		target += "?" + r.Query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, target, body)
	if err != nil {
		return nil, fmt.Errorf("build the request: %w", reason(err))
	}
	for name, values := range r.Header {
		req.Header[name] = values
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	return req, nil
}

func problem(status int, data []byte) error {
	var wrapped struct{ Error Problem }
	// What is no JSON of ours still has a status, which is told then.
	_ = json.Unmarshal(data, &wrapped)
	wrapped.Error.Status = status
	return &wrapped.Error
}
