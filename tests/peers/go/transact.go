package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

var outcomes = map[string]primitive.LocalTransactionState{
	"commit": primitive.CommitMessageState, "rollback": primitive.RollbackMessageState, "unknown": primitive.UnknowState}

// transaction sends count transactional messages named name-000001… and stays in its group to be asked about them until
// it is stopped.
//
// Options: name, nameserver, topic, group, count, ends (how the local transactions end: commit, rollback or unknown, taken
// in turn), checks (what it answers when it is asked, by the number of the message, in turn).
type transaction struct {
	command
	name string
}

func transact(s *session, c command) (fields, error) {
	t := &transaction{command: c, name: c.text("name", "")}
	client, err := rocketmq.NewTransactionProducer(t, producerOptions(c, t.name)...)
	if err != nil {
		return nil, err
	}
	if err := client.Start(); err != nil {
		return nil, err
	}
	if err := s.opened(t.name, client, client.Shutdown); err != nil {
		return nil, err
	}
	for i := 0; i < c.number("count", 1); i++ {
		message := primitive.NewMessage(c.text("topic", ""), makeBody(fmt.Sprintf("%s-%06d", t.name, i), 0))
		result, err := client.SendMessageInTransaction(context.Background(), message)
		if err != nil {
			return nil, err
		}
		report(fields{"event": "sent", "name": t.name, "body": idOf(message.Body), "status": statusOf(result.SendResult),
			"broker": result.MessageQueue.BrokerName, "queue": result.MessageQueue.QueueId,
			"offset": result.QueueOffset})
	}
	return fields{"sent": c.number("count", 1)}, nil
}

func (t *transaction) ExecuteLocalTransaction(message *primitive.Message) primitive.LocalTransactionState {
	return t.outcome("ends", message.Body)
}

func (t *transaction) CheckLocalTransaction(message *primitive.MessageExt) primitive.LocalTransactionState {
	report(fields{"event": "checked", "name": t.name, "body": idOf(message.Body), "topic": message.Topic,
		"queue": message.Queue.QueueId, "offset": message.QueueOffset,
		"times": textOrNull(message.GetProperty("TRANSACTION_CHECK_TIMES")),
		"at":    time.Now().UnixMilli(), "born": message.BornTimestamp})
	return t.outcome("checks", message.Body)
}

// outcome is what the list of this name says for the number at the end of a message's name.
func (t *transaction) outcome(key string, body []byte) primitive.LocalTransactionState {
	id, said := idOf(body), t.list(key)
	number, err := strconv.Atoi(id[strings.LastIndex(id, "-")+1:])
	if err != nil || len(said) == 0 {
		return primitive.UnknowState
	}
	return outcomes[said[number%len(said)]]
}
