package bolide.peer;

import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * {@code transact}: sends {@code count} transactional messages named {@code prefix-000001…}, and stays in its group to be
 * asked about them until it is stopped.
 *
 * <p>Options: name, nameserver, topic, group, prefix, count, size, ends (how the local transactions end: commit, rollback
 * or unknown, taken in turn), checks (what it answers when it is asked, by the number of the message, in turn), pause
 * (milliseconds that a local transaction takes), immunity (seconds, as a property of the messages).
 */
final class Transact implements TransactionListener {
    private final Session session;
    private final Command command;
    private final String name;
    private final String topic;
    private final String prefix;
    private final List<String> ends;
    private final List<String> checks;
    private final TransactionMQProducer producer;

    Transact(Session session, Command command) {
        this.session = session;
        this.command = command;
        this.name = command.text("name");
        this.topic = command.text("topic");
        this.prefix = command.text("prefix", name);
        this.ends = command.list("ends");
        this.checks = command.list("checks");
        this.producer = new TransactionMQProducer(command.text("group"));
    }

    Map<String, Object> run() throws Exception {
        Session.configure(producer, command, name);
        producer.setTransactionListener(this);
        producer.setSendMsgTimeout(command.number("timeout", 60_000));
        producer.setHeartbeatBrokerInterval(1_000);
        producer.start();
        session.opened(name, producer::shutdown);
        int count = command.number("count", 0);
        if (count == 0) {
            producer.getDefaultMQProducerImpl().getmQClientFactory().updateTopicRouteInfoFromNameServer(topic);
            producer.getDefaultMQProducerImpl().getmQClientFactory().sendHeartbeatToAllBrokerWithLock();
        }
        for (int number = 0; number < count; number++) {
            TransactionSendResult result = producer.sendMessageInTransaction(message(number), number);
            Output.line(Output.fields("event", "sent", "name", name, "body", id(number),
                "status", result.getSendStatus(), "broker", result.getMessageQueue().getBrokerName(),
                "queue", result.getMessageQueue().getQueueId(), "offset", result.getQueueOffset()));
        }
        return Output.fields("sent", count);
    }

    @Override
    public LocalTransactionState executeLocalTransaction(Message message, Object number) {
        try {
            Thread.sleep(command.number("pause", 0));
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        return state(ends.get((Integer) number % ends.size()));
    }

    @Override
    public LocalTransactionState checkLocalTransaction(MessageExt message) {
        String id = Payload.id(message.getBody());
        int number = Integer.parseInt(id.substring(id.lastIndexOf('-') + 1));
        Output.line(Output.fields("event", "checked", "name", name, "body", id, "topic", message.getTopic(),
            "queue", message.getQueueId(), "offset", message.getQueueOffset(),
            "times", message.getUserProperty(MessageConst.PROPERTY_TRANSACTION_CHECK_TIMES),
            "at", System.currentTimeMillis(), "born", message.getBornTimestamp()));
        return state(checks.get(number % checks.size()));
    }

    private Message message(int number) {
        Message message = new Message(topic, Payload.make(id(number), command.number("size", 0)));
        message.setKeys("key-" + id(number));
        if (command.has("immunity")) {
            message.putUserProperty(MessageConst.PROPERTY_CHECK_IMMUNITY_TIME_IN_SECONDS, command.text("immunity"));
        }
        return message;
    }

    private String id(int number) {
        return String.format("%s-%06d", prefix, number);
    }

    private static LocalTransactionState state(String word) {
        switch (word) {
            case "commit":
                return LocalTransactionState.COMMIT_MESSAGE;
            case "rollback":
                return LocalTransactionState.ROLLBACK_MESSAGE;
            case "unknown":
                return LocalTransactionState.UNKNOW;
            default:
                throw new IllegalArgumentException("a transaction does not end with " + word);
        }
    }
}
