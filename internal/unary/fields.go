package unary

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/metadata"
)

// fields are the header fields of one call, as they are read from a HEADERS frame and its CONTINUATIONs. The framer could
// collect them all (Framer.ReadMetaHeaders); that is a dozen allocations a call, for the few that a call needs. What it
// would see to is seen to here: names, values and the order of pseudo-header fields (RFC 9113, 8.2 and 8.3).
type fields struct {
	id      uint32
	end     bool // the message has no more
	onSelf  bool // the stream depends on itself
	keep    []string
	frames  int
	onWire  int // bytes
	size    int // bytes, as hpack counts them
	pseudo  bool
	regular bool
	broken  bool // not HTTP/2's

	method, path, scheme, authority, contentType string
	timeout                                      time.Duration
	declared                                     bool // there is a content-length
	length                                       int64
	metadata                                     metadata.MD
}

const (
	maxHeaderFrames = 16
	// maxHeaderWire is what headers within the limit never take: hpack counts 32 bytes more for each than it has.
	maxHeaderWire = 2 * maxHeaderBytes
)

// begin is for a HEADERS frame.
func (f *fields) begin(h *http2.HeadersFrame) {
	*f = fields{
		id: h.StreamID, end: h.StreamEnded(), onSelf: h.HasPriority() && h.Priority.StreamDep == h.StreamID,
		keep: f.keep, timeout: maxWait,
	}
}

// read takes a piece of the headers. Of headers that never end not much is read (CVE-2024-27316).
func (f *fields) read(d *hpack.Decoder, piece []byte, last bool) error {
	f.frames++
	f.onWire += len(piece)
	if f.frames > maxHeaderFrames || f.onWire > maxHeaderWire {
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	_, err := d.Write(piece)
	if err == nil && last {
		err = d.Close()
	}
	if err != nil {
		return http2.ConnectionError(http2.ErrCodeCompression) // both sides' tables differ from now on
	}
	return nil
}

// tooLarge says whether there are more than the server said that it takes. What is too much was dropped.
func (f *fields) tooLarge() bool { return f.size > maxHeaderBytes }

// emit is hpack's.
func (f *fields) emit(h hpack.HeaderField) {
	if f.size += int(h.Size()); f.tooLarge() {
		return
	}
	if !httpguts.ValidHeaderFieldValue(h.Value) {
		f.broken = true
	}
	if strings.HasPrefix(h.Name, ":") {
		f.pseudo = true
		f.broken = f.broken || f.regular || !f.set(h.Name, h.Value)
		return
	}
	f.regular = true
	if !httpguts.ValidHeaderFieldName(h.Name) || strings.ContainsFunc(h.Name, isUpper) || !f.add(h.Name, h.Value) {
		f.broken = true
	}
}

func isUpper(r rune) bool { return 'A' <= r && r <= 'Z' }

// set takes a pseudo-header field: each is there once, and not empty.
func (f *fields) set(name, value string) bool {
	var to *string
	switch name {
	case ":method":
		to = &f.method
	case ":path":
		to = &f.path
	case ":scheme":
		to = &f.scheme
	case ":authority":
		to = &f.authority
	default:
		return false
	}
	if value == "" || *to != "" {
		return false
	}
	*to = value
	return true
}

// add takes any other field. Those that are of one connection are not HTTP/2's.
func (f *fields) add(name, value string) bool {
	switch name {
	case "content-type":
		f.contentType = value
	case "grpc-timeout":
		f.timeout = min(timeout(value), maxWait)
	case "content-length":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 || f.declared && n != f.length {
			return false
		}
		f.declared, f.length = true, n
	case "te":
		return value == "trailers"
	case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
		return false
	default:
		if slices.Contains(f.keep, name) {
			if f.metadata == nil {
				f.metadata = metadata.MD{}
			}
			f.metadata.Append(name, value)
		}
	}
	return true
}

// whole says whether a call can be begun with them.
func (f *fields) whole() bool {
	return !f.broken && !f.onSelf && (f.tooLarge() || f.method != "" && f.path != "" && f.scheme != "")
}

var timeoutUnits = map[byte]time.Duration{
	'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
}

// timeout reads a grpc-timeout: at most eight digits and a unit. What is none counts as the longest.
func timeout(value string) time.Duration {
	const mostDigits = 8
	if len(value) < 2 || len(value) > mostDigits+1 {
		return maxWait
	}
	n, err := strconv.ParseUint(value[:len(value)-1], 10, 32)
	unit, ok := timeoutUnits[value[len(value)-1]]
	if err != nil || !ok || time.Duration(n) > maxWait/unit {
		return maxWait
	}
	return time.Duration(n) * unit
}
