package api

// schema is a JSON Schema, as far as the tools' arguments need one.
type schema struct {
	Type                 any               `json:"type,omitempty"`
	Description          string            `json:"description,omitempty"`
	Properties           map[string]schema `json:"properties,omitempty"`
	Required             []string          `json:"required,omitempty"`
	Items                *schema           `json:"items,omitempty"`
	Enum                 []string          `json:"enum,omitempty"`
	Minimum              *float64          `json:"minimum,omitempty"`
	Maximum              *float64          `json:"maximum,omitempty"`
	MaxLength            int               `json:"maxLength,omitempty"`
	MaxItems             int               `json:"maxItems,omitempty"`
	Format               string            `json:"format,omitempty"`
	AdditionalProperties *schema           `json:"additionalProperties,omitempty"`
}

func object(required []string, properties map[string]schema) schema {
	return schema{Type: "object", Properties: properties, Required: required}
}

func text(description string) schema  { return schema{Type: "string", Description: description} }
func whole(description string) schema { return schema{Type: "integer", Description: description} }

func moment(description string) schema {
	return schema{Type: "string", Format: "date-time", Description: description}
}

func choice(description string, values ...string) schema {
	return schema{Type: "string", Enum: values, Description: description}
}

func texts(description string) schema {
	return schema{Type: "array", Items: &schema{Type: "string"}, Description: description}
}

func fraction(description string) schema {
	zero, one := 0.0, 1.0
	return schema{Type: "number", Minimum: &zero, Maximum: &one, Description: description}
}

func scalar(description string) schema {
	return schema{Type: []string{"string", "number", "boolean"}, Description: description}
}

func refs(description string) schema {
	const most = 16
	item := object([]string{"predicate", "value"}, map[string]schema{
		"predicate": text("under which predicate it is believed"), "value": scalar("what is believed"),
	})
	return schema{Type: "array", MaxItems: most, Items: &item, Description: description}
}

// with returns the properties of both.
func with(a, b map[string]schema) map[string]schema {
	out := make(map[string]schema, len(a)+len(b))
	for _, m := range []map[string]schema{a, b} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}
