package main

import (
	"bytes"
	"strings"
)

// Bodies carry their own identity: "id|filler", the filler derived from the id so that damage shows.

func makeBody(id string, size int) []byte {
	head := []byte(id + "|")
	body := append([]byte{}, head...)
	for i := len(head); i < size; i++ {
		body = append(body, byte('a'+(int(head[i%len(head)])+i)%26))
	}
	return body
}

func idOf(body []byte) string {
	id, _, _ := strings.Cut(string(body), "|")
	return id
}

func intact(body []byte) bool {
	return bytes.Equal(body, makeBody(idOf(body), len(body)))
}
