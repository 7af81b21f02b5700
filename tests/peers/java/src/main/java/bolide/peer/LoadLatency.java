package bolide.peer;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * {@code load-latency}: how long after its due time a message reaches the listener, at a fixed rate.
 *
 * <p>Every message carries the time at which the schedule wanted it sent, sending never waits for an answer, and a late
 * schedule is not forgiven: a stall of the server shows in every message that it delayed, not only in one. Options:
 * nameserver, topic, group, queues, rate, seconds, warm (seconds that are sent but not counted), size; level or timer with
 * later: delayed by that level, or by a time of its own, of so many milliseconds, behind which it is late.
 */
final class LoadLatency {
    private static final long SPIN_NANOS = 150_000;

    private final Command command;
    private final int size;
    private final DefaultMQProducer producer = new DefaultMQProducer("load-latency");
    private final Latencies latencies = new Latencies();
    private final AtomicLong received = new AtomicLong();
    private final AtomicLong failed = new AtomicLong();
    private final AtomicLong early = new AtomicLong();
    private final AtomicLong soon = new AtomicLong();
    private final int level;
    private final long laterMillis;
    private volatile long countFrom = Long.MAX_VALUE;

    LoadLatency(Command command) {
        this.command = command;
        this.size = command.number("size", 128);
        this.level = command.number("level", 0);
        this.laterMillis = command.number("later", 0);
    }

    Map<String, Object> run() throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(command.text("group"));
        Session.configure(consumer, command, "load-latency-listener");
        consumer.subscribe(command.text("topic"), "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(this::arrived);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        Session.configure(producer, command, "load-latency-sender");
        producer.start();
        consumer.start();
        try {
            awaitQueues(consumer);
            awaitListener();
            long expected = sendOnSchedule();
            awaitArrival(expected);
            Map<String, Object> fields = latencies.summary();
            fields.put("expected", expected);
            fields.put("received", received.get());
            fields.put("failed", failed.get());
            fields.put("too_soon", soon.get());
            return fields;
        } finally {
            consumer.shutdown();
            producer.shutdown();
        }
    }

    private void awaitQueues(DefaultMQPushConsumer consumer) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        int queues = command.number("queues", 4);
        while (held(consumer) < queues && System.nanoTime() < end) {
            TimeUnit.MILLISECONDS.sleep(20);
        }
    }

    private long held(DefaultMQPushConsumer consumer) {
        return consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet().stream()
            .filter(queue -> queue.getTopic().equals(command.text("topic"))).count();
    }

    /**
     * Sends a message to every queue and waits until they have arrived. A client that holds its queues may still wait for half
     * a minute: its pulls are refused until the broker knows its subscription, which comes with a heartbeat.
     */
    private void awaitListener() throws Exception {
        List<MessageQueue> queues = producer.fetchPublishMessageQueues(command.text("topic"));
        for (MessageQueue queue : queues) {
            producer.send(new Message(command.text("topic"), new byte[size]), queue);
        }
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(90);
        while (early.get() < queues.size() && System.nanoTime() < end) {
            TimeUnit.MILLISECONDS.sleep(20);
        }
    }

    private long sendOnSchedule() throws Exception {
        int rate = command.number("rate", 100);
        long warm = (long) rate * command.number("warm", 3);
        long total = warm + (long) rate * command.number("seconds", 10);
        long step = TimeUnit.SECONDS.toNanos(1) / rate;
        long start = System.nanoTime() + step;
        countFrom = start + warm * step;
        for (long i = 0; i < total; i++) {
            long due = start + i * step;
            waitUntil(due);
            send(due);
        }
        return total - warm;
    }

    private void send(long due) throws Exception {
        byte[] body = ByteBuffer.allocate(size).putLong(due).array();
        Message message = new Message(command.text("topic"), body);
        if (level > 0) {
            message.setDelayTimeLevel(level);
        } else if (laterMillis > 0) {
            MessageAccessor.putProperty(message, "TIMER_DELAY_MS", Long.toString(laterMillis));
        }
        producer.send(message, new SendCallback() {
            @Override
            public void onSuccess(SendResult result) {
            }

            @Override
            public void onException(Throwable problem) {
                failed.incrementAndGet();
            }
        });
    }

    private static void waitUntil(long due) {
        for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
            if (left > SPIN_NANOS) {
                LockSupport.parkNanos(left - SPIN_NANOS);
            } else {
                Thread.onSpinWait();
            }
        }
    }

    private void arrived(MessageExt message) {
        long now = System.nanoTime();
        long due = ByteBuffer.wrap(message.getBody()).getLong();
        if (due >= countFrom) {
            long late = now - due - TimeUnit.MILLISECONDS.toNanos(laterMillis);
            if (late < 0) {
                soon.incrementAndGet();
            }
            latencies.add(Math.max(0, late));
            received.incrementAndGet();
        } else {
            early.incrementAndGet();
        }
    }

    private void awaitArrival(long expected) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(10) + TimeUnit.MILLISECONDS.toNanos(laterMillis);
        while (received.get() < expected && System.nanoTime() < end) {
            TimeUnit.MILLISECONDS.sleep(10);
        }
    }
}
