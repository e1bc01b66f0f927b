// A bolt in Go: splits lines into words. Each word has the number of its line and its place there.
//
//	go build -o split split.go
//
// A message is a JSON document and a line `end`.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

type message struct {
	ID     string            `json:"id"`
	Task   int               `json:"task"`
	Stream string            `json:"stream"`
	Values []json.RawMessage `json:"tuple"`
	PidDir string            `json:"pidDir"`
}

var input = bufio.NewReaderSize(os.Stdin, 1<<20)
var output = bufio.NewWriterSize(os.Stdout, 1<<20)

func read(into *message) {
	var document []byte
	for {
		line, err := input.ReadBytes('\n')
		if err != nil {
			output.Flush()
			os.Exit(0) // all input has come
		}
		if bytes.Equal(line, []byte("end\n")) {
			break
		}
		document = append(document, line...)
	}
	if err := json.Unmarshal(document, into); err != nil {
		fmt.Fprintln(os.Stderr, err) // the last lines of stderr are in the error that Heron shows
		os.Exit(1)
	}
}

func send(value map[string]any) {
	document, _ := json.Marshal(value)
	output.Write(document)
	output.WriteString("\nend\n")
	if input.Buffered() == 0 { // nothing more to do now
		output.Flush()
	}
}

func main() {
	var setup message
	read(&setup)
	os.WriteFile(filepath.Join(setup.PidDir, fmt.Sprint(os.Getpid())), nil, 0o600)
	send(map[string]any{"pid": os.Getpid()})
	for {
		var tuple message
		read(&tuple)
		if tuple.Stream == "__heartbeat" {
			send(map[string]any{"command": "sync"})
			continue
		}
		var text string
		json.Unmarshal(tuple.Values[0], &text)
		for place, word := range strings.Fields(text) {
			send(map[string]any{
				"command":       "emit",
				"anchors":       []string{tuple.ID},
				"tuple":         []any{word, tuple.Values[1], place},
				"need_task_ids": false,
			})
		}
		send(map[string]any{"command": "ack", "id": tuple.ID})
	}
}
