// Package httpapi carries the exchange over HTTP, as the Memory API's clients speak it.
//
// It reads requests strictly, writes records and errors as JSON, and has no rules of its own.
package httpapi
