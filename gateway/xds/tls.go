package xds

import (
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// upstream builds the client side of TLS: mutual if t has a certificate of its own.
func (t TLS) upstream(alpn string) *corev3.TransportSocket {
	common := &tlsv3.CommonTlsContext{
		AlpnProtocols: []string{alpn},
		TlsParams: &tlsv3.TlsParameters{
			TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_2,
			TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3, // unset, Envoy stops at 1.2 as a client, and strict servers hang up
		},
		ValidationContextType: &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{
			TrustedCa: file(t.CA),
			// Without the name, any certificate that this authority ever signed would do.
			MatchTypedSubjectAltNames: []*tlsv3.SubjectAltNameMatcher{{
				SanType: t.sanType(),
				Matcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: t.SAN}},
			}},
		}},
	}
	if t.Cert != "" {
		common.TlsCertificates = []*tlsv3.TlsCertificate{{CertificateChain: file(t.Cert), PrivateKey: file(t.Key)}}
	}
	context := &tlsv3.UpstreamTlsContext{CommonTlsContext: common}
	if t.sanType() == tlsv3.SubjectAltNameMatcher_DNS {
		context.Sni = t.SAN // lets a server with several certificates choose
	}
	return &corev3.TransportSocket{
		Name:       "envoy.transport_sockets.tls",
		ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed(context)},
	}
}

func (t TLS) sanType() tlsv3.SubjectAltNameMatcher_SanType {
	if strings.Contains(t.SAN, "://") {
		return tlsv3.SubjectAltNameMatcher_URI
	}
	return tlsv3.SubjectAltNameMatcher_DNS
}

func file(path string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: path}}
}
