package envoy_test

import (
	"bytes"
	"net/http"
	"slices"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"sallyport/envoy/envoytest"
	"sallyport/gateway"
)

func TestHTTP2IsHeldToTheSame(t *testing.T) {
	r := newRig(t)
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &protocols}
	defer transport.CloseIdleConnections()
	send := func(header, value string) (*http.Response, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.URL+"/v1/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer key")
		request.Header.Set(header, value)
		return transport.RoundTrip(request)
	}
	response, err := send("X-Sallyport-Namespace", "evil:1")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if got := r.backend.last(t).Header.Values("X-Sallyport-Namespace"); response.ProtoMajor != 2 || !slices.Equal(got, []string{identity.Namespace}) {
		t.Errorf("%s: namespace = %q", response.Proto, got)
	}
	before := r.backend.count()
	response, err = send("x_sallyport_namespace", "evil:1") // Envoy may answer 400, or reset the stream
	if err == nil {
		_ = response.Body.Close()
		if response.StatusCode != http.StatusBadRequest {
			t.Errorf("status = %d", response.StatusCode)
		}
	}
	if r.backend.count() != before {
		t.Error("a header with an underscore arrived")
	}
}

func TestHTTP2TrailersDoNotArrive(t *testing.T) {
	r := newRig(t)
	conn := dialRaw(t, r)
	framer := http2.NewFramer(conn, conn)
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	fields := func(pairs ...string) []byte {
		block.Reset()
		for i := 0; i < len(pairs); i += 2 {
			if err := encoder.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]}); err != nil {
				t.Fatal(err)
			}
		}
		return bytes.Clone(block.Bytes())
	}
	write := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := conn.Write([]byte(http2.ClientPreface))
	write(err)
	write(framer.WriteSettings())
	write(framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: 1, EndHeaders: true,
		BlockFragment: fields(":method", "POST", ":scheme", "http", ":authority", "gateway", ":path", "/v1/beliefs",
			"authorization", "Bearer key", "x-sallyport-namespace", "evil:1", "trailer", "x-sallyport-namespace"),
	}))
	write(framer.WriteData(1, false, []byte("{}")))
	write(framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: 1, EndHeaders: true, EndStream: true,
		BlockFragment: fields("x-sallyport-namespace", "evil:1"),
	}))
	envoytest.Eventually(t, "the request reaches the backend", func() bool { return r.backend.count() > 0 })
	request := r.backend.last(t)
	if got := request.Header.Values("X-Sallyport-Namespace"); !slices.Equal(got, []string{identity.Namespace}) {
		t.Errorf("namespace = %q", got)
	}
	if got := ownedBy(gateway.DefaultHeaders(), request.Trailer); len(got["x-sallyport-namespace"]) != 0 {
		t.Errorf("trailers arrived: %v", got)
	}
}
