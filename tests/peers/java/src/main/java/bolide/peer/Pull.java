package bolide.peer;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * {@code pull}: reads every queue of a topic with the classic pull consumer and reports each message.
 *
 * <p>Options: name, nameserver, group, topic, tags, batch, commit=true to store the offsets reached, resume=true to start
 * at the stored offsets, block=true to wait at the broker for the next message of each queue instead of stopping at its end.
 * The answer lists, for each queue, the statuses seen.
 */
final class Pull {
    private final Command command;
    private final String name;
    private final List<Map<String, Object>> queues = new ArrayList<>();
    private int total;

    Pull(Command command) {
        this.command = command;
        this.name = command.text("name");
    }

    Map<String, Object> run() throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer(command.text("group"));
        Session.configure(consumer, command, name);
        consumer.start();
        try {
            List<MessageQueue> found = new ArrayList<>(consumer.fetchSubscribeMessageQueues(command.text("topic")));
            Collections.sort(found);
            for (MessageQueue queue : found) {
                readQueue(consumer, queue);
            }
        } finally {
            consumer.shutdown();
        }
        return Output.fields("count", total, "queues", queues);
    }

    private void readQueue(DefaultMQPullConsumer consumer, MessageQueue queue) throws Exception {
        long offset = command.flag("resume") ? Math.max(0, consumer.fetchConsumeOffset(queue, true)) : 0;
        List<String> statuses = new ArrayList<>();
        PullStatus status;
        do {
            PullResult result = pull(consumer, queue, offset);
            status = result.getPullStatus();
            statuses.add(status.name());
            offset = result.getNextBeginOffset();
            if (status == PullStatus.FOUND) {
                total += result.getMsgFoundList().size();
                Consume.report(name, result.getMsgFoundList(), queue);
            }
        } while (goesOn(status));
        if (command.flag("commit")) {
            consumer.updateConsumeOffset(queue, offset);
            consumer.getOffsetStore().persist(queue);
        }
        queues.add(Output.fields("queue", queue.getQueueId(), "broker", queue.getBrokerName(), "next", offset,
            "statuses", statuses));
    }

    private boolean goesOn(PullStatus status) {
        if (command.flag("block")) {
            return status != PullStatus.FOUND;
        }
        return status == PullStatus.FOUND || status == PullStatus.NO_MATCHED_MSG;
    }

    private PullResult pull(DefaultMQPullConsumer consumer, MessageQueue queue, long offset) throws Exception {
        String tags = command.text("tags", "*");
        int batch = command.number("batch", 32);
        return command.flag("block")
            ? consumer.pullBlockIfNotFound(queue, tags, offset, batch)
            : consumer.pull(queue, tags, offset, batch);
    }
}
