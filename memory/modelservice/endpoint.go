// Package modelservice sends JSON to a service that runs a model, and reads its JSON answer, within bounds.
//
// It knows no protocol of any model: packages embed and extract do. What it says in errors repeats neither the service's
// words nor its address, which may hold a text or a key.
package modelservice

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

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 32 << 20

// Endpoint is where to POST. It may be used by many goroutines.
type Endpoint struct {
	address string
	path    string
	key     string
	http    *http.Client
}

// Options say where the service is.
type Options struct {
	URL     string
	Suffix  string        // put at the end of the URL's path unless it, or Plain, stands there
	Plain   string        // another end that is left as it is; may be empty
	Key     string        // sent as a bearer token; empty sends none
	Timeout time.Duration // of one request
}

// New checks the options; it asks nobody.
func New(o Options) (*Endpoint, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil:
		return nil, errors.New("it is not a URL") // the parser's words would show it, with what is secret in it
	case (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		return nil, errors.New("give http://HOST/PATH or https://HOST/PATH")
	case u.User != nil:
		return nil, errors.New("give the key in a file or a variable, not in the URL")
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	if !strings.HasSuffix(u.Path, o.Suffix) && (o.Plain == "" || !strings.HasSuffix(u.Path, o.Plain)) {
		u.Path += o.Suffix
	}
	return &Endpoint{address: u.String(), path: u.Path, key: o.Key, http: &http.Client{
		Timeout:       o.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Path is that of the address.
func (e *Endpoint) Path() string { return e.path }

// RefusedError says that the service does not take what was sent, however often it is sent.
type RefusedError struct{ Status string }

// Error returns what the service answered.
func (e *RefusedError) Error() string { return "the service refused: " + e.Status }

// Refused tells it from a service that is out of order.
func (e *RefusedError) Refused() bool { return true }

// Post sends a value as JSON and reads the answer into another.
func (e *Endpoint) Post(ctx context.Context, body, into any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("write to the service: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.address, bytes.NewReader(raw))
	if err != nil {
		return errors.New("ask the service: its URL cannot be used")
	}
	r.Header.Set("Content-Type", "application/json")
	if e.key != "" {
		r.Header.Set("Authorization", "Bearer "+e.key)
	}
	answer, err := e.http.Do(r)
	if err != nil {
		var where *url.Error // shows the whole address
		if errors.As(err, &where) {
			err = where.Err
		}
		return fmt.Errorf("ask the service: %w", err)
	}
	defer answer.Body.Close() //nolint:errcheck // it is only read
	if answer.StatusCode != http.StatusOK {
		return refusal(answer.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(into); err != nil {
		return fmt.Errorf("read the service's answer: %w", err)
	}
	return nil
}

func refusal(status int) error {
	text := fmt.Sprintf("%d %s", status, http.StatusText(status))
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return &RefusedError{Status: text}
	}
	return fmt.Errorf("the service answered %s", text)
}
