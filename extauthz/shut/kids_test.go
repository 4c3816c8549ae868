package shut_test

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/internal/key"
)

// Each invented kid might be a signing key that was published a moment ago, so the door has to look; and it must not look
// more than once a second, whatever is thrown at it.
func TestTenThousandInventedKidsCostOneReadOfTheKeysASecond(t *testing.T) {
	s, i := usual(t, plan{})
	s.replica.run()
	good := i.mint(t)
	client := newHTTP2Client(t)
	if status := client.get(t, s, good.text); status != http.StatusOK {
		t.Fatalf("a good key is answered %d", status)
	}
	const attempts, at = 10_000, 64
	text := make(chan string, at)
	var refused, other atomic.Int64
	backend, reads, began := s.backend.mark(), s.replica.store.setReads.Load(), time.Now()
	var wg sync.WaitGroup
	for range at {
		wg.Go(func() {
			for text := range text {
				if client.get(t, s, text) == http.StatusUnauthorized {
					refused.Add(1)
				} else {
					other.Add(1)
				}
			}
		})
	}
	forged, claims := i.header(), encode(t, claimsOf(i.record(t)), nil)
	for range attempts {
		text <- i.sign(encode(t, forged, members{"kid": key.NewID()}), claims)
	}
	close(text)
	wg.Wait()
	took := time.Since(began)
	if refused.Load() != attempts {
		t.Errorf("%d were refused, %d were not", refused.Load(), other.Load())
	}
	if n, most := s.replica.store.setReads.Load()-reads, int64(took/time.Second)+1; n < 1 || n > most {
		t.Errorf("%d reads of the verification keys in %s, want 1 to %d", n, took, most)
	}
	if n := s.replica.door.Decisions()["unknown_signing_key"]; n != attempts {
		t.Errorf("%d were refused for their kid", n)
	}
	if got := s.backend.since(backend); got != "" {
		t.Errorf("the backend saw %.300q", got)
	}
	if status := client.get(t, s, good.text); status != http.StatusOK {
		t.Errorf("after it, a good key is answered %d", status)
	}
}

// http2Client shares one connection among many requests.
type http2Client struct{ transport *http.Transport }

func newHTTP2Client(t *testing.T) http2Client {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	c := http2Client{&http.Transport{Protocols: &protocols}}
	t.Cleanup(c.transport.CloseIdleConnections)
	return c
}

// get returns the status that a key is answered with; 0 if there was no answer.
func (c http2Client) get(t *testing.T, s *site, text string) int {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.envoy.URL+"/v1/beliefs", nil)
	if err != nil {
		t.Error(err)
		return 0
	}
	r.Header.Set("Authorization", "Bearer "+text)
	response, err := c.transport.RoundTrip(r)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer response.Body.Close() //nolint:errcheck // it is read to its end
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}
