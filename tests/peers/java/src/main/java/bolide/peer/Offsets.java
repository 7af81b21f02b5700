package bolide.peer;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.store.ReadOffsetType;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * {@code offsets}: what the brokers say about every queue of a topic.
 *
 * <p>Options: nameserver, topic, group. Per queue: min, max, the offset from which the group would go on, the
 * time of the earliest message, and the offset found for the beginning of time.
 */
final class Offsets {
    private final Command command;

    Offsets(Command command) {
        this.command = command;
    }

    Map<String, Object> run() throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer(command.text("group", "offset-readers"));
        Session.configure(consumer, command, "offsets");
        consumer.start();
        try {
            List<MessageQueue> queues = new ArrayList<>(consumer.fetchSubscribeMessageQueues(command.text("topic")));
            Collections.sort(queues);
            List<Map<String, Object>> rows = new ArrayList<>();
            for (MessageQueue queue : queues) {
                rows.add(Output.fields("broker", queue.getBrokerName(), "queue", queue.getQueueId(),
                    "min", consumer.minOffset(queue), "max", consumer.maxOffset(queue),
                    "committed", consumer.getOffsetStore().readOffset(queue, ReadOffsetType.READ_FROM_STORE),
                    "earliest", consumer.earliestMsgStoreTime(queue), "origin", consumer.searchOffset(queue, 1)));
            }
            return Output.fields("queues", rows);
        } finally {
            consumer.shutdown();
        }
    }
}
