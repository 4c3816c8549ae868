package xds

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ReadFile reads a gateway.yaml. The result has its defaults and is valid.
func ReadFile(path string) (Gateway, error) {
	raw, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		return Gateway{}, fmt.Errorf("read gateway file: %w", err)
	}
	g, err := Read(raw)
	if err != nil {
		return Gateway{}, fmt.Errorf("%s: %w", path, err)
	}
	return g, nil
}

// Read reads the text of a gateway.yaml. A field that does not exist is an error that names it and those that do. The
// result has its defaults and is valid.
func Read(raw []byte) (Gateway, error) {
	var g Gateway
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	decoder.KnownFields(true)
	if err := decoder.Decode(&g); err != nil && !errors.Is(err, io.EOF) { // an empty file fails validation with better words
		return Gateway{}, explain(err)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return Gateway{}, errors.New("holds more than one YAML document: describe one gateway in one file")
	}
	g = g.WithDefaults()
	return g, g.Validate()
}

// unknown is how the YAML library names a field that a struct does not have.
var unknown = regexp.MustCompile(`^line (\d+): field (\S+) not found in type xds\.(\w+)$`)

// explain puts the library's errors, which speak of Go types, into the words of the file.
func explain(err error) error {
	var typeError *yaml.TypeError
	if !errors.As(err, &typeError) {
		return err
	}
	out := make([]error, 0, len(typeError.Errors))
	for _, text := range typeError.Errors {
		if m := unknown.FindStringSubmatch(text); m != nil {
			text = fmt.Sprintf("line %s: there is no field %q here; there are: %s", m[1], m[2], strings.Join(fieldsOf(m[3]), ", "))
		}
		out = append(out, errors.New(text))
	}
	return errors.Join(out...)
}

// fieldsOf lists the YAML fields of one of the types in a Gateway.
func fieldsOf(typeName string) []string {
	for _, t := range []reflect.Type{
		reflect.TypeFor[Gateway](), reflect.TypeFor[Node](), reflect.TypeFor[Backend](), reflect.TypeFor[Authz](),
		reflect.TypeFor[Exchange](), reflect.TypeFor[Path](), reflect.TypeFor[TLS](), reflect.TypeFor[Rate](), reflect.TypeFor[Limits](), reflect.TypeFor[Tracing](),
	} {
		if t.Name() == typeName {
			return yamlNames(t)
		}
	}
	return nil
}

func yamlNames(t reflect.Type) []string {
	var out []string
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if name == "" { // inline
			out = append(out, yamlNames(field.Type)...)
			continue
		}
		out = append(out, name)
	}
	return out
}
