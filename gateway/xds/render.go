package xds

import (
	"bytes"
	"fmt"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
)

// Render prints the Bootstrap of g as YAML. The same Gateway always gives the same bytes.
func Render(g Gateway) ([]byte, error) {
	b, err := Bootstrap(g)
	if err != nil {
		return nil, err
	}
	return YAML(b)
}

// YAML prints a Bootstrap in the order of its fields.
func YAML(b *bootstrapv3.Bootstrap) ([]byte, error) {
	// protojson varies its white space on purpose; the round trip through a YAML tree takes that out and keeps the order.
	raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("marshal Envoy's bootstrap: %w", err)
	}
	var tree yaml.Node
	if err := yaml.Unmarshal(raw, &tree); err != nil { // JSON is YAML
		return nil, fmt.Errorf("read Envoy's bootstrap back: %w", err)
	}
	plain(&tree)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&tree); err != nil {
		return nil, fmt.Errorf("print Envoy's bootstrap: %w", err)
	}
	return out.Bytes(), encoder.Close()
}

// plain drops JSON's braces and quotes; the encoder quotes again what would otherwise be read as something else.
func plain(n *yaml.Node) {
	n.Style = 0
	for _, child := range n.Content {
		plain(child)
	}
}
