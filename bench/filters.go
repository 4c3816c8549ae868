package main

import (
	"errors"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"sallyport/gateway"
	"sallyport/internal/key"
)

// isDoor says whether a filter is the one that asks the inner door.
func isDoor(f *hcmv3.HttpFilter) bool { return f.GetName() == "envoy.filters.http.ext_authz" }

// demandsIdentity says whether a filter is the one that stops what no door has named an owner for.
func demandsIdentity(f *hcmv3.HttpFilter) bool { return f.GetName() == "envoy.filters.http.rbac" }

// anonymous is for a door that lets everything through as nobody's.
func anonymous(filters []*hcmv3.HttpFilter) ([]*hcmv3.HttpFilter, error) {
	return slices.DeleteFunc(filters, demandsIdentity), nil
}

// passThrough takes the door out.
func passThrough(filters []*hcmv3.HttpFilter) ([]*hcmv3.HttpFilter, error) {
	if !slices.ContainsFunc(filters, isDoor) {
		return nil, errors.New("there is no door to take out")
	}
	return anonymous(slices.DeleteFunc(filters, isDoor))
}

// jwtAuthn puts Envoy's own check of JWTs in the door's place: the same keys, the same headers for the backend, and a cache
// of what it has verified that holds them all. It cannot know what is revoked.
func jwtAuthn(jwks []byte, cached int) func([]*hcmv3.HttpFilter) ([]*hcmv3.HttpFilter, error) {
	return func(filters []*hcmv3.HttpFilter) ([]*hcmv3.HttpFilter, error) {
		at := slices.IndexFunc(filters, isDoor)
		if at < 0 {
			return nil, errors.New("there is no door to replace")
		}
		const provider = "sallyport"
		headers := gateway.DefaultHeaders()
		config, err := anypb.New(&jwtv3.JwtAuthentication{
			Providers: map[string]*jwtv3.JwtProvider{provider: {
				Issuer:    key.DefaultIssuer,
				Audiences: []string{key.DefaultAudience},
				JwksSourceSpecifier: &jwtv3.JwtProvider_LocalJwks{LocalJwks: &corev3.DataSource{
					Specifier: &corev3.DataSource_InlineString{InlineString: string(jwks)},
				}},
				JwtCacheConfig: &jwtv3.JwtCacheConfig{JwtCacheSize: uint32(cached)},
				ClaimToHeaders: []*jwtv3.JwtClaimToHeader{
					{HeaderName: headers.Namespace, ClaimName: "namespace"},
					{HeaderName: headers.Tenant, ClaimName: "tenant"},
					{HeaderName: headers.Agent, ClaimName: "agent"},
					{HeaderName: headers.Session, ClaimName: "session"},
					{HeaderName: headers.KeyID, ClaimName: "jti"},
				},
			}},
			Rules: []*jwtv3.RequirementRule{{
				Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
				RequirementType: &jwtv3.RequirementRule_Requires{Requires: &jwtv3.JwtRequirement{
					RequiresType: &jwtv3.JwtRequirement_ProviderName{ProviderName: provider},
				}},
			}},
		})
		if err != nil {
			return nil, err
		}
		filters[at] = &hcmv3.HttpFilter{Name: "envoy.filters.http.jwt_authn", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: config}}
		return filters, nil
	}
}
