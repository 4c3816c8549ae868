package embed_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sallyport/memory/embed"
	"sallyport/memory/modelservice"
)

var ctx = context.Background()

// serve answers every request alike and tells what the last one was.
func serve(t *testing.T, status int, answer string) (base string, last func() (path, key, body string)) {
	t.Helper()
	var path, key, body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var raw json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&raw); err != nil {
			t.Error(err)
		}
		path, key, body = r.URL.Path, r.Header.Get("Authorization"), string(raw)
		w.WriteHeader(status)
		if _, err := w.Write([]byte(answer)); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, func() (string, string, string) { return path, key, body }
}

func open(t *testing.T, o embed.Options) *embed.Client {
	t.Helper()
	o.Timeout = 5 * time.Second
	c, err := embed.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOpenAIsProtocol(t *testing.T) {
	base, last := serve(t, http.StatusOK, `{"object":"list","data":[{"index":1,"embedding":[0,2]},{"index":0,"embedding":[3,4]}],"model":"m"}`)
	for _, address := range []string{base + "/v1", base + "/v1/", base + "/v1/embeddings"} {
		got, err := open(t, embed.Options{URL: address, Model: "m", Key: "k"}).Embed(ctx, []string{"a", "b"})
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != "[[0.6 0.8] [0 1]]" {
			t.Errorf("got %v: in the order of the texts, of length 1", got)
		}
		if path, key, body := last(); path != "/v1/embeddings" || key != "Bearer k" || body != `{"encoding_format":"float","input":["a","b"],"model":"m"}` {
			t.Errorf("sent %s %s %s", path, key, body)
		}
	}
}

func TestThePlainProtocol(t *testing.T) {
	for _, member := range []string{"values", "embedding"} {
		base, last := serve(t, http.StatusOK, `{"`+member+`":[3,4]}`)
		c := open(t, embed.Options{URL: base + "/embed"})
		got, err := c.Embed(ctx, []string{"a", "b"})
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != "[[0.6 0.8] [0.6 0.8]]" {
			t.Errorf("got %v", got)
		}
		if path, key, body := last(); path != "/embed" || key != "" || body != `{"text":"b"}` {
			t.Errorf("sent %s %q %s", path, key, body)
		}
		if c.Model() == "" {
			t.Error("its vectors have no name")
		}
	}
}

func TestWhatIsNoAnswer(t *testing.T) {
	for answer, what := range map[string]string{
		`{"data":[{"index":0,"embedding":[1]}]}`:                                 "one vector for two texts",
		`{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`:   "two sizes",
		`{"data":[{"index":0,"embedding":[1]},{"index":7,"embedding":[1]}]}`:     "a number beyond the texts",
		`{"data":[{"index":-1,"embedding":[1]}]}`:                                "a number below",
		`{"data":[{"index":0,"embedding":[0,0]},{"index":1,"embedding":[1,0]}]}`: "no direction",
		`{"data":[{"index":0,"embedding":["x"]}]}`:                               "no numbers",
		`<html>`: "no JSON",
		`null`:   "nothing",
	} {
		base, _ := serve(t, http.StatusOK, answer)
		if got, err := open(t, embed.Options{URL: base, Model: "m"}).Embed(ctx, []string{"a", "b"}); err == nil {
			t.Errorf("%s: got %v", what, got)
		}
	}
}

func TestErrorsTellWhetherToTryAgainAndNoSecret(t *testing.T) {
	for status, refused := range map[int]bool{400: true, 413: true, 422: true, 401: false, 403: false, 429: false, 500: false, 503: false, 302: false} {
		base, _ := serve(t, status, `{"error":"the key hush and the text secret are not good"}`)
		_, err := open(t, embed.Options{URL: base + "?api=hush", Model: "m", Key: "hush"}).Embed(ctx, []string{"secret"})
		var r *modelservice.RefusedError
		if err == nil || errors.As(err, &r) != refused {
			t.Errorf("%d: %v", status, err)
		}
		quiet(t, err)
	}
	nobody := httptest.NewServer(http.NotFoundHandler())
	nobody.Close()
	_, err := open(t, embed.Options{URL: nobody.URL + "?api=hush", Model: "m", Key: "hush"}).Embed(ctx, []string{"secret"})
	quiet(t, err)
}

func quiet(t *testing.T, err error) {
	t.Helper()
	if err == nil || strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

func TestARequestIsBounded(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer server.Close()
	defer close(hang)
	c, err := embed.New(embed.Options{URL: server.URL, Model: "m", Timeout: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Embed(ctx, []string{"a"}); err == nil {
		t.Error("it answered")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []embed.Options{
		{URL: "", Model: "m"},
		{URL: "host:80", Model: "m"},
		{URL: "ftp://host/", Model: "m"},
		{URL: "http://user:hush@host/v1", Model: "m"},
		{URL: "http://host/v1"},
		{URL: "http://ho st\x00hush", Model: "m"},
	} {
		if _, err := embed.New(o); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
