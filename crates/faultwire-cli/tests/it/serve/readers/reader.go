// Reads lines as a server in Go would, and prints what it sees in each.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

type message struct {
	ID     *json.RawMessage `json:"id"`
	Method *string          `json:"method"`
	Params struct {
		Name      *string `json:"name"`
		Arguments *struct {
			X any `json:"x"`
		} `json:"arguments"`
	} `json:"params"`
}

func see(raw []byte) []any {
	var m message
	if err := json.Unmarshal(raw, &m); err != nil || m.Method == nil {
		return nil
	}
	var id any
	if m.ID != nil {
		d := json.NewDecoder(bytes.NewReader(*m.ID))
		d.Decode(&id)
	}
	var arguments any
	if m.Params.Arguments != nil {
		arguments = map[string]any{"x": m.Params.Arguments.X}
	}
	return []any{*m.Method, m.Params.Name, id, arguments}
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			seen := []any{}
			var list []json.RawMessage
			if json.Unmarshal(line, &list) == nil {
				for _, raw := range list {
					if s := see(raw); s != nil {
						seen = append(seen, s)
					}
				}
			} else if s := see(line); s != nil {
				seen = append(seen, s)
			}
			text, _ := json.Marshal(seen)
			fmt.Fprintln(out, string(text))
		}
		if err != nil {
			return
		}
	}
}
