// Package settings reads the one YAML file that may stand in the place of flags, and shows the settings in force.
//
// The file holds a section a command, and in it the names of that command's flags; those of its default subcommand too:
//
//	extauthz:
//	  revocation-cache-ttl: 10s
//
// A flag goes before its SALLYPORT_ variable, a variable before the file, the file before the default. What the settings
// mean is the commands' business.
package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// EnvPrefix begins the names of the environment variables: --key-ttl is SALLYPORT_KEY_TTL.
const EnvPrefix = "SALLYPORT"

// File is a settings file. It implements kong.Resolver.
type File struct {
	name string
	root *yaml.Node // a mapping, or nil for an empty file
}

// Read reads a settings file. It is a kong.ConfigurationLoader.
func Read(r io.Reader) (kong.Resolver, error) {
	name := "settings file"
	if named, ok := r.(interface{ Name() string }); ok {
		name = named.Name()
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	var doc yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	f := &File{name: name}
	if len(doc.Content) > 0 {
		f.root = doc.Content[0]
		if f.root.Kind != yaml.MappingNode {
			return nil, fmt.Errorf("%s: line %d: write a section a command, such as \"extauthz:\", and its flags under it", name, f.root.Line)
		}
	}
	return f, nil
}

// Validate implements kong.Resolver: it refuses names that no command has, since a setting that is misspelt and silently
// ignored is found in production.
func (f *File) Validate(app *kong.Application) error {
	return f.check(f.root, app.Node, nil)
}

func (f *File) check(section *yaml.Node, command *kong.Node, path []string) error {
	for name, value := range pairs(section) {
		full := strings.Join(append(slices.Clone(path), name.Value), ".")
		if sub := child(command, name.Value); sub != nil {
			if value.Kind != yaml.MappingNode && value.Tag != "!!null" {
				return fmt.Errorf("%s: line %d: %s is a command: write its flags under it", f.name, value.Line, full)
			}
			if err := f.check(value, sub, append(slices.Clone(path), name.Value)); err != nil {
				return err
			}
			continue
		}
		if flag(command, name.Value) == nil {
			return fmt.Errorf("%s: line %d: unknown field %q: known here are %s", f.name, name.Line, full, known(command))
		}
	}
	return nil
}

// Resolve implements kong.Resolver.
func (f *File) Resolve(_ *kong.Context, parent *kong.Path, flag *kong.Flag) (any, error) {
	for _, name := range flag.Envs {
		if _, set := os.LookupEnv(name); set {
			return nil, nil //nolint:nilnil // kong's way to say: not from here
		}
	}
	section := f.root
	for _, name := range commandPath(parent.Node()) {
		section = lookup(section, name)
	}
	value := lookup(section, flag.Name)
	if value == nil {
		return nil, nil //nolint:nilnil // kong's way to say: not from here
	}
	switch value.Kind {
	case yaml.ScalarNode:
		return value.Value, nil
	case yaml.SequenceNode:
		items := make([]string, 0, len(value.Content))
		for _, item := range value.Content {
			items = append(items, item.Value)
		}
		return strings.Join(items, ","), nil
	default:
		return nil, fmt.Errorf("%s: line %d: %s is one value or a list of values", f.name, value.Line, flag.Name)
	}
}

func commandPath(n *kong.Node) []string {
	var path []string
	for ; n != nil && n.Type == kong.CommandNode; n = n.Parent {
		if n.Parent == nil || n.Parent.DefaultCmd != n {
			path = append([]string{n.Name}, path...)
		}
	}
	return path
}

func pairs(section *yaml.Node) func(yield func(name, value *yaml.Node) bool) {
	return func(yield func(name, value *yaml.Node) bool) {
		if section == nil || section.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(section.Content); i += 2 {
			if !yield(section.Content[i], section.Content[i+1]) {
				return
			}
		}
	}
}

func lookup(section *yaml.Node, name string) *yaml.Node {
	for n, value := range pairs(section) {
		if n.Value == name {
			return value
		}
	}
	return nil
}

func child(n *kong.Node, name string) *kong.Node {
	for _, c := range n.Children {
		if c.Type == kong.CommandNode && c.Name == name && c != n.DefaultCmd {
			return c
		}
	}
	return nil
}

// flagsOf are the flags that may stand in a command's section.
func flagsOf(n *kong.Node) []*kong.Flag {
	if n.DefaultCmd == nil || n.Type == kong.ApplicationNode {
		return n.Flags
	}
	return slices.Concat(n.Flags, flagsOf(n.DefaultCmd))
}

func flag(n *kong.Node, name string) *kong.Flag {
	for _, f := range flagsOf(n) {
		if f.Name == name && name != "help" && name != "config" {
			return f
		}
	}
	return nil
}

func known(n *kong.Node) string {
	var names []string
	for _, c := range n.Children {
		if c != n.DefaultCmd {
			names = append(names, c.Name)
		}
	}
	for _, f := range flagsOf(n) {
		if flag(n, f.Name) != nil {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// Attrs returns the settings in force of the command that was chosen, for the log line that a service begins with. They
// hold no secrets: secrets are in files, and a flag names the file; the password in an address is taken out.
func Attrs(c *kong.Context) []slog.Attr {
	var attrs []slog.Attr
	for _, f := range c.Flags() {
		if f.Name == "help" || f.Hidden {
			continue
		}
		attrs = append(attrs, slog.String(f.Name, redacted(fmt.Sprint(c.FlagValue(f)))))
	}
	return attrs
}

// redacted takes passwords out of an address such as postgres://user:password@host/database.
func redacted(value string) string {
	if !strings.Contains(value, "://") {
		return value
	}
	u, err := url.Parse(value)
	if err != nil {
		return "(an address that cannot be read)"
	}
	if q := u.Query(); q.Has("password") || q.Has("sslpassword") {
		u.RawQuery = "..."
	}
	return u.Redacted()
}
