package bolide.peer;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * {@code endure}: sends until it is stopped, through every absence of the broker, and writes what became of each send.
 *
 * <p>Options: name, nameserver, topic, file, threads, batchers (so many of the threads send batches), batch, size (of the
 * smallest bodies; the largest have five times as much), timeout, rest (microseconds between two sends of a thread), pause
 * (milliseconds after a failed one). A thread has one queue, numbers its messages itself and never sends one twice: the
 * body of a message is {@code thread-number}, from the number {@code first} on.
 *
 * <p>Lines of the file, times in milliseconds: {@code + began answered thread number count queue offset} for an acknowledged
 * send of so many messages, {@code - began answered thread number count reason} for any other.
 */
final class Endure {
    private final Session session;
    private final Command command;
    private final String name;
    private final String topic;
    private final DefaultMQProducer producer;
    private final AtomicLong acknowledged = new AtomicLong();
    private final AtomicLong failed = new AtomicLong();
    private final int batchers;
    private final int batch;
    private final int size;
    private volatile boolean stopped;

    Endure(Session session, Command command) {
        this.session = session;
        this.command = command;
        this.name = command.text("name");
        this.topic = command.text("topic");
        this.batchers = command.number("batchers", 0);
        this.batch = command.number("batch", 16);
        this.size = command.number("size", 200);
        this.producer = new DefaultMQProducer(command.text("group", "producers-" + name));
    }

    Map<String, Object> run() throws Exception {
        Session.configure(producer, command, name);
        producer.setSendMsgTimeout(command.number("timeout", 3_000));
        producer.start();
        session.opened(name, () -> stopped = true);
        try (LineFile file = new LineFile(command.text("file"))) {
            List<MessageQueue> queues = producer.fetchPublishMessageQueues(topic);
            int threads = command.number("threads", 4);
            CountDownLatch ended = new CountDownLatch(threads);
            for (int i = 0; i < threads; i++) {
                int thread = i;
                new Thread(() -> {
                    try {
                        sendUntilStopped(thread, queues.get(thread % queues.size()), file);
                    } catch (InterruptedException interrupted) {
                        Thread.currentThread().interrupt();
                    } finally {
                        ended.countDown();
                    }
                }, name + "-" + thread).start();
            }
            ended.await();
        } finally {
            session.ended(name);
            producer.shutdown();
        }
        return Output.fields("acknowledged", acknowledged.get(), "failed", failed.get());
    }

    private void sendUntilStopped(int thread, MessageQueue queue, LineFile file) throws InterruptedException {
        int count = thread < batchers ? batch : 1;
        int rest = command.number("rest", 0);
        for (long number = command.number("first", 0); !stopped; number += count) {
            List<Message> messages = messages(thread, number, count);
            long began = System.currentTimeMillis();
            String outcome = send(messages, queue);
            file.line(outcome.charAt(0), began, System.currentTimeMillis(), thread, number, count, outcome.substring(2));
            if (outcome.charAt(0) == '+') {
                acknowledged.addAndGet(count);
                TimeUnit.MICROSECONDS.sleep(rest);
            } else {
                failed.addAndGet(count);
                TimeUnit.MILLISECONDS.sleep(command.number("pause", 20));
            }
        }
    }

    private List<Message> messages(int thread, long number, int count) {
        List<Message> messages = new ArrayList<>(count);
        for (long i = number; i < number + count; i++) {
            String id = thread + "-" + i;
            messages.add(new Message(topic, "T" + thread, id, Payload.make(id, size * (1 + (int) (i % 5)))));
        }
        return messages;
    }

    /** A plus with queue and offset, or a minus with the reason. */
    private String send(List<Message> messages, MessageQueue queue) throws InterruptedException {
        try {
            SendResult result = messages.size() == 1
                ? producer.send(messages.get(0), queue) : producer.send(messages, queue);
            if (result.getSendStatus() == SendStatus.SEND_OK) {
                return "+ " + result.getMessageQueue().getQueueId() + " " + result.getQueueOffset();
            }
            return "- " + result.getSendStatus();
        } catch (InterruptedException interrupted) {
            throw interrupted;
        } catch (Exception problem) {
            return "- " + problem.getClass().getSimpleName();
        }
    }
}
