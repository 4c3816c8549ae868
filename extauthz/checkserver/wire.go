package checkserver

// This file reads the wire form of a CheckRequest itself. proto.Unmarshal makes an object of every field, of which the
// decision needs two or three: that is most of what a check would cost the door (docs/performance.md). It is allowed
// because wire_fuzz_test.go holds it against proto.Unmarshal: for any bytes the two agree, or this one refuses.
//
// It follows protobuf's rules for what may come twice: a message is merged with what came before, of a string the last one
// counts, a list goes on, and a key of a map has the value that came last. Fields that nobody reads are skipped unread.

import (
	"bytes"
	"errors"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"sallyport/extauthz"
	"sallyport/gateway"
)

// wayToHTTP leads from a CheckRequest to its HTTP request: CheckRequest.attributes, AttributeContext.request, Request.http.
// All numbers are those of envoy/service/auth/v3/attribute_context.proto and of what it imports.
var wayToHTTP = [...]protowire.Number{1, 4, 2}

// The fields of AttributeContext.HttpRequest that are read, and those below them.
const (
	httpMethod    protowire.Number = 2
	httpHeaders   protowire.Number = 3 // a map
	httpPath      protowire.Number = 4
	httpHeaderMap protowire.Number = 13

	headerMapHeaders protowire.Number = 1 // HeaderMap.headers: a list of HeaderValue

	pairKey      protowire.Number = 1 // of a HeaderValue and of a map
	pairValue    protowire.Number = 2
	pairRawValue protowire.Number = 3 // of a HeaderValue
)

var (
	errTruncated = errors.New("it is cut short")
	errNumber    = errors.New("a field has a number that no field can have")
	errNotUTF8   = errors.New("a string in it is not UTF-8")
)

// line is a header line.
type line struct{ name, value []byte }

// checkRequest is what is read of a CheckRequest. Its texts are pieces of the wire form.
type checkRequest struct {
	method, path []byte
	raw          []line // of header_map, where every line is as it came (encode_raw_headers)
	mapped       []line // of headers, where the lines of one name are joined with commas
	rawAtAll     bool   // header_map has lines, also such as are not kept
	names        gateway.Headers
}

// keeps says whether a line is kept: only those that the decision looks at are.
func (c *checkRequest) keeps(name []byte) bool { return extauthz.Reads(name, c.names) }

// read adds to c what m says, which is depth steps down wayToHTTP. After an error nothing of c may be used.
func (c *checkRequest) read(m message, depth int) error {
	for !m.empty() {
		f, err := m.next()
		if err != nil {
			return err
		}
		switch {
		case !f.delimited: // of another type than the schema's, or unknown: protobuf passes over both
		case depth == len(wayToHTTP):
			err = c.readHTTP(f)
		case f.number == wayToHTTP[depth]:
			err = c.read(f.value, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *checkRequest) readHTTP(f field) (err error) {
	switch f.number {
	case httpMethod:
		c.method, err = f.value.utf8()
	case httpPath:
		c.path, err = f.value.utf8()
	case httpHeaders:
		err = c.readMapped(f.value)
	case httpHeaderMap:
		err = c.readHeaderMap(f.value)
	}
	return err
}

func (c *checkRequest) readHeaderMap(m message) error {
	for !m.empty() {
		f, err := m.next()
		if err != nil {
			return err
		}
		if !f.delimited || f.number != headerMapHeaders {
			continue
		}
		name, value, raw, err := readPair(f.value)
		if err != nil {
			return err
		}
		c.rawAtAll = true
		if len(raw) > 0 {
			value = raw
		}
		if c.keeps(name) {
			c.raw = append(c.raw, line{name, value})
		}
	}
	return nil
}

// readMapped reads one entry of the map.
func (c *checkRequest) readMapped(m message) error {
	name, value, _, err := readPair(m)
	if err != nil || !c.keeps(name) {
		return err
	}
	for i := range c.mapped {
		if bytes.Equal(c.mapped[i].name, name) {
			c.mapped[i].value = value
			return nil
		}
	}
	c.mapped = append(c.mapped, line{name, value})
	return nil
}

// readPair reads a HeaderValue, or an entry of a map, which has no raw value.
func readPair(m message) (name, value, raw []byte, err error) {
	for !m.empty() {
		f, err := m.next()
		if err != nil {
			return nil, nil, nil, err
		}
		if !f.delimited {
			continue
		}
		switch f.number {
		case pairKey:
			name, err = f.value.utf8()
		case pairValue:
			value, err = f.value.utf8()
		case pairRawValue:
			raw = f.value.bytes()
		}
		if err != nil {
			return nil, nil, nil, err
		}
	}
	return name, value, raw, nil
}

// lines returns the header lines that were kept: those of header_map if it has any at all.
func (c *checkRequest) lines() []line {
	if c.rawAtAll {
		return c.raw
	}
	return c.mapped
}

// message is a piece of a CheckRequest: a message, a string, bytes or a map's entry. It moves by numbers alone, since moving
// pointers costs more than reading whenever the garbage collector runs.
type message struct {
	of       []byte
	from, to int
}

// field is one field as it stands in a message. value is set if it is delimited.
type field struct {
	number    protowire.Number
	delimited bool
	value     message
}

func (m *message) empty() bool { return m.from == m.to }

func (m *message) bytes() []byte { return m.of[m.from:m.to:m.to] }

// next takes the first field off m.
func (m *message) next() (field, error) {
	number, kind, n := protowire.ConsumeTag(m.bytes())
	switch {
	case n < 0:
		return field{}, protowire.ParseError(n)
	case number > protowire.MaxValidNumber:
		return field{}, errNumber
	}
	m.from += n
	if kind != protowire.BytesType {
		n = protowire.ConsumeFieldValue(number, kind, m.bytes())
		if n < 0 {
			return field{}, protowire.ParseError(n)
		}
		m.from += n
		return field{number: number}, nil
	}
	size, n := protowire.ConsumeVarint(m.bytes())
	switch {
	case n < 0:
		return field{}, protowire.ParseError(n)
	case size > uint64(m.to-m.from-n):
		return field{}, errTruncated
	}
	from := m.from + n
	m.from = from + int(size)
	return field{number, true, message{m.of, from, m.from}}, nil
}

// utf8 is bytes, of a string.
func (m *message) utf8() ([]byte, error) {
	if !utf8.Valid(m.bytes()) {
		return nil, errNotUTF8
	}
	return m.bytes(), nil
}
