package main

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// request sends requests one after another and answers with their replies and with the errors of those that got none.
//
// Options: name, nameserver, topic, count, seconds (how long each waits).
func request(_ *session, c command) (fields, error) {
	name := c.text("name", "")
	client, err := rocketmq.NewProducer(producerOptions(c, name)...)
	if err != nil {
		return nil, err
	}
	if err := client.Start(); err != nil {
		return nil, err
	}
	defer client.Shutdown()
	replies, errors := []string{}, []string{}
	for i := 0; i < c.number("count", 1); i++ {
		id := fmt.Sprintf("%s-%06d", name, i)
		wait := time.Duration(c.number("seconds", 30)) * time.Second
		reply, err := client.Request(context.Background(), wait, primitive.NewMessage(c.text("topic", ""), makeBody(id, 0)))
		if err != nil {
			errors = append(errors, err.Error())
			continue
		}
		replies = append(replies, string(reply.Body))
	}
	return fields{"replies": replies, "errors": errors}, nil
}
