package bolide.peer;

import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * {@code load-consume}: a push consumer with default settings reads {@code count} stored messages from the first offset.
 *
 * <p>Time runs from the first message to the last: what a client spends on starting up, the same for every server, is
 * told apart in {@code first_seconds}. Duplicates cannot hide, and the answer says so in {@code exact}: for each queue the sum
 * of the offsets seen must be the sum of 0…n-1; with order=true each must be the one behind the last. With tag or sql, which
 * keep one message in ten of those that {@code load-send} marked, it is the sum of their numbers instead.
 */
final class LoadConsume {
    private static final int QUEUES_MAX = 1024;

    private final Command command;
    private final long wanted;
    private final boolean filtered;
    private final AtomicLong seen = new AtomicLong();
    private final AtomicLong numbers = new AtomicLong();
    private final AtomicLong disorder = new AtomicLong();
    private final AtomicLongArray countOf = new AtomicLongArray(QUEUES_MAX);
    private final AtomicLongArray sumOf = new AtomicLongArray(QUEUES_MAX);
    private final CountDownLatch arrived = new CountDownLatch(1);
    private volatile long firstNanos;
    private volatile long lastNanos;

    LoadConsume(Command command) {
        this.command = command;
        this.wanted = command.number("count", 1_000_000);
        this.filtered = command.has("tag") || command.has("sql");
    }

    Map<String, Object> run() throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(command.text("group"));
        Session.configure(consumer, command, "load-consume");
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeConcurrentlyMaxSpan((int) command.number("span", consumer.getConsumeConcurrentlyMaxSpan()));
        consumer.subscribe(command.text("topic"), selector());
        listen(consumer);
        long start = System.nanoTime();
        consumer.start();
        boolean complete = arrived.await(command.number("seconds", 120), TimeUnit.SECONDS);
        long end = complete ? lastNanos : System.nanoTime();
        consumer.shutdown();
        return Output.fields("received", seen.get(), "complete", complete, "exact", exact(),
            "seconds", (end - firstNanos) / 1e9, "first_seconds", (firstNanos - start) / 1e9,
            "per_second", seen.get() / ((end - firstNanos) / 1e9));
    }

    private MessageSelector selector() {
        return command.has("sql") ? MessageSelector.bySql(command.text("sql")) : MessageSelector.byTag(command.text("tag", "*"));
    }

    private void listen(DefaultMQPushConsumer consumer) {
        if (command.flag("order")) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                messages.forEach(this::countInOrder);
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                messages.forEach(this::count);
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
    }

    private void countInOrder(MessageExt message) {
        if (message.getQueueOffset() != countOf.get(message.getQueueId())) {
            disorder.incrementAndGet();
        }
        count(message);
    }

    private void count(MessageExt message) {
        if (filtered) {
            numbers.addAndGet(Long.parseLong(message.getUserProperty("number")));
        }
        countOf.incrementAndGet(message.getQueueId());
        sumOf.addAndGet(message.getQueueId(), message.getQueueOffset());
        long number = seen.incrementAndGet();
        if (number == 1) {
            firstNanos = System.nanoTime();
        }
        if (number == wanted) {
            lastNanos = System.nanoTime();
            arrived.countDown();
        }
    }

    private boolean exact() {
        if (filtered) {
            return seen.get() == wanted && numbers.get() == LoadSend.MARKS * (wanted * (wanted - 1) / 2);
        }
        for (int i = 0; i < QUEUES_MAX; i++) {
            long count = countOf.get(i);
            if (sumOf.get(i) != count * (count - 1) / 2) {
                return false;
            }
        }
        return seen.get() == wanted && disorder.get() == 0;
    }
}
