package main

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const (
	replyAttempts = 100
	replyPause    = 100 * time.Millisecond
	leavePause    = 200 * time.Millisecond
)

// consumption is a push consumer that reports every message; "stop name=…" ends it.
//
// Options: name, nameserver, namespace, group, topics (list), tags or sql (expression), model=clustering|broadcasting,
// from=first|last, listener=concurrent|orderly, fails (how many tries of each message fail), level (of delay before the
// next try), reconsume (how often a failed message is tried again), reply=true (answer every request with "re: ID"),
// trace=true.
type consumption struct {
	command
	name    string
	replier rocketmq.Producer
}

func consume(s *session, c command) (fields, error) {
	cs := &consumption{command: c, name: c.text("name", "")}
	client, err := rocketmq.NewPushConsumer(consumerOptions(c, cs.name)...)
	if err != nil {
		return nil, err
	}
	for _, topic := range c.list("topics") {
		if err := client.Subscribe(topic, selector(c), cs.listen); err != nil {
			return nil, err
		}
	}
	if err := cs.startReplier(); err != nil {
		return nil, err
	}
	if err := client.Start(); err != nil {
		return nil, err
	}
	closer := func() error {
		if cs.replier != nil {
			cs.replier.Shutdown()
		}
		return leave(client)
	}
	return fields{}, s.opened(cs.name, client, closer)
}

// leave ends a consumer so that its offsets are kept.
//
// Shutting down sends them one-way and closes the connection, which is reset when something that the broker has just told
// is unread; offsets that the broker has not read by then are lost. So they are sent before, and have time to be read.
func leave(client interface{ Shutdown() error }) error {
	if keeper, ok := client.(interface{ PersistConsumerOffset() error }); ok {
		if err := keeper.PersistConsumerOffset(); err != nil {
			return err
		}
		time.Sleep(leavePause)
	}
	return client.Shutdown()
}

func consumerOptions(c command, name string) []consumer.Option {
	resolver := primitive.NewPassthroughResolver(c.nameservers())
	options := []consumer.Option{
		consumer.WithNsResolver(resolver),
		consumer.WithGroupName(c.text("group", "")),
		consumer.WithInstance(name),
		consumer.WithConsumerOrder(c.text("listener", "concurrent") == "orderly"),
	}
	if c.text("model", "clustering") == "broadcasting" {
		options = append(options, consumer.WithConsumerModel(consumer.BroadCasting))
	}
	if c.text("from", "first") == "first" {
		options = append(options, consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	}
	if reconsume := c.number("reconsume", 0); reconsume > 0 {
		options = append(options, consumer.WithMaxReconsumeTimes(int32(reconsume)))
	}
	if namespace := c.text("namespace", ""); namespace != "" {
		options = append(options, consumer.WithNamespace(namespace))
	}
	if c.flag("trace") {
		options = append(options, consumer.WithTrace(&primitive.TraceConfig{
			GroupName: "traces-" + name, Access: primitive.Local, Resolver: resolver}))
	}
	return options
}

func selector(c command) consumer.MessageSelector {
	if sql := c.text("sql", ""); sql != "" {
		return consumer.MessageSelector{Type: consumer.SQL92, Expression: sql}
	}
	return consumer.MessageSelector{Type: consumer.TAG, Expression: c.text("tags", "*")}
}

func (cs *consumption) startReplier() error {
	if !cs.flag("reply") {
		return nil
	}
	replier, err := rocketmq.NewProducer(
		producer.WithNsResolver(primitive.NewPassthroughResolver(cs.nameservers())),
		producer.WithGroupName("repliers-"+cs.name),
		producer.WithInstanceName("replier-"+cs.name),
	)
	if err != nil {
		return err
	}
	cs.replier = replier
	return replier.Start()
}

func (cs *consumption) listen(ctx context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	broker := ""
	later := consumer.ConsumeRetryLater
	if concurrent, ok := primitive.GetConcurrentlyCtx(ctx); ok {
		broker = concurrent.MQ.BrokerName
		concurrent.DelayLevelWhenNextConsume = cs.number("level", 0)
	}
	if orderly, ok := primitive.GetOrderlyCtx(ctx); ok {
		broker = orderly.MQ.BrokerName
		later = consumer.SuspendCurrentQueueAMoment
	}
	noteMessages(cs.name, broker, messages)
	for _, message := range messages {
		if int(message.ReconsumeTimes) < cs.number("fails", 0) {
			return later, nil
		}
		if cs.replier != nil {
			cs.reply(message)
		}
	}
	return consumer.ConsumeSuccess, nil
}

// reply tries for a while: the broker may not know yet who has asked, as a Go producer introduces itself only when it has
// sent its first request.
func (cs *consumption) reply(message *primitive.MessageExt) {
	reply, err := consumer.CreateReplyMessage(message, nil)
	if err == nil {
		reply.Body = []byte("re: " + idOf(message.Body)) // what the client's own function does not set
		for attempt := 0; attempt < replyAttempts; attempt++ {
			if _, err = cs.replier.SendSync(context.Background(), reply); err == nil {
				return
			}
			time.Sleep(replyPause)
		}
	}
	if err != nil {
		report(fields{"event": "unanswered", "name": cs.name, "body": idOf(message.Body), "error": err.Error()})
	}
}

func noteMessages(name, broker string, messages []*primitive.MessageExt) {
	for _, message := range messages {
		report(fields{"event": "message", "name": name, "topic": message.Topic, "broker": broker,
			"queue": message.Queue.QueueId, "offset": message.QueueOffset, "body": idOf(message.Body),
			"size": len(message.Body), "intact": intact(message.Body), "tags": textOrNull(message.GetTags()),
			"keys": textOrNull(message.GetKeys()), "witness": textOrNull(message.GetProperty("witness")),
			"tries": message.ReconsumeTimes, "properties": message.GetProperties(),
			"level": levelOf(message), "waited": message.StoreTimestamp - message.BornTimestamp})
	}
}

func levelOf(message *primitive.MessageExt) int {
	level, err := strconv.Atoi(message.GetProperty(primitive.PropertyDelayTimeLevel))
	if err != nil {
		return 0
	}
	return level
}

func textOrNull(text string) interface{} {
	if text == "" {
		return nil
	}
	return text
}

// assignment lists the queues that a push consumer holds right now, as topic/broker/queue.
//
// The client shows them only in the running info that it gives to brokers, whose type other modules cannot name.
func assignment(s *session, c command) (fields, error) {
	client := s.client(c.text("name", ""))
	if client == nil {
		return nil, fmt.Errorf("no such consumer: %s", c.text("name", ""))
	}
	info := reflect.ValueOf(client).MethodByName("GetConsumerRunningInfo").Call([]reflect.Value{reflect.ValueOf(false)})
	queues := []string{}
	for _, key := range info[0].Elem().FieldByName("MQTable").MapKeys() {
		queue := key.Interface().(primitive.MessageQueue)
		queues = append(queues, fmt.Sprintf("%s/%s/%d", queue.Topic, queue.BrokerName, queue.QueueId))
	}
	return fields{"queues": queues}, nil
}
