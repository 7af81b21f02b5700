package bolide.peer;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;

/**
 * {@code produce}: sends {@code count} messages named {@code prefix-000001…} in one of five modes and reports each one.
 *
 * <p>Options: name, nameserver, topic, prefix, mode=sync|async|oneway|batch|ordered, count, threads, rate (per second, 0 is
 * unlimited), batch, orders (ordered mode: message i belongs to order i mod orders), size, tags (list, taken in turn),
 * levels (delay levels, taken in turn), keys=true, retries, trace=true, namespace, compression=ZLIB|LZ4|ZSTD.
 */
final class Produce {
    private static final int ASYNC_WINDOW = 256;

    private final Session session;
    private final Command command;
    private final String name;
    private final String topic;
    private final String prefix;
    private final List<String> tags;
    private final List<String> levels;
    private final int size;
    private final DefaultMQProducer producer;
    private final AtomicInteger next = new AtomicInteger();
    private final AtomicInteger acknowledged = new AtomicInteger();
    private final AtomicInteger failed = new AtomicInteger();
    private final Semaphore window = new Semaphore(ASYNC_WINDOW);
    private final long startNanos = System.nanoTime();
    private volatile boolean stopped;

    Produce(Session session, Command command) {
        this.session = session;
        this.command = command;
        this.name = command.text("name");
        this.topic = command.text("topic");
        this.prefix = command.text("prefix", name);
        this.tags = command.list("tags");
        this.levels = command.list("levels");
        this.size = command.number("size", 0);
        this.producer = new DefaultMQProducer(
            command.text("group", "producers-" + name), command.flag("trace"), null);
    }

    Map<String, Object> run() throws Exception {
        Session.configure(producer, command, name);
        int retries = command.number("retries", 2);
        producer.setRetryTimesWhenSendFailed(retries);
        producer.setRetryTimesWhenSendAsyncFailed(retries);
        producer.setSendMsgTimeout(command.number("timeout", 60_000));
        if (command.has("compression")) {
            compressBy(command.text("compression"));
        }
        producer.start();
        session.opened(name, () -> stopped = true);
        try {
            sendAll(command.number("threads", 1));
            window.acquire(ASYNC_WINDOW);
        } finally {
            session.ended(name);
            producer.shutdown();
        }
        return Output.fields("sent", acknowledged.get(), "failed", failed.get());
    }

    /** Clients of 4.x know one kind and have no such setting. */
    private void compressBy(String kind) throws ReflectiveOperationException {
        Class<?> type = Class.forName("org.apache.rocketmq.common.compression.CompressionType");
        Object chosen = type.getMethod("of", String.class).invoke(null, kind);
        producer.getClass().getMethod("setCompressType", type).invoke(producer, chosen);
    }

    private void sendAll(int threads) throws InterruptedException {
        CountDownLatch ended = new CountDownLatch(threads);
        for (int i = 0; i < threads; i++) {
            new Thread(() -> {
                try {
                    sendUntilDone();
                } catch (InterruptedException interrupted) {
                    Thread.currentThread().interrupt();
                } finally {
                    ended.countDown();
                }
            }, name + "-" + i).start();
        }
        ended.await();
    }

    private void sendUntilDone() throws InterruptedException {
        int count = command.number("count", Integer.MAX_VALUE);
        int step = command.text("mode", "sync").equals("batch") ? command.number("batch", 32) : 1;
        while (!stopped) {
            int first = next.getAndAdd(step);
            if (first >= count) {
                return;
            }
            pace(first);
            List<Message> messages = new ArrayList<>();
            for (int i = first; i < Math.min(first + step, count); i++) {
                messages.add(message(i));
            }
            try {
                send(first, messages);
            } catch (InterruptedException interrupted) {
                throw interrupted;
            } catch (Exception problem) {
                failed(messages, problem);
            }
        }
    }

    private void pace(int number) throws InterruptedException {
        int rate = command.number("rate", 0);
        if (rate > 0) {
            long due = startNanos + TimeUnit.SECONDS.toNanos(1) * number / rate;
            long wait = due - System.nanoTime();
            if (wait > 0) {
                TimeUnit.NANOSECONDS.sleep(wait);
            }
        }
    }

    private Message message(int number) {
        String id = String.format("%s-%06d", prefix, number);
        Message message = new Message(topic, Payload.make(id, size));
        if (!tags.isEmpty()) {
            message.setTags(tags.get(number % tags.size()));
        }
        if (!levels.isEmpty()) {
            message.setDelayTimeLevel(Integer.parseInt(levels.get(number % levels.size())));
        }
        if (command.flag("keys")) {
            message.setKeys("key-" + id);
        }
        message.putUserProperty("witness", name);
        return message;
    }

    private void send(int number, List<Message> messages) throws Exception {
        Message message = messages.get(0);
        switch (command.text("mode", "sync")) {
            case "sync":
                acknowledged(messages, producer.send(message));
                break;
            case "async":
                window.acquire();
                sendAsync(messages);
                break;
            case "oneway":
                producer.sendOneway(message);
                acknowledged.incrementAndGet();
                break;
            case "batch":
                acknowledged(messages, producer.send(messages));
                break;
            case "ordered":
                int order = number % command.number("orders", 1);
                acknowledged(messages, producer.send(message, (queues, sent, key) ->
                    queues.get((Integer) key % queues.size()), order));
                break;
            default:
                throw new IllegalArgumentException("unknown mode: " + command.text("mode"));
        }
    }

    private void sendAsync(List<Message> messages) throws Exception {
        try {
            producer.send(messages.get(0), new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    acknowledged(messages, result);
                    window.release();
                }

                @Override
                public void onException(Throwable problem) {
                    failed(messages, problem);
                    window.release();
                }
            });
        } catch (Exception problem) {
            window.release();
            throw problem;
        }
    }

    private void acknowledged(List<Message> messages, SendResult result) {
        for (int i = 0; i < messages.size(); i++) {
            acknowledged.incrementAndGet();
            Output.line(Output.fields("event", "sent", "name", name, "body", Payload.id(messages.get(i).getBody()),
                "status", result.getSendStatus(), "broker", result.getMessageQueue().getBrokerName(),
                "queue", result.getMessageQueue().getQueueId(), "offset", result.getQueueOffset() + i));
        }
    }

    private void failed(List<Message> messages, Throwable problem) {
        for (Message message : messages) {
            failed.incrementAndGet();
            Output.line(Output.fields("event", "failed", "name", name, "body", Payload.id(message.getBody()),
                "error", problem.toString()));
        }
    }
}
