package providers

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"

	"github.com/tracesmith/tracesmith/llms"
)

// patchBody adds what the SDK's structs omit: a temperature of 0, empty contents, unknown
// fields of earlier assistant messages, and extra fields.
func (c *OpenAI) patchBody(body map[string]any, r llms.Request) error {
	delete(body, "stream") // false is the default, and some servers refuse the field
	if r.Sampling.Temperature != nil {
		body["temperature"] = *r.Sampling.Temperature
	}
	if r.Sampling.TopP != nil {
		body["top_p"] = *r.Sampling.TopP
	}
	maps.Copy(body, r.Sampling.Extra)
	for _, name := range c.dialect.Drop {
		delete(body, name)
	}
	list, ok := body["messages"].([]any)
	if !ok || len(list) != len(r.Messages) {
		return errors.New("the request body does not contain the messages")
	}
	last := len(r.Messages) - 1 // the last answer of the model
	for last >= 0 && r.Messages[last].Role != "assistant" {
		last--
	}
	for i, m := range r.Messages {
		msg, ok := list[i].(map[string]any)
		if !ok {
			return errors.New("the request body contains a message that is not an object")
		}
		c.dialect.patch(msg, m, i == last)
	}
	return nil
}

// patch sets the content explicitly, and sends the fields that the server sent with this
// message back to it.
func (d Dialect) patch(msg map[string]any, m llms.Message, last bool) {
	msg["content"] = d.content(m)
	if len(m.Raw) == 0 {
		return
	}
	var received map[string]any
	dec := json.NewDecoder(bytes.NewReader(m.Raw))
	dec.UseNumber()
	if dec.Decode(&received) != nil {
		return // the message comes from another provider
	}
	if parts, ok := received["content"].([]any); ok {
		msg["content"] = parts // typed parts may be signed
	}
	d.dropReasoning(received, m, last)
	addMissing(msg, received)
	sent, _ := msg["tool_calls"].([]any)
	got, _ := received["tool_calls"].([]any)
	if len(sent) != len(got) {
		return
	}
	for i := range sent {
		s, ok1 := sent[i].(map[string]any)
		g, ok2 := got[i].(map[string]any)
		if !ok1 || !ok2 {
			continue
		}
		addMissing(s, g)
		if sf, ok := s["function"].(map[string]any); ok {
			if gf, ok := g["function"].(map[string]any); ok {
				addMissing(sf, gf)
			}
		}
	}
}

// addMissing copies the fields of from that to does not have, except nulls.
func addMissing(to, from map[string]any) {
	for name, value := range from {
		if _, has := to[name]; !has && value != nil {
			to[name] = value
		}
	}
}
