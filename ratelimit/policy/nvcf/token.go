package nvcf

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// maxSecretBytes bounds the files that secrets are read from.
const maxSecretBytes = 64 << 10

// tokens gives the bearer token for a question. Errors never hold a secret.
type tokens interface {
	// token waits no longer than ctx.
	token(ctx context.Context) (string, error)
	// refused says that the API did not accept the token.
	refused(token string)
}

// newTokens gets tokens in goroutines of tasks.
func newTokens(cfg Config, tasks *tasks) tokens {
	switch {
	case cfg.TokenFile != "":
		return &fileTokens{path: cfg.TokenFile}
	case cfg.OAuth.enabled():
		return &oauthTokens{cfg: cfg.OAuth, tasks: tasks}
	default:
		return noTokens{}
	}
}

type noTokens struct{}

func (noTokens) token(context.Context) (string, error) { return "", nil }
func (noTokens) refused(string)                        {}

// fileTokens reads the file for each question: questions are rare, and so a
// token that was exchanged is met at once whatever way it was exchanged.
type fileTokens struct {
	path string

	mu   sync.Mutex
	last string // the last good one, for a file that is being written
}

func (f *fileTokens) token(context.Context) (string, error) {
	token, err := readToken(f.path)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		if f.last != "" {
			return f.last, nil
		}
		return "", err
	}
	f.last = token
	return token, nil
}

// refused forgets the last good token, which is none.
func (f *fileTokens) refused(token string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == token {
		f.last = ""
	}
}

func readToken(path string) (string, error) {
	text, err := readSecret(path)
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(text, "{") {
		var secrets struct {
			Token string `json:"nvcfApiToken"`
		}
		if json.Unmarshal([]byte(text), &secrets) != nil { // its error may quote the file
			return "", fmt.Errorf("token file %s is not JSON", path)
		}
		if text = strings.TrimSpace(secrets.Token); text == "" {
			return "", fmt.Errorf("token file %s has no nvcfApiToken", path)
		}
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("token file %s holds more than a token", path)
	}
	return text, nil
}

func readSecret(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular() || info.Size() > maxSecretBytes:
		return "", fmt.Errorf("%s is not a file of at most %d bytes", path, maxSecretBytes)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(data))
	if text == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return text, nil
}

// oauthTimeout bounds one request for a token. It is not the caller's time: the
// next caller profits from a token that came too late for this one.
const oauthTimeout = 10 * time.Second

// oauthEarly is how long before its end a token is exchanged for the next.
const oauthEarly = 30 * time.Second

// oauthTokens asks for a token when it has none that is good any longer. One
// request is under way at a time.
type oauthTokens struct {
	cfg    OAuth
	tasks  *tasks
	single single

	mu      sync.Mutex
	current string
	renew   time.Time // when to ask for the next; zero: when this one is refused
	err     error     // of the last request
}

func (o *oauthTokens) token(ctx context.Context) (string, error) {
	if t, _ := o.state(); t != "" {
		return t, nil
	}
	select {
	case <-o.single.run(o.tasks, o.ask):
		t, err := o.state()
		return t, err
	case <-ctx.Done():
		return "", fmt.Errorf("token from %s: %w", o.cfg.TokenURL, ctx.Err())
	}
}

// state is a token that is good, or why there is none.
func (o *oauthTokens) state() (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.current == "" || !o.renew.IsZero() && !time.Now().Before(o.renew) {
		return "", cmp.Or(o.err, errors.New("no token"))
	}
	return o.current, nil
}

func (o *oauthTokens) refused(token string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.current == token {
		o.current = ""
	}
}

func (o *oauthTokens) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, oauthTimeout)
	defer cancel()
	token, err := o.request(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
	if err != nil {
		return
	}
	o.current, o.renew = token.AccessToken, time.Time{}
	if !token.Expiry.IsZero() {
		early := min(oauthEarly, time.Until(token.Expiry)/2) // short-lived ones keep half their life
		o.renew = token.Expiry.Add(-early)
	}
}

func (o *oauthTokens) request(ctx context.Context) (*oauth2.Token, error) {
	secret, err := readSecret(o.cfg.ClientSecretFile)
	if err != nil {
		return nil, fmt.Errorf("client secret: %w", err)
	}
	flow := clientcredentials.Config{
		ClientID: o.cfg.ClientID, ClientSecret: secret, TokenURL: o.cfg.TokenURL, Scopes: o.cfg.Scopes,
	}
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}}
	token, err := flow.Token(context.WithValue(ctx, oauth2.HTTPClient, client))
	if err != nil {
		return nil, fmt.Errorf("token from %s: %w", o.cfg.TokenURL, plainOAuth(err))
	}
	return token, nil
}

// plainOAuth keeps the body of a refusal out of the error, whatever it holds.
func plainOAuth(err error) error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.Response != nil {
		return fmt.Errorf("refused with HTTP status %d", refused.Response.StatusCode)
	}
	return err
}
