package checkserver

// This file encodes by hand the answer that lets a request pass, the one that nearly every check ends with. With the
// generated code it is some forty objects a check; kept ready for each key, it would be half of what a key takes in memory.
// allowed_test.go holds it against the generated code.

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protowire"

	"sallyport/extauthz"
	"sallyport/gateway"
)

// The fields that are written, by their numbers in envoy/service/auth/v3/external_auth.proto and what it imports.
const (
	responseStatus   protowire.Number = 1 // CheckResponse.status; empty is OK
	responseOK       protowire.Number = 3 // CheckResponse.ok_response
	responseMetadata protowire.Number = 4 // CheckResponse.dynamic_metadata, a Struct

	okHeaders protowire.Number = 2 // OkHttpResponse.headers: a list of HeaderValueOption
	okRemove  protowire.Number = 5 // OkHttpResponse.headers_to_remove

	optionHeader protowire.Number = 1 // HeaderValueOption.header: a HeaderValue, of key and value
	optionAction protowire.Number = 3 // HeaderValueOption.append_action

	structFields protowire.Number = 1 // Struct.fields: a map to Value
	valueString  protowire.Number = 3 // Value.string_value
)

// Room on the stack for the parts of an answer. Longer ones are encoded just as well, on the heap.
const (
	roomForAnswer = 1024
	roomForHeader = 256
)

// encodeAllowed sets the trusted headers, removes the key and what the client sent under the gateway's names, and tells
// Envoy's access log about the decision.
func encodeAllowed(d extauthz.Decision, names gateway.Headers, forged []string) []byte {
	var okRoom, metadataRoom [roomForAnswer]byte
	ok, metadata := okRoom[:0], metadataRoom[:0]
	for _, h := range names.Values(d.Identity) {
		ok = appendHeader(ok, h.Name, h.Value)
	}
	for _, name := range extauthz.HeadersToRemove(d, names, forged) {
		ok = appendText(ok, okRemove, name)
	}
	for _, f := range metadataOf(d) {
		if f.Value != "" {
			metadata = appendMetadata(metadata, f.Name, f.Value)
		}
	}
	const around = 16 // tags and lengths
	out := make([]byte, 0, len(ok)+len(metadata)+around)
	out = appendBytes(out, responseStatus, nil)
	out = appendBytes(out, responseOK, ok)
	return appendBytes(out, responseMetadata, metadata)
}

// appendHeader says that the header overwrites: left unset, Envoy 1.40 overwrites and later sources append (envoy#32420).
func appendHeader(ok []byte, name, value string) []byte {
	var headerRoom, optionRoom [roomForHeader]byte
	header := appendText(appendText(headerRoom[:0], pairKey, name), pairValue, value)
	option := appendBytes(optionRoom[:0], optionHeader, header)
	option = protowire.AppendTag(option, optionAction, protowire.VarintType)
	option = protowire.AppendVarint(option, uint64(corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD))
	return appendBytes(ok, okHeaders, option)
}

func appendMetadata(metadata []byte, name, value string) []byte {
	var valueRoom, entryRoom [roomForHeader]byte
	entry := appendText(entryRoom[:0], pairKey, name)
	entry = appendBytes(entry, pairValue, appendText(valueRoom[:0], valueString, value))
	return appendBytes(metadata, structFields, entry)
}

func appendText(b []byte, number protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), text)
}

func appendBytes(b []byte, number protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), message)
}
