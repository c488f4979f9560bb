package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// component is the key that resolve adds to the target of a reference: the last part of the
// reference, for example "Amount".
const component = "x-component"

// parseYAML reads one document and returns its root value.
func parseYAML(source []byte) (*yaml.Node, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(source, &document); err != nil {
		return nil, fmt.Errorf("reading YAML: %w", err)
	}
	if len(document.Content) != 1 {
		return nil, fmt.Errorf("reading YAML: %d documents, want 1", len(document.Content))
	}
	return document.Content[0], nil
}

// place returns the index of a key's value in the content of a mapping, -1 if absent.
func place(node *yaml.Node, key string) int {
	if node != nil && node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == key {
				return i + 1
			}
		}
	}
	return -1
}

// child returns the value of a key, nil if absent.
func child(node *yaml.Node, key string) *yaml.Node {
	if node != nil && node.Kind == yaml.AliasNode {
		return child(node.Alias, key)
	}
	if at := place(node, key); at > 0 {
		return node.Content[at]
	}
	return nil
}

// pairs iterates over the names and values of a mapping, over nothing for any other node.
func pairs(node *yaml.Node) iter.Seq2[string, *yaml.Node] {
	return func(yield func(string, *yaml.Node) bool) {
		if node == nil || node.Kind != yaml.MappingNode {
			return
		}
		for pair := range slices.Chunk(node.Content, 2) {
			if !yield(pair[0].Value, pair[1]) {
				return
			}
		}
	}
}

// lookup follows a local reference such as #/components/schemas/Amount.
func lookup(root *yaml.Node, reference string) (*yaml.Node, error) {
	keys, ok := strings.CutPrefix(reference, "#/")
	if !ok {
		return nil, fmt.Errorf("following %q: not a local reference", reference)
	}
	node := root
	for part := range strings.SplitSeq(keys, "/") {
		if node = child(node, part); node == nil {
			return nil, fmt.Errorf("following %q: nothing at %q", reference, part)
		}
	}
	return node, nil
}

// resolve copies a tree and replaces every alias and reference by its target. The copy of a
// reference's target gets the reference's name, and keys beside the reference replace the
// target's own, which OpenAPI 3.1 uses for another description. The document has no cycles,
// so this terminates.
func resolve(root, node *yaml.Node) (*yaml.Node, error) {
	if node.Kind == yaml.AliasNode {
		return resolve(root, node.Alias)
	}
	if reference := child(node, "$ref"); reference != nil {
		target, err := lookup(root, reference.Value)
		if err != nil {
			return nil, err
		}
		resolved, err := resolve(root, target)
		if err != nil || resolved.Kind != yaml.MappingNode {
			return resolved, err
		}
		if child(resolved, component) == nil {
			setChild(resolved, component, text(path.Base(reference.Value)))
		}
		for key, value := range pairs(node) {
			if key != "$ref" {
				setChild(resolved, key, value)
			}
		}
		return resolved, nil
	}
	copied := *node
	copied.Anchor, copied.Content = "", make([]*yaml.Node, len(node.Content))
	for i, inner := range node.Content {
		var err error
		if copied.Content[i], err = resolve(root, inner); err != nil {
			return nil, err
		}
	}
	return &copied, nil
}

// setChild sets a key of a mapping.
func setChild(node *yaml.Node, key string, value *yaml.Node) {
	if at := place(node, key); at > 0 {
		node.Content[at] = value
		return
	}
	node.Content = append(node.Content, text(key), value)
}

// text returns a string node.
func text(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
}

// toJSON encodes a tree as JSON in the order of its source, indented by two.
func toJSON(node *yaml.Node) ([]byte, error) {
	compact, err := compactJSON(node)
	if err != nil {
		return nil, err
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, []byte(compact), "", "  "); err != nil {
		return nil, fmt.Errorf("indenting JSON: %w", err)
	}
	return indented.Bytes(), nil
}

func compactJSON(node *yaml.Node) (string, error) {
	var parts []string
	switch node.Kind {
	case yaml.AliasNode:
		return compactJSON(node.Alias)
	case yaml.MappingNode:
		for key, value := range pairs(node) {
			if key == component {
				continue
			}
			name, err := valueJSON(key)
			if err != nil {
				return "", err
			}
			part, err := compactJSON(value)
			if err != nil {
				return "", err
			}
			parts = append(parts, name+":"+part)
		}
		return "{" + strings.Join(parts, ",") + "}", nil
	case yaml.SequenceNode:
		for _, item := range node.Content {
			part, err := compactJSON(item)
			if err != nil {
				return "", err
			}
			parts = append(parts, part)
		}
		return "[" + strings.Join(parts, ",") + "]", nil
	case yaml.DocumentNode, yaml.ScalarNode:
	}
	if node.Tag == "!!str" || node.Tag == "!!timestamp" {
		return valueJSON(node.Value)
	}
	var value any
	if err := node.Decode(&value); err != nil {
		return "", fmt.Errorf("reading line %d: %w", node.Line, err)
	}
	return valueJSON(value)
}

// valueJSON does not escape <, > and &: the JSON is used in files or in escaped HTML, never
// in a script.
func valueJSON(value any) (string, error) {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "", fmt.Errorf("writing JSON: %w", err)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}
