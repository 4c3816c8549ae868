// Package api carries a memory.Service over HTTP: MCP's JSON-RPC at /mcp and the same operations at /v1.
//
// It has no rules of its own. It reads arguments, calls the service for the identity that the gateway vouched for, and
// writes results. What a surface offers is a table of tools; every error becomes an answer in one place (errors.go).
package api
