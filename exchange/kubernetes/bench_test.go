package kubernetes_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const benchPods = 50

// benchTokens are of pods of claimed Sandboxes.
func (r *rig) benchTokens() (tokens []string) {
	r.t.Helper()
	for i := range benchPods {
		tokens = append(tokens, r.Token(r.Cold(fmt.Sprintf("run-%d", i)).Pod, audience))
	}
	if r.watch != nil {
		r.catchUp()
	}
	return tokens
}

// latencies reports the median and the 99th percentile.
func latencies(b *testing.B, all []time.Duration) {
	b.Helper()
	slices.Sort(all)
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	b.ReportMetric(ms(all[len(all)/2]), "p50-ms")
	b.ReportMetric(ms(all[len(all)*99/100]), "p99-ms")
}

// BenchmarkExchange is one client after the other, beside what a bare TokenReview costs on the same API server.
func BenchmarkExchange(b *testing.B) {
	b.Run("bare TokenReview", func(b *testing.B) {
		r := newRig(b, defaults())
		tokens := r.benchTokens()
		reviews := r.cluster.Admin.AuthenticationV1().TokenReviews()
		var took []time.Duration
		for i := 0; b.Loop(); i++ {
			began := time.Now()
			review, err := reviews.Create(context.Background(), &authenticationv1.TokenReview{
				Spec: authenticationv1.TokenReviewSpec{Token: tokens[i%benchPods], Audiences: []string{audience}},
			}, metav1.CreateOptions{})
			if err != nil || !review.Status.Authenticated {
				b.Fatalf("%v %+v", err, review)
			}
			took = append(took, time.Since(began))
		}
		latencies(b, took)
	})
	for name, watch := range map[string]bool{"without watches": false, "with watches": true} {
		b.Run(name, func(b *testing.B) {
			s := defaults()
			s.watch = watch
			r := newRig(b, s)
			tokens := r.benchTokens()
			before := len(r.cluster.Calls(b, r.userAgent))
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				began := time.Now()
				if a := r.send(http.MethodPost, "/v1/auth/kubernetes", tokenBody(tokens[i%benchPods])); a.status != http.StatusCreated {
					b.Fatal(a.text)
				}
				took = append(took, time.Since(began))
			}
			latencies(b, took)
			b.ReportMetric(float64(len(r.cluster.Calls(b, r.userAgent))-before)/float64(len(took)), "calls/op")
		})
	}
}

// BenchmarkTwoHundredASecond offers 200 exchanges a second, whether or not the ones before have been answered. With
// -benchtime=12000x it does so for a minute.
func BenchmarkTwoHundredASecond(b *testing.B) {
	const rate = 200
	s := defaults()
	s.watch = true
	r := newRig(b, s)
	tokens := r.benchTokens()
	var (
		mu      sync.Mutex
		took    []time.Duration
		refused int
		wg      sync.WaitGroup
	)
	// As many connections as it takes: what is measured is not how the client opens them.
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: rate}}
	defer client.CloseIdleConnections()
	due := time.Now()
	for i := 0; b.Loop(); i++ {
		due = due.Add(time.Second / rate)
		time.Sleep(time.Until(due))
		wg.Go(func() {
			began := time.Now()
			a, err := r.sendBy(client, http.MethodPost, "/v1/auth/kubernetes", tokenBody(tokens[i%benchPods]))
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(began))
			if err != nil || a.status != http.StatusCreated {
				refused++
			}
		})
	}
	wg.Wait()
	latencies(b, took)
	b.ReportMetric(float64(refused), "refused")
}
