package bolide.peer;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * {@code load-send}: sends as fast as it can and answers throughput and latencies.
 *
 * <p>Options: nameserver, topic, mode=sync|async|batch|transaction, threads, inflight (async), batch, size, keys=true for a key
 * that counts, marked=true for what {@code load-consume} can filter by, level (of delay), later (milliseconds until delivery),
 * warm (so many seconds at first are in no latency and in no rate; their end is the event {@code warm}), and an end: seconds
 * behind that, count, or {@code stop} with the name that was given as name.
 * A batch counts as its messages; its latency is that of the whole call, whether it failed or not. Only SEND_OK counts as sent.
 */
final class LoadSend {
    /** One message in so many has a given tag, and a given value of its property {@code mark}. */
    static final int MARKS = 10;

    private final Session session;
    private final Command command;
    private final String name;
    private final String topic;
    private final int batch;
    private final byte[] body;
    private final boolean keys;
    private final boolean transactional;
    private final boolean marked;
    private final int level;
    private final long laterMillis;
    private final TransactionMQProducer producer = new TransactionMQProducer("load-send");
    private final AtomicLong claimed = new AtomicLong();
    private final AtomicLong sent = new AtomicLong();
    private final AtomicLong failed = new AtomicLong();
    private final Semaphore window;
    private final int windowSize;
    private volatile Latencies latencies = new Latencies();
    private volatile boolean stopped;
    private volatile String firstError = "";
    private long countedFrom;
    private long sentBefore;

    LoadSend(Session session, Command command) {
        this.session = session;
        this.command = command;
        this.name = command.text("name", "load-send-" + System.nanoTime());
        this.topic = command.text("topic");
        this.batch = command.text("mode").equals("batch") ? command.number("batch", 32) : 1;
        this.body = new byte[command.number("size", 128)];
        this.keys = command.flag("keys");
        this.transactional = command.text("mode").equals("transaction");
        this.marked = command.flag("marked");
        this.level = command.number("level", 0);
        this.laterMillis = command.number("later", 0);
        this.windowSize = command.number("inflight", 1024);
        this.window = new Semaphore(windowSize);
    }

    Map<String, Object> run() throws Exception {
        Session.configure(producer, command, "load-send");
        producer.setSendMsgTimeout(command.number("timeout", 10_000));
        producer.setTransactionListener(new CommitAll());
        producer.start();
        session.opened(name, () -> stopped = true);
        try {
            countedFrom = System.nanoTime();
            runThreads(command.number("threads", 1));
            window.acquire(windowSize);
            return answer(System.nanoTime() - countedFrom);
        } finally {
            session.ended(name);
            producer.shutdown();
        }
    }

    private Map<String, Object> answer(long nanos) {
        Map<String, Object> fields = latencies.summary();
        fields.put("sent", sent.get());
        fields.put("failed", failed.get());
        fields.put("error", firstError);
        fields.put("seconds", nanos / 1e9);
        fields.put("per_second", (sent.get() - sentBefore) / (nanos / 1e9));
        return fields;
    }

    private void runThreads(int threads) throws InterruptedException {
        long seconds = command.number("seconds", 0);
        long warm = command.number("warm", 0);
        long end = seconds == 0 ? Long.MAX_VALUE : System.nanoTime() + TimeUnit.SECONDS.toNanos(warm + seconds);
        CountDownLatch ended = new CountDownLatch(threads);
        for (int i = 0; i < threads; i++) {
            new Thread(() -> {
                try {
                    sendUntil(end);
                } finally {
                    ended.countDown();
                }
            }, "load-" + i).start();
        }
        if (warm > 0 && !ended.await(warm, TimeUnit.SECONDS)) {
            beginToCount();
        }
        ended.await();
    }

    /** A send that is on its way now still counts as warm-up. */
    private void beginToCount() {
        sentBefore = sent.get();
        countedFrom = System.nanoTime();
        latencies = new Latencies();
        Output.line(Output.fields("event", "warm", "name", name));
    }

    private void sendUntil(long end) {
        long count = command.number("count", Integer.MAX_VALUE);
        boolean async = command.text("mode").equals("async");
        while (!stopped && System.nanoTime() < end) {
            long first = claimed.getAndAdd(batch);
            if (first >= count) {
                return;
            }
            try {
                if (async) {
                    sendAsync(first);
                } else {
                    sendSync(first, (int) Math.min(batch, count - first));
                }
            } catch (Exception problem) {
                failed(problem);
            }
        }
    }

    private void sendSync(long first, int size) throws Exception {
        Latencies record = latencies;
        long before = System.nanoTime();
        try {
            count(result(first, size), size);
        } finally {
            record.add(System.nanoTime() - before);
        }
    }

    private SendResult result(long first, int size) throws Exception {
        if (transactional) {
            return producer.sendMessageInTransaction(message(first), null);
        }
        return batch == 1 ? producer.send(message(first)) : producer.send(messages(first, size));
    }

    private void sendAsync(long number) throws Exception {
        window.acquire();
        Latencies record = latencies;
        long before = System.nanoTime();
        try {
            producer.send(message(number), new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    record.add(System.nanoTime() - before);
                    count(result, 1);
                    window.release();
                }

                @Override
                public void onException(Throwable problem) {
                    record.add(System.nanoTime() - before);
                    failed(problem);
                    window.release();
                }
            });
        } catch (Exception problem) {
            window.release();
            throw problem;
        }
    }

    private Message message(long number) {
        Message message = new Message(topic, body);
        if (keys) {
            message.setKeys(Long.toString(number));
        }
        if (marked) {
            message.setTags("t" + number % MARKS);
            message.putUserProperty("mark", Long.toString(number % MARKS));
            message.putUserProperty("number", Long.toString(number));
        }
        if (level > 0) {
            message.setDelayTimeLevel(level);
        }
        if (laterMillis > 0) {
            MessageAccessor.putProperty(message, "TIMER_DELAY_MS", Long.toString(laterMillis));
        }
        return message;
    }

    private List<Message> messages(long first, int size) {
        List<Message> messages = new ArrayList<>(size);
        for (int i = 0; i < size; i++) {
            messages.add(message(first + i));
        }
        return messages;
    }

    private void count(SendResult result, int messages) {
        if (result.getSendStatus() == SendStatus.SEND_OK) {
            sent.addAndGet(messages);
        } else {
            failed(new IllegalStateException(result.getSendStatus().name()));
        }
    }

    private void failed(Throwable problem) {
        if (failed.incrementAndGet() == 1) {
            firstError = problem.toString();
        }
    }

    private static final class CommitAll implements TransactionListener {
        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
            return LocalTransactionState.COMMIT_MESSAGE;
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt message) {
            return LocalTransactionState.COMMIT_MESSAGE;
        }
    }
}
