package main

import (
	"context"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// pull reads every queue of a topic from its beginning to its end and reports each message.
//
// Options: name, nameserver, group, topic, tags or sql, batch. The answer has the number of messages.
func pull(_ *session, c command) (fields, error) {
	client, err := startPullConsumer(c)
	if err != nil {
		return nil, err
	}
	defer client.Shutdown()
	administrator, err := newAdmin(c)
	if err != nil {
		return nil, err
	}
	defer administrator.Close()
	queues, err := administrator.FetchPublishMessageQueues(context.Background(), c.text("topic", ""))
	if err != nil {
		return nil, err
	}
	total := 0
	for _, queue := range queues {
		count, err := readQueue(client, c, queue)
		if err != nil {
			return nil, err
		}
		total += count
	}
	return fields{"count": total}, nil
}

func startPullConsumer(c command) (rocketmq.PullConsumer, error) {
	client, err := rocketmq.NewPullConsumer(consumerOptions(c, c.text("name", ""))...)
	if err != nil {
		return nil, err
	}
	if err := client.Subscribe(c.text("topic", ""), selector(c)); err != nil {
		return nil, err
	}
	return client, client.Start()
}

func newAdmin(c command) (admin.Admin, error) {
	return admin.NewAdmin(admin.WithResolver(primitive.NewPassthroughResolver(c.nameservers())))
}

func readQueue(client rocketmq.PullConsumer, c command, queue *primitive.MessageQueue) (int, error) {
	count, offset := 0, int64(0)
	for {
		result, err := client.PullFrom(context.Background(), queue, offset, c.number("batch", 32))
		if err != nil {
			return count, err
		}
		if result.Status == primitive.PullFound {
			found := result.GetMessageExts()
			noteMessages(c.text("name", ""), queue.BrokerName, found)
			count += len(found)
		}
		offset = result.NextBeginOffset
		if offset >= result.MaxOffset {
			return count, nil
		}
	}
}

// poll reads with a member of a group until count messages have come, and acknowledges them.
//
// Options: name, nameserver, group, topic, tags, count, seconds.
func poll(_ *session, c command) (fields, error) {
	client, err := startPullConsumer(c)
	if err != nil {
		return nil, err
	}
	defer leave(client)
	ctx, total := context.Background(), 0
	deadline := time.Now().Add(time.Duration(c.number("seconds", 60)) * time.Second)
	for total < c.number("count", 1) && time.Now().Before(deadline) {
		batch, err := client.Poll(ctx, time.Second)
		if consumer.IsNoNewMsgError(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		noteMessages(c.text("name", ""), batch.GetMQ().BrokerName, batch.GetMsgList())
		client.ACK(ctx, batch, consumer.ConsumeSuccess)
		total += len(batch.GetMsgList())
	}
	return fields{"count": total}, nil
}
