package bolide.peer;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * {@code litepull}: polls a topic with the lite pull consumer until {@code count} different messages came or {@code seconds} passed.
 *
 * <p>Options: name, nameserver, group, topic, tags, count, seconds, assign=true to take all queues by hand and seek each of
 * them to offset {@code seek}; otherwise the group shares the queues. Offsets are committed before the consumer leaves. A
 * consumer pulls from the moment that it has its queues, so messages from before the place that it seeks are passed over.
 * A seek interrupts a pull that is under way; when that meets the pull behind it, the client forgets the place: so whoever gets
 * nothing for a while seeks again.
 */
final class LitePull {
    private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(5);

    private final Command command;
    private final String name;

    LitePull(Command command) {
        this.command = command;
        this.name = command.text("name");
    }

    Map<String, Object> run() throws Exception {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(command.text("group"));
        Session.configure(consumer, command, name);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setAutoCommit(false);
        if (!command.flag("assign")) {
            consumer.subscribe(command.text("topic"), command.text("tags", "*"));
        }
        consumer.start();
        try {
            if (command.flag("assign")) {
                assign(consumer);
            }
            return Output.fields("count", poll(consumer));
        } finally {
            consumer.shutdown();
        }
    }

    private void assign(DefaultLitePullConsumer consumer) throws Exception {
        Collection<MessageQueue> queues = consumer.fetchMessageQueues(command.text("topic"));
        consumer.assign(new ArrayList<>(queues));
        seek(consumer, queues);
    }

    private void seek(DefaultLitePullConsumer consumer, Collection<MessageQueue> queues) throws Exception {
        for (MessageQueue queue : queues) {
            consumer.seek(queue, command.number("seek", 0));
        }
    }

    private int poll(DefaultLitePullConsumer consumer) throws Exception {
        int wanted = command.number("count", Integer.MAX_VALUE);
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(command.number("seconds", 180));
        Set<String> seen = new HashSet<>();
        long lastNews = System.nanoTime();
        while (seen.size() < wanted && System.nanoTime() < end) {
            int before = seen.size();
            List<MessageExt> messages = new ArrayList<>(consumer.poll(200));
            messages.removeIf(m -> m.getQueueOffset() < command.number("seek", 0));
            Consume.report(name, messages, null);
            messages.forEach(m -> seen.add(m.getBrokerName() + "/" + m.getQueueId() + "/" + m.getQueueOffset()));
            if (seen.size() > before) {
                lastNews = System.nanoTime();
            } else if (command.flag("assign") && System.nanoTime() - lastNews > PATIENCE_NANOS) {
                seek(consumer, consumer.fetchMessageQueues(command.text("topic")));
                lastNews = System.nanoTime();
            }
        }
        consumer.commitSync();
        return seen.size();
    }
}
