package main

import (
	"context"
	"errors"
	"flag"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"sallyport/envoy/envoytest"
)

var update = flag.Bool("update", false, "record the request anew")

// recorder keeps the last check.
type recorder struct {
	authv3.UnimplementedAuthorizationServer
	seen chan *authv3.CheckRequest
}

func (r *recorder) Check(_ context.Context, check *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	select {
	case r.seen <- check:
	default: // one is enough
	}
	return nil, errors.New("recorded")
}

func TestTheReplayedCheckIsWhatEnvoySends(t *testing.T) {
	dir := envoytest.SocketDir(t)
	socket := filepath.Join(dir, "authz.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{seen: make(chan *authv3.CheckRequest, 1)}
	server := grpc.NewServer()
	authv3.RegisterAuthorizationServer(server, r)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})

	e := envoytest.Start(t, theGateway("unix:"+socket, "unix:"+filepath.Join(dir, "backend.sock")))
	request, err := http.NewRequest(http.MethodGet, e.URL+askedPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", keyPlaceholder)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close() // it was refused
	sent := <-r.seen

	if *update {
		text, err := protojson.MarshalOptions{Multiline: true}.Marshal(sent)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("check.json", append(text, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	replayed, err := recorded()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := shape(replayed.ProtoReflect()), shape(sent.ProtoReflect()); !slices.Equal(got, want) {
		t.Errorf("Envoy's check has other fields now: run this test with -update\nreplayed %q\nsent     %q", got, want)
	}
}

// shape lists the fields that are set, and the names of headers.
func shape(m protoreflect.Message) []string {
	var out []string
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		name := string(f.FullName())
		out = append(out, name)
		switch {
		case f.IsMap():
		case f.IsList() && f.Message() != nil:
			for i := range v.List().Len() {
				out = append(out, shape(v.List().Get(i).Message())...)
			}
		case f.Message() != nil:
			out = append(out, shape(v.Message())...)
		case f.Name() == "key":
			out = append(out, v.String())
		}
		return true
	})
	slices.Sort(out)
	return out
}
