package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const asyncWindow = 256

// production sends count messages named prefix-000001… in one of five modes and reports each one.
//
// Options: name, nameserver, namespace, group, topic, prefix, mode=sync|async|oneway|batch|ordered, count, rate (per
// second, 0 is unlimited), batch, orders (ordered mode: message i belongs to order i mod orders), size, tags (list, taken
// in turn), levels (of delay, taken in turn), keys=true, trace=true, retries.
type production struct {
	command
	name, topic, prefix string
	tags                []string
	client              rocketmq.Producer
	acknowledged        int64
	failures            int64
	window              chan struct{}
	pending             sync.WaitGroup
	stopped             int32
}

func produce(s *session, c command) (fields, error) {
	p := &production{command: c, name: c.text("name", ""), topic: c.text("topic", ""), tags: c.list("tags")}
	p.prefix = c.text("prefix", p.name)
	p.window = make(chan struct{}, asyncWindow)
	client, err := rocketmq.NewProducer(producerOptions(c, p.name)...)
	if err != nil {
		return nil, err
	}
	p.client = client
	if err := client.Start(); err != nil {
		return nil, err
	}
	if err := s.opened(p.name, client, func() error { atomic.StoreInt32(&p.stopped, 1); return nil }); err != nil {
		client.Shutdown()
		return nil, err
	}
	p.sendAll()
	p.pending.Wait()
	s.ended(p.name)
	if err := p.leave(s); err != nil {
		return nil, err
	}
	return fields{"sent": atomic.LoadInt64(&p.acknowledged), "failed": atomic.LoadInt64(&p.failures)}, nil
}

// leave shuts the producer down; one that has sent one-way stays until it is stopped.
//
// Shutting down resets the connection when an answer of the broker is still unread, and what the broker has not read by
// then is lost with it.
func (p *production) leave(s *session) error {
	if p.text("mode", "sync") == "oneway" {
		return s.opened(p.name, p.client, p.client.Shutdown)
	}
	return p.client.Shutdown()
}

// producerOptions are settings that every producer takes; each is an instance of its own, with its own connections.
func producerOptions(c command, name string) []producer.Option {
	resolver := primitive.NewPassthroughResolver(c.nameservers())
	options := []producer.Option{
		producer.WithNsResolver(resolver),
		producer.WithGroupName(c.text("group", "producers-"+name)),
		producer.WithInstanceName(name),
		producer.WithRetry(c.number("retries", 2)),
		producer.WithQueueSelector(queueSelector(c)),
	}
	if namespace := c.text("namespace", ""); namespace != "" {
		options = append(options, producer.WithNamespace(namespace))
	}
	if c.flag("trace") {
		options = append(options, producer.WithTrace(&primitive.TraceConfig{
			GroupName: "traces-" + name, Access: primitive.Local, Resolver: resolver}))
	}
	return options
}

func queueSelector(c command) producer.QueueSelector {
	if c.text("mode", "sync") == "ordered" {
		return producer.NewHashQueueSelector()
	}
	return producer.NewRoundRobinQueueSelector()
}

func (p *production) sendAll() {
	count, step := p.number("count", 1<<31-1), 1
	if p.text("mode", "sync") == "batch" {
		step = p.number("batch", 32)
	}
	started := time.Now()
	for first := 0; first < count && atomic.LoadInt32(&p.stopped) == 0; first += step {
		if rate := p.number("rate", 0); rate > 0 {
			time.Sleep(time.Until(started.Add(time.Duration(first) * time.Second / time.Duration(rate))))
		}
		messages := []*primitive.Message{}
		for i := first; i < first+step && i < count; i++ {
			messages = append(messages, p.message(i))
		}
		p.send(messages)
	}
}

func (p *production) message(number int) *primitive.Message {
	id := fmt.Sprintf("%s-%06d", p.prefix, number)
	message := primitive.NewMessage(p.topic, makeBody(id, p.number("size", 0)))
	if len(p.tags) > 0 {
		message.WithTag(p.tags[number%len(p.tags)])
	}
	if p.flag("keys") {
		message.WithKeys([]string{"key-" + id})
	}
	if levels := p.list("levels"); len(levels) > 0 {
		message.WithProperty(primitive.PropertyDelayTimeLevel, levels[number%len(levels)])
	}
	if p.text("mode", "sync") == "ordered" {
		message.WithShardingKey(strconv.Itoa(number % p.number("orders", 1)))
	}
	message.WithProperty("witness", p.name)
	return message
}

func (p *production) send(messages []*primitive.Message) {
	ctx := context.Background()
	switch p.text("mode", "sync") {
	case "async":
		p.sendAsync(ctx, messages)
	case "oneway":
		if err := p.client.SendOneWay(ctx, messages...); err != nil {
			p.failed(messages, err)
			return
		}
		atomic.AddInt64(&p.acknowledged, int64(len(messages)))
	default:
		result, err := p.client.SendSync(ctx, messages...)
		p.settled(messages, result, err)
	}
}

func (p *production) sendAsync(ctx context.Context, messages []*primitive.Message) {
	p.window <- struct{}{}
	p.pending.Add(1)
	var once sync.Once // the client calls back twice where it could not send
	settle := func(_ context.Context, result *primitive.SendResult, err error) {
		once.Do(func() {
			p.settled(messages, result, err)
			<-p.window
			p.pending.Done()
		})
	}
	if err := p.client.SendAsync(ctx, settle, messages...); err != nil {
		settle(ctx, nil, err)
	}
}

func (p *production) settled(messages []*primitive.Message, result *primitive.SendResult, err error) {
	if err != nil {
		p.failed(messages, err)
		return
	}
	for i, message := range messages {
		atomic.AddInt64(&p.acknowledged, 1)
		report(fields{"event": "sent", "name": p.name, "body": idOf(message.Body), "status": statusOf(result),
			"broker": result.MessageQueue.BrokerName, "queue": result.MessageQueue.QueueId,
			"offset": result.QueueOffset + int64(i), "msgId": result.MsgID})
	}
}

func statusOf(result *primitive.SendResult) string {
	names := map[primitive.SendStatus]string{primitive.SendOK: "SEND_OK",
		primitive.SendFlushDiskTimeout: "FLUSH_DISK_TIMEOUT", primitive.SendFlushSlaveTimeout: "FLUSH_SLAVE_TIMEOUT",
		primitive.SendSlaveNotAvailable: "SLAVE_NOT_AVAILABLE"}
	if name, known := names[result.Status]; known {
		return name
	}
	return "UNKNOWN"
}

func (p *production) failed(messages []*primitive.Message, err error) {
	for _, message := range messages {
		atomic.AddInt64(&p.failures, 1)
		report(fields{"event": "failed", "name": p.name, "body": idOf(message.Body), "error": err.Error()})
	}
}
