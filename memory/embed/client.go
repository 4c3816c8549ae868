// Package embed asks a service of embeddings what texts mean: one that speaks OpenAI's protocol (POST …/embeddings), as most
// do, or the plain one of the Memory API's reference (POST …/embed with one text).
//
// It keeps nothing and decides nothing: package memory says which texts, and what to do when nobody answers.
package embed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Bounds of an answer.
const (
	maxAnswer  = 32 << 20 // bytes
	maxNumbers = 16384    // of one vector
)

// Options say where the service is.
type Options struct {
	// URL is where to POST: a path that ends in /embed takes {"text"}; any other is OpenAI's, with /embeddings put at its
	// end if it is not there.
	URL   string
	Model string // needed by OpenAI's protocol
	Key   string // sent as a bearer token; empty sends none
	// Timeout bounds one request.
	Timeout time.Duration
}

// Client asks one service. It may be used by many goroutines.
type Client struct {
	address string
	plain   bool
	model   string
	key     string
	http    *http.Client
}

// New checks the options; it asks nobody.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil:
		return nil, errors.New("it is not a URL") // the parser's words would show it, with what is secret in it
	case (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		return nil, errors.New("give http://HOST/PATH or https://HOST/PATH")
	case u.User != nil:
		return nil, errors.New("give the key in a file or a variable, not in the URL")
	}
	c := &Client{model: o.Model, key: o.Key, http: &http.Client{
		Timeout:       o.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	path := strings.TrimSuffix(u.Path, "/")
	if c.plain = strings.HasSuffix(path, "/embed"); !c.plain {
		if o.Model == "" {
			return nil, errors.New("this protocol needs the name of a model")
		}
		if !strings.HasSuffix(path, "/embeddings") {
			path += "/embeddings"
		}
	}
	u.Path = path
	c.address = u.String()
	return c, nil
}

// Model names whose vectors these are: vectors of different names are not compared.
func (c *Client) Model() string {
	if c.model == "" {
		return "unnamed"
	}
	return c.model
}

// RefusedError says that the service does not take these texts, however often they are sent.
type RefusedError struct{ Status string }

// Error returns what the service answered.
func (e *RefusedError) Error() string { return "the embedding service refused: " + e.Status }

// Refused tells it from a service that is out of order.
func (e *RefusedError) Refused() bool { return true }

// Embed returns a vector of length 1 for each text.
func (c *Client) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if !c.plain {
		return c.embedAll(ctx, texts)
	}
	out := make([][]float32, 0, len(texts))
	for _, text := range texts {
		var answer struct{ Values, Embedding []float32 }
		if err := c.post(ctx, map[string]any{"text": text}, &answer); err != nil {
			return nil, err
		}
		if answer.Values == nil {
			answer.Values = answer.Embedding
		}
		out = append(out, answer.Values)
	}
	return checked(out, len(texts))
}

func (c *Client) embedAll(ctx context.Context, texts []string) ([][]float32, error) {
	var answer struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := c.post(ctx, map[string]any{"model": c.model, "input": texts, "encoding_format": "float"}, &answer); err != nil {
		return nil, err
	}
	out := make([][]float32, len(texts))
	for _, d := range answer.Data {
		if d.Index < 0 || d.Index >= len(out) {
			return nil, fmt.Errorf("the embedding service answered with number %d of %d texts", d.Index, len(out))
		}
		out[d.Index] = d.Embedding
	}
	return checked(out, len(texts))
}

func (c *Client) post(ctx context.Context, body, into any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("write to the embedding service: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address, bytes.NewReader(raw))
	if err != nil {
		return errors.New("ask the embedding service: its URL cannot be used")
	}
	r.Header.Set("Content-Type", "application/json")
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		var where *url.Error // shows the whole address
		if errors.As(err, &where) {
			err = where.Err
		}
		return fmt.Errorf("ask the embedding service: %w", err)
	}
	defer answer.Body.Close() //nolint:errcheck // it is only read
	if answer.StatusCode != http.StatusOK {
		return refusal(answer)
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(into); err != nil {
		return fmt.Errorf("read what the embedding service answered: %w", err)
	}
	return nil
}

// refusal keeps the words of the service out of logs: they may repeat a text or a key.
func refusal(answer *http.Response) error {
	status := fmt.Sprintf("%d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	switch answer.StatusCode {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return &RefusedError{Status: status}
	}
	return fmt.Errorf("the embedding service answered %s", status)
}

// checked makes the vectors as long as 1, and refuses what are none.
func checked(vectors [][]float32, want int) ([][]float32, error) {
	if len(vectors) != want {
		return nil, fmt.Errorf("the embedding service answered with %d vectors for %d texts", len(vectors), want)
	}
	for _, v := range vectors {
		if len(v) == 0 || len(v) > maxNumbers || len(v) != len(vectors[0]) {
			return nil, fmt.Errorf("the embedding service answered with a vector of %d numbers beside one of %d", len(v), len(vectors[0]))
		}
		var sum float64
		for _, n := range v {
			sum += float64(n) * float64(n)
		}
		length := math.Sqrt(sum)
		if length == 0 || math.IsInf(length, 0) || math.IsNaN(length) {
			return nil, errors.New("the embedding service answered with a vector that has no direction")
		}
		for i := range v {
			v[i] = float32(float64(v[i]) / length)
		}
	}
	return vectors, nil
}
