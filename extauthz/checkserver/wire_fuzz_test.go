package checkserver

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"sallyport/extauthz"
	"sallyport/gateway"
)

// FuzzTheWireIsReadAsProtobufReadsIt holds wire.go against proto.Unmarshal, for any bytes.
//
// With the schema cut down to the fields that are read, the two agree in every respect: what is an error for one is an error
// for the other. With the whole schema, proto.Unmarshal also refuses what is broken in a field that nobody reads; whatever it
// takes, the two read alike.
func FuzzTheWireIsReadAsProtobufReadsIt(f *testing.F) {
	for _, seed := range wireSeeds(f) {
		f.Add(seed)
	}
	reduced := reducedSchema(f)
	f.Fuzz(func(t *testing.T, wire []byte) {
		buffer := bytes.Clone(wire)
		read := decode(buffer, gateway.DefaultHeaders())
		q := read.clone()
		clear(buffer) // a question that waits may not look at what it was read from

		cut := dynamicpb.NewMessage(reduced)
		err := proto.Unmarshal(wire, cut)
		if (err != nil) != (q.Request.Unreadable != nil) {
			t.Fatalf("protobuf says %v, wire.go says %v", err, q.Request.Unreadable)
		}
		if err != nil {
			if q.Request.Authorization != nil || q.Forged != nil {
				t.Fatal("something is used of what could not be read")
			}
			return
		}
		again, err := proto.Marshal(cut) // and the generated code reads the same fields out of it
		if err != nil {
			t.Fatal(err)
		}
		var check authv3.CheckRequest
		if err := proto.Unmarshal(again, &check); err != nil {
			t.Fatal(err)
		}
		agree(t, &q, &check)

		var whole authv3.CheckRequest
		if proto.Unmarshal(wire, &whole) == nil {
			agree(t, &q, &whole)
		}
	})
}

// agree compares a question with what the generated code read.
func agree(t *testing.T, q *question, check *authv3.CheckRequest) {
	t.Helper()
	http := check.GetAttributes().GetRequest().GetHttp()
	var p extauthz.Presented
	for _, h := range http.GetHeaderMap().GetHeaders() {
		value := []byte(h.GetValue())
		if raw := h.GetRawValue(); len(raw) > 0 {
			value = raw
		}
		p.Add([]byte(h.GetKey()), value, gateway.DefaultHeaders())
	}
	if len(http.GetHeaderMap().GetHeaders()) == 0 {
		for name, value := range http.GetHeaders() {
			p.Add([]byte(name), []byte(value), gateway.DefaultHeaders())
		}
		// A map has no order: of names that differ in case alone, either may come last.
		slices.Sort(p.Forged)
		slices.Sort(q.Forged)
		slices.SortFunc(p.Request.Authorization, bytes.Compare)
		slices.SortFunc(q.Request.Authorization, bytes.Compare)
		for _, list := range []*[]gateway.HeaderValue{&p.Request.Claimed, &q.Request.Claimed} {
			slices.SortFunc(*list, func(a, b gateway.HeaderValue) int {
				return strings.Compare(a.Name+"\x00"+a.Value, b.Name+"\x00"+b.Value)
			})
		}
		p.RequestID, q.RequestID = nil, nil
	}
	if !slices.EqualFunc(p.Request.Authorization, q.Request.Authorization, bytes.Equal) || !slices.Equal(p.Request.Claimed, q.Request.Claimed) ||
		!slices.Equal(p.Forged, q.Forged) || !bytes.Equal(p.RequestID, q.RequestID) {
		t.Fatalf("protobuf reads %+v, wire.go reads %+v", p, q.Presented)
	}
	if asked := q.asked(); asked.Method != http.GetMethod() || asked.Path != http.GetPath() {
		t.Fatalf("protobuf reads %s %s, wire.go reads %+v", http.GetMethod(), http.GetPath(), asked)
	}
}

// reducedSchema is CheckRequest with the fields that wire.go reads and no others.
func reducedSchema(f *testing.F) protoreflect.MessageDescriptor {
	f.Helper()
	const (
		one  = descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
		many = descriptorpb.FieldDescriptorProto_LABEL_REPEATED
	)
	of := func(name string, number int32, label descriptorpb.FieldDescriptorProto_Label, message string) *descriptorpb.FieldDescriptorProto {
		d := &descriptorpb.FieldDescriptorProto{Name: &name, Number: &number, Label: &label, Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum()}
		switch message {
		case "":
		case "bytes":
			d.Type = descriptorpb.FieldDescriptorProto_TYPE_BYTES.Enum()
		default:
			d.Type, d.TypeName = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), proto.String(".reduced."+message)
		}
		return d
	}
	message := func(name string, fields ...*descriptorpb.FieldDescriptorProto) *descriptorpb.DescriptorProto {
		return &descriptorpb.DescriptorProto{Name: &name, Field: fields}
	}
	http := message("Http", of("method", 2, one, ""), of("headers", 3, many, "Http.HeadersEntry"), of("path", 4, one, ""), of("header_map", 13, one, "HeaderMap"))
	entry := message("HeadersEntry", of("key", 1, one, ""), of("value", 2, one, ""))
	entry.Options = &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)}
	http.NestedType = []*descriptorpb.DescriptorProto{entry}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("reduced.proto"), Package: proto.String("reduced"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{
			message("Check", of("attributes", 1, one, "Context")),
			message("Context", of("request", 4, one, "Request")),
			message("Request", of("http", 2, one, "Http")),
			http,
			message("HeaderMap", of("headers", 1, many, "HeaderValue")),
			message("HeaderValue", of("key", 1, one, ""), of("value", 2, one, ""), of("raw_value", 3, one, "bytes")),
		},
	}, nil)
	if err != nil {
		f.Fatal(err)
	}
	return file.Messages().ByName("Check")
}

// wireSeeds are requests, and what protobuf allows to be done to them: fields repeated, merged, cut, unknown, of other types.
func wireSeeds(f *testing.F) [][]byte {
	f.Helper()
	marshal := func(r *authv3.AttributeContext_HttpRequest) []byte {
		wire, err := proto.Marshal(&authv3.CheckRequest{Attributes: &authv3.AttributeContext{
			Source:  &authv3.AttributeContext_Peer{Principal: "p"},
			Request: &authv3.AttributeContext_Request{Http: r},
		}})
		if err != nil {
			f.Fatal(err)
		}
		return wire
	}
	raw := marshal(&authv3.AttributeContext_HttpRequest{Method: "GET", Path: "/v1/recall?x", Size: -1, Body: "b", HeaderMap: &corev3.HeaderMap{Headers: []*corev3.HeaderValue{
		{Key: "authorization", RawValue: []byte("Bearer \xff")}, {Key: "Authorization", Value: "Bearer b"}, {Key: "x-sallyport-agent", Value: "c", RawValue: []byte("d")}, {Key: "accept"},
	}}})
	mapped := marshal(&authv3.AttributeContext_HttpRequest{Headers: map[string]string{"authorization": "Bearer a", "x-request-id": "r", "accept": "*/*"}})
	other := marshal(&authv3.AttributeContext_HttpRequest{Method: "POST", Headers: map[string]string{"authorization": "Bearer b"}, HeaderMap: &corev3.HeaderMap{}})
	return [][]byte{
		nil, raw, mapped, other,
		slices.Concat(raw, raw), slices.Concat(mapped, other), slices.Concat(other, raw), // merged: lists go on, the last of a key counts
		raw[:len(raw)-3], // cut
		slices.Concat(raw, []byte{0x0b, 0x0b, 0x0c, 0x0c}),                   // groups
		slices.Concat(raw, []byte{0x08, 0x01}),                               // attributes as a number
		slices.Concat([]byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x01, 0x00}, raw), // a number that is none
		{0x0a, 0x06, 0x22, 0x04, 0x12, 0x02, 0x12, 0x00},                     // an empty method
		{0x0a, 0x08, 0x22, 0x06, 0x12, 0x04, 0x12, 0x02, 0xc3, 0x28},         // one that is not UTF-8
	}
}
