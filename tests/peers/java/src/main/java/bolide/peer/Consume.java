package bolide.peer;

import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * {@code consume}: starts a push consumer that reports every message; {@code stop name=…} ends it.
 *
 * <p>Options: name, nameserver, group, topics (list), tags (expression), model=clustering|broadcasting,
 * from=first|last, listener=concurrent|orderly, threads, file (lines {@code queue offset id} go there instead of reports),
 * reconsume (how often a failed message is tried again), strategy and told (list; {@link Strategies}), and what the
 * listener says ({@link Verdict}).
 */
final class Consume {
    /** A consumer that is stopped commits what was reported, so it lets its listeners return first. */
    private static final long STOP_MILLIS = 60_000;

    private final Session session;
    private final Command command;
    private final String name;
    private LineFile file;

    Consume(Session session, Command command) {
        this.session = session;
        this.command = command;
        this.name = command.text("name");
    }

    Map<String, Object> run() throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(command.text("group"));
        Session.configure(consumer, command, name);
        Models.apply(consumer, command.text("model", "clustering"));
        consumer.setConsumeFromWhere(command.text("from", "first").equals("first")
            ? ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET : ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET);
        int threads = command.number("threads", 4);
        consumer.setConsumeThreadMin(threads);
        consumer.setConsumeThreadMax(threads);
        consumer.setMaxReconsumeTimes(command.number("reconsume", -1));
        consumer.setAwaitTerminationMillisWhenShutdown(STOP_MILLIS);
        if (command.has("strategy")) {
            consumer.setAllocateMessageQueueStrategy(
                Strategies.of(command.text("strategy"), command.list("told")));
        }
        for (String topic : command.list("topics")) {
            if (command.has("sql")) {
                consumer.subscribe(topic, MessageSelector.bySql(command.text("sql")));
            } else {
                consumer.subscribe(topic, command.text("tags", "*"));
            }
        }
        if (command.has("file")) {
            file = new LineFile(command.text("file"));
        }
        listen(consumer);
        consumer.start();
        session.opened(name, consumer);
        return Output.fields("client", consumer.buildMQClientId());
    }

    private void listen(DefaultMQPushConsumer consumer) {
        Verdict verdict = new Verdict(command, name);
        if (command.text("listener", "concurrent").equals("orderly")) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                note(messages, context.getMessageQueue());
                return verdict.orderly(messages, context);
            });
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                note(messages, context.getMessageQueue());
                return verdict.concurrent(messages, context);
            });
        }
    }

    private void note(List<MessageExt> messages, MessageQueue queue) {
        if (file == null) {
            report(name, messages, queue);
            return;
        }
        for (MessageExt message : messages) {
            file.line(message.getQueueId(), message.getQueueOffset(), Payload.id(message.getBody()));
        }
    }

    static void report(String name, List<MessageExt> messages, MessageQueue queue) {
        for (MessageExt message : messages) {
            Map<String, Object> fields = Output.fields("event", "message", "name", name, "topic", message.getTopic(),
                "broker", queue == null ? message.getBrokerName() : queue.getBrokerName(),
                "queue", message.getQueueId(), "offset", message.getQueueOffset(),
                "body", Payload.id(message.getBody()), "size", message.getBody().length,
                "intact", Payload.intact(message.getBody()), "tags", message.getTags(), "keys", message.getKeys(),
                "witness", message.getUserProperty("witness"), "tries", message.getReconsumeTimes(),
                "level", message.getDelayTimeLevel(),
                "waited", message.getStoreTimestamp() - message.getBornTimestamp());
            if (message.getProperty(MessageConst.PROPERTY_RETRY_TOPIC) != null) {
                fields.put("id", message.getMsgId());
                fields.put("properties", message.getProperties());
            }
            Output.line(fields);
        }
    }
}
