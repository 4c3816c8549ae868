package api

import (
	"context"
	"slices"
	"strings"

	"sallyport/memory"
)

// Surface is what a server offers: its tools, and which of them REST reaches under which name.
type Surface struct {
	tools        []Tool
	operations   map[string]string // REST operation to tool
	instructions string
}

// Tool is one operation as MCP lists it.
type Tool struct {
	Name        string       `json:"name"`
	Title       string       `json:"title"`
	Description string       `json:"description"`
	InputSchema schema       `json:"inputSchema"`
	Annotations *annotations `json:"annotations,omitempty"`

	call func(context.Context, *memory.Service, memory.Caller, arguments) (any, error)
}

type annotations struct {
	ReadOnly  bool `json:"readOnlyHint"`
	OpenWorld bool `json:"openWorldHint"`
}

// reads marks the tools that change nothing.
var reads = &annotations{ReadOnly: true, OpenWorld: false}

func (s Surface) tool(name string) (Tool, bool) {
	i := slices.IndexFunc(s.tools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return Tool{}, false
	}
	return s.tools[i], true
}

// Route returns a path that the surface serves as it is, and "" for any other: one of a fixed set, to name a span or count by.
func (s Surface) Route(path string) string {
	name, rest := strings.CutPrefix(path, "/v1/")
	if _, known := s.operations[name]; path == "/mcp" || rest && known {
		return path
	}
	return ""
}

// operation adapts a method of the service to a tool.
func operation[A, R any](strict bool, do func(*memory.Service, context.Context, memory.Caller, A) (R, error)) func(context.Context, *memory.Service, memory.Caller, arguments) (any, error) {
	return func(ctx context.Context, s *memory.Service, c memory.Caller, a arguments) (any, error) {
		args, err := into[A](a, strict)
		if err != nil {
			return nil, err
		}
		return do(s, ctx, c, args)
	}
}
