// Package embed asks a service of embeddings what texts mean: one that speaks OpenAI's protocol (POST …/embeddings), as most
// do, or the plain one of the Memory API's reference (POST …/embed with one text).
//
// It keeps nothing and decides nothing: package memory says which texts, and what to do when nobody answers.
package embed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"sallyport/memory/modelservice"
)

// maxNumbers bounds one vector.
const maxNumbers = 16384

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
	service *modelservice.Endpoint
	plain   bool
	model   string
}

const plainPath = "/embed"

// New checks the options; it asks nobody.
func New(o Options) (*Client, error) {
	service, err := modelservice.New(modelservice.Options{URL: o.URL, Suffix: "/embeddings", Plain: plainPath, Key: o.Key, Timeout: o.Timeout})
	if err != nil {
		return nil, err
	}
	c := &Client{service: service, plain: strings.HasSuffix(service.Path(), plainPath), model: o.Model}
	if !c.plain && o.Model == "" {
		return nil, errors.New("this protocol needs the name of a model")
	}
	return c, nil
}

// Model names whose vectors these are: vectors of different names are not compared.
func (c *Client) Model() string {
	if c.model == "" {
		return "unnamed"
	}
	return c.model
}

// Embed returns a vector of length 1 for each text.
func (c *Client) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if !c.plain {
		return c.embedAll(ctx, texts)
	}
	out := make([][]float32, 0, len(texts))
	for _, text := range texts {
		var answer struct{ Values, Embedding []float32 }
		if err := c.service.Post(ctx, map[string]any{"text": text}, &answer); err != nil {
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
	if err := c.service.Post(ctx, map[string]any{"model": c.model, "input": texts, "encoding_format": "float"}, &answer); err != nil {
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
