package main

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/rocketmq-client-go/v2/admin"
)

// administer does one thing with the client's own admin: what=create|delete|topics|groups|queues.
//
// Options: nameserver, broker (address), topic, queues.
func administer(_ *session, c command) (fields, error) {
	client, err := newAdmin(c)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, topic, broker := context.Background(), c.text("topic", ""), c.text("broker", "")
	switch c.text("what", "") {
	case "create":
		queues := c.number("queues", 4)
		return fields{}, client.CreateTopic(ctx, admin.WithTopicCreate(topic), admin.WithBrokerAddrCreate(broker),
			admin.WithReadQueueNums(queues), admin.WithWriteQueueNums(queues))
	case "delete":
		return fields{}, client.DeleteTopic(ctx, admin.WithTopicDelete(topic), admin.WithBrokerAddrDelete(broker))
	case "topics":
		found, err := client.FetchAllTopicList(ctx)
		if err != nil {
			return nil, err
		}
		return fields{"topics": found.TopicList}, nil
	case "groups":
		found, err := client.GetAllSubscriptionGroup(ctx, broker, 5*time.Second)
		if err != nil {
			return nil, err
		}
		groups := []string{}
		for name := range found.SubscriptionGroupTable {
			groups = append(groups, name)
		}
		return fields{"groups": groups}, nil
	case "queues":
		found, err := client.FetchPublishMessageQueues(ctx, topic)
		return fields{"queues": len(found)}, err
	}
	return nil, fmt.Errorf("unknown: what=%s", c.text("what", ""))
}
