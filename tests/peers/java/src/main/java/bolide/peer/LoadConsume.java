package bolide.peer;

import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * {@code load-consume}: a push consumer with default settings reads {@code count} stored messages from the first offset.
 *
 * <p>Time runs from the first message to the last: what a client spends on starting up, the same for every server, is
 * told apart in {@code first_seconds}. Duplicates cannot hide: for each queue the sum of
 * the offsets seen must be the sum of 0…n-1, and the answer says so in {@code exact}.
 */
final class LoadConsume {
    private static final int QUEUES_MAX = 1024;

    private final Command command;
    private final long wanted;
    private final AtomicLong seen = new AtomicLong();
    private final AtomicLongArray countOf = new AtomicLongArray(QUEUES_MAX);
    private final AtomicLongArray sumOf = new AtomicLongArray(QUEUES_MAX);
    private final CountDownLatch arrived = new CountDownLatch(1);
    private volatile long firstNanos;
    private volatile long lastNanos;

    LoadConsume(Command command) {
        this.command = command;
        this.wanted = command.number("count", 1_000_000);
    }

    Map<String, Object> run() throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(command.text("group"));
        Session.configure(consumer, command, "load-consume");
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(command.text("topic"), "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(this::count);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        long start = System.nanoTime();
        consumer.start();
        boolean complete = arrived.await(command.number("seconds", 120), TimeUnit.SECONDS);
        long end = complete ? lastNanos : System.nanoTime();
        consumer.shutdown();
        return Output.fields("received", seen.get(), "complete", complete, "exact", exact(),
            "seconds", (end - firstNanos) / 1e9, "first_seconds", (firstNanos - start) / 1e9,
            "per_second", seen.get() / ((end - firstNanos) / 1e9));
    }

    private void count(MessageExt message) {
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
        for (int i = 0; i < QUEUES_MAX; i++) {
            long count = countOf.get(i);
            if (sumOf.get(i) != count * (count - 1) / 2) {
                return false;
            }
        }
        return seen.get() == wanted;
    }
}
