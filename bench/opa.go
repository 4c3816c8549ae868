package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	authzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// policy is what the door decides, in OPA's language.
//
//go:embed policy.rego
var policy []byte

// startOPA runs opa-envoy-plugin with the policy, and with the first keys of the key store as its data.
func (r *rig) startOPA(ctx context.Context, name string) (*door, error) {
	d := &door{socket: r.world.socket(name)}
	type record struct {
		Namespace string `json:"namespace"`
		Revoked   bool   `json:"revoked"`
	}
	data := struct {
		JWKS string            `json:"jwks"`
		Keys map[string]record `json:"keys"`
	}{JWKS: string(r.world.jwks), Keys: map[string]record{r.world.revokedID.ID: {Namespace: r.world.revokedID.Namespace, Revoked: true}}}
	for _, id := range r.world.ids[:r.warm] {
		data.Keys[id.ID] = record{Namespace: id.Namespace}
	}
	text, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("print the policy's data: %w", err)
	}
	dir := filepath.Join(r.world.dir, "opa")
	policyPath, dataPath := filepath.Join(dir, "policy.rego"), filepath.Join(dir, "data.json")
	const mode, dirMode = 0o600, 0o700
	if err := errors.Join(os.Mkdir(dir, dirMode), os.WriteFile(policyPath, policy, mode), os.WriteFile(dataPath, text, mode)); err != nil {
		return nil, fmt.Errorf("write the policy: %w", err)
	}
	d.process, err = r.fleet.start(ctx, r.opa, "run", "--server", "--addr", "unix://"+r.world.socket(name+"-api"), "--log-level", "error", "--skip-version-check",
		"--set", "plugins.envoy_ext_authz_grpc.addr=unix://"+d.socket, "--set", "plugins.envoy_ext_authz_grpc.path=sallyport/answer",
		policyPath, dataPath)
	if err != nil {
		return nil, err
	}
	return d, d.await(ctx, func(ctx context.Context) error { return listening(ctx, d.socket) })
}

// joinedHeaders makes Envoy send headers in the form that OPA's policies read.
func joinedHeaders(filters []*hcmv3.HttpFilter) ([]*hcmv3.HttpFilter, error) {
	for _, f := range filters {
		if !isDoor(f) {
			continue
		}
		var config authzv3.ExtAuthz
		if err := f.GetTypedConfig().UnmarshalTo(&config); err != nil {
			return nil, err
		}
		config.EncodeRawHeaders = false
		return filters, anypb.MarshalFrom(f.GetTypedConfig(), &config, proto.MarshalOptions{})
	}
	return nil, errors.New("there is no door")
}
