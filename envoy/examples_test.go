package envoy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	authzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"sallyport/envoy"
	"sallyport/gateway"
	"sallyport/gateway/xds"
)

var update = flag.Bool("update", false, "write sidecar.yaml anew")

const sidecarHeader = "# Made from sidecar.gateway.yaml; do not edit. Anew: go test ./envoy -run TestSidecar -update\n"

func TestSidecar(t *testing.T) {
	g, err := xds.ReadFile("sidecar.gateway.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := xds.Render(g)
	if err != nil {
		t.Fatal(err)
	}
	want := append([]byte(sidecarHeader), rendered...)
	if *update {
		if err := os.WriteFile("sidecar.yaml", want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("sidecar.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("sidecar.yaml is not what sidecar.gateway.yaml renders to: run go test ./envoy -run TestSidecar -update")
	}
	if err := envoy.Validate(t.Context(), got); err != nil {
		t.Error(err)
	}
}

// documents reads the YAML documents of a file.
func documents(t *testing.T, path string) []map[string]any {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for decoder := yaml.NewDecoder(bytes.NewReader(raw)); ; {
		var document map[string]any
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out = append(out, document)
	}
}

// at follows a path of keys, and of indexes in lists.
func at(t *testing.T, from any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, ok := from.(map[string]any)
			if !ok || m[step] == nil {
				t.Fatalf("there is no %q of %v", step, path)
			}
			from = m[step]
		case int:
			l, ok := from.([]any)
			if !ok || step >= len(l) {
				t.Fatalf("there is no element %d of %v", step, path)
			}
			from = l[step]
		}
	}
	return from
}

func TestExamplesForOthersEnvoysFailShut(t *testing.T) {
	for _, tt := range []struct {
		file    string
		path    []any
		wanting map[string]any
	}{
		{
			"istio/provider.values.yaml",
			[]any{"meshConfig", "extensionProviders", 0, "envoyExtAuthzGrpc"},
			map[string]any{"failOpen": false, "statusOnError": "503", "clearRouteCache": false},
		},
		{"envoy-gateway/door.yaml", []any{"spec", "extAuth"}, map[string]any{"failOpen": false, "recomputeRoute": false}},
	} {
		door := at(t, documents(t, tt.file)[0], tt.path...)
		for field, value := range tt.wanting {
			if got := at(t, door, field); got != value {
				t.Errorf("%s: %s = %v, want %v", tt.file, field, got, value)
			}
		}
		timeout, err := time.ParseDuration(at(t, door, "timeout").(string))
		if err != nil || timeout < 100*time.Millisecond || timeout > 250*time.Millisecond {
			t.Errorf("%s: timeout = %v, %v", tt.file, timeout, err)
		}
	}
}

func TestExamplesForOthersEnvoysAreWellFormed(t *testing.T) {
	files, err := filepath.Glob("*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		for i, document := range documents(t, file) {
			if strings.HasSuffix(file, ".values.yaml") {
				continue
			}
			for _, field := range []string{"apiVersion", "kind", "spec"} {
				if document[field] == nil {
					t.Errorf("%s, document %d: no %s", file, i+1, field)
				}
			}
		}
	}
	removed := at(t, documents(t, "envoy-gateway/strip.yaml")[0], "spec", "headers", "earlyRequestHeaders", "remove").([]any)
	for i, name := range gateway.DefaultHeaders().All() {
		if i >= len(removed) || removed[i] != name {
			t.Errorf("envoy-gateway/strip.yaml does not remove %s", name)
		}
	}
}

// patch reads the protobuf message of one of the EnvoyFilter's patches, as strictly as Envoy would.
func patch(t *testing.T, number int) proto.Message {
	t.Helper()
	value := at(t, documents(t, "istio/strip.yaml")[0], "spec", "configPatches", number, "patch", "value", "typed_config")
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var packed anypb.Any
	if err := protojson.Unmarshal(raw, &packed); err != nil {
		t.Fatal(err)
	}
	m, err := packed.UnmarshalNew()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The patches for Istio are the same settings that Sallyport's own Envoy is tested with, and Envoy accepts them.
func TestIstiosPatchesAreOurOwnSettings(t *testing.T) {
	bootstrap, err := xds.Bootstrap(small(t))
	if err != nil {
		t.Fatal(err)
	}
	manager, door := parts(t, bootstrap)
	managerPatch, doorPatch := patch(t, 0), patch(t, 1)

	wantManager := &hcmv3.HttpConnectionManager{
		EarlyHeaderMutationExtensions: manager.GetEarlyHeaderMutationExtensions(),
		MergeSlashes:                  manager.GetMergeSlashes(),
		PathWithEscapedSlashesAction:  manager.GetPathWithEscapedSlashesAction(),
	}
	got := proto.CloneOf(managerPatch.(*hcmv3.HttpConnectionManager))
	if action := got.GetCommonHttpProtocolOptions().GetHeadersWithUnderscoresAction(); action != manager.GetCommonHttpProtocolOptions().GetHeadersWithUnderscoresAction() {
		t.Errorf("headers_with_underscores_action = %v", action)
	}
	got.CommonHttpProtocolOptions = nil
	equal(t, got, wantManager)
	equal(t, doorPatch, &authzv3.ExtAuthz{
		EncodeRawHeaders:           door.GetEncodeRawHeaders(),
		ValidateMutations:          door.GetValidateMutations(),
		DecoderHeaderMutationRules: door.GetDecoderHeaderMutationRules(),
	})

	manager.EarlyHeaderMutationExtensions = nil // Istio has none: the patch brings them
	proto.Merge(manager, managerPatch)
	proto.Merge(door, doorPatch)
	replace(t, bootstrap, manager, door)
	merged, err := xds.YAML(bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	if err := envoy.Validate(t.Context(), merged); err != nil {
		t.Error(err)
	}
}

// equal compares messages, the Any fields inside them by their content.
func equal(t *testing.T, got, want proto.Message) {
	t.Helper()
	if a, b := protojson.Format(got), protojson.Format(want); strings.Join(strings.Fields(a), "") != strings.Join(strings.Fields(b), "") {
		t.Errorf("got %s\nwant %s", a, b)
	}
}

// parts unpacks the connection manager and the door of a bootstrap.
func parts(t *testing.T, b *bootstrapv3.Bootstrap) (*hcmv3.HttpConnectionManager, *authzv3.ExtAuthz) {
	t.Helper()
	manager, door := &hcmv3.HttpConnectionManager{}, &authzv3.ExtAuthz{}
	if err := b.GetStaticResources().GetListeners()[0].GetFilterChains()[0].GetFilters()[0].GetTypedConfig().UnmarshalTo(manager); err != nil {
		t.Fatal(err)
	}
	for _, f := range manager.GetHttpFilters() {
		if f.GetName() == "envoy.filters.http.ext_authz" {
			if err := f.GetTypedConfig().UnmarshalTo(door); err != nil {
				t.Fatal(err)
			}
		}
	}
	return manager, door
}

func replace(t *testing.T, b *bootstrapv3.Bootstrap, manager *hcmv3.HttpConnectionManager, door *authzv3.ExtAuthz) {
	t.Helper()
	for _, f := range manager.GetHttpFilters() {
		if f.GetName() == "envoy.filters.http.ext_authz" {
			if err := f.GetTypedConfig().MarshalFrom(door); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := b.GetStaticResources().GetListeners()[0].GetFilterChains()[0].GetFilters()[0].GetTypedConfig().MarshalFrom(manager); err != nil {
		t.Fatal(err)
	}
}
