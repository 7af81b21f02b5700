package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
)

// command is a verb and its named options.
type command struct {
	verb    string
	options map[string]string
}

func parse(words []string) (command, error) {
	given := command{words[0], map[string]string{}}
	for _, word := range words[1:] {
		key, value, found := strings.Cut(word, "=")
		if !found || key == "" {
			return given, fmt.Errorf("expected key=value, got: %s", word)
		}
		plain, err := url.PathUnescape(value)
		if err != nil {
			return given, err
		}
		given.options[key] = plain
	}
	return given, nil
}

func (c command) text(key, fallback string) string {
	if value, given := c.options[key]; given {
		return value
	}
	return fallback
}

func (c command) number(key string, fallback int) int {
	value, err := strconv.Atoi(c.text(key, ""))
	if err != nil {
		return fallback
	}
	return value
}

func (c command) flag(key string) bool {
	return c.text(key, "false") == "true"
}

// list is a comma-separated option; an absent or empty one is an empty list.
func (c command) list(key string) []string {
	parts := []string{}
	for _, part := range strings.Split(c.text(key, ""), ",") {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// nameservers are separated by semicolons, as everywhere in RocketMQ.
func (c command) nameservers() []string {
	return strings.Split(c.text("nameserver", ""), ";")
}

type fields map[string]interface{}

var outputLock sync.Mutex

// report writes one JSON object as one line.
func report(line fields) {
	text, err := json.Marshal(line)
	if err != nil {
		text = []byte(fmt.Sprintf(`{"event":"broken","error":%q}`, err.Error()))
	}
	outputLock.Lock()
	defer outputLock.Unlock()
	os.Stdout.Write(append(text, '\n'))
}
