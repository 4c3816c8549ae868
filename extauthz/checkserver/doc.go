// Package checkserver carries the decision over Envoy's gRPC API, envoy.service.auth.v3.Authorization/Check.
//
// It turns a CheckRequest into an extauthz.Request and a Decision into a CheckResponse, and has no rules of its own.
package checkserver
