package bolide.peer;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.CRC32;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * {@code sweep}: reads every queue of a topic to its end and writes each message to a file.
 *
 * <p>Options: nameserver, topic, group, file, from (list of queue:offset, 0 otherwise), batch. Lines of the file:
 * {@code queue offset sum intact id}, where the sum covers everything that was stored, and
 * intact says whether the body is what its id makes of it. The answer has the next offset of each queue.
 */
final class Sweep {
    private static final List<String> ADDED_BY_READING =
        Arrays.asList(MessageConst.PROPERTY_MIN_OFFSET, MessageConst.PROPERTY_MAX_OFFSET);

    private final Command command;

    Sweep(Command command) {
        this.command = command;
    }

    Map<String, Object> run() throws Exception {
        Map<Integer, Long> from = new HashMap<>();
        for (String start : command.list("from")) {
            from.put(Integer.parseInt(start.split(":")[0]), Long.parseLong(start.split(":")[1]));
        }
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer(command.text("group", "sweepers"));
        Session.configure(consumer, command, "sweep");
        consumer.start();
        Map<String, Object> ends = new TreeMap<>();
        try (LineFile file = new LineFile(command.text("file"))) {
            List<MessageQueue> queues = new ArrayList<>(consumer.fetchSubscribeMessageQueues(command.text("topic")));
            Collections.sort(queues);
            for (MessageQueue queue : queues) {
                long end = read(consumer, queue, from.getOrDefault(queue.getQueueId(), 0L), file);
                ends.put(Integer.toString(queue.getQueueId()), end);
            }
        } finally {
            consumer.shutdown();
        }
        return Output.fields("ends", ends);
    }

    private long read(DefaultMQPullConsumer consumer, MessageQueue queue, long offset, LineFile file) throws Exception {
        while (true) {
            PullResult result = consumer.pull(queue, "*", offset, command.number("batch", 32));
            if (result.getPullStatus() != PullStatus.FOUND) {
                return offset;
            }
            for (MessageExt message : result.getMsgFoundList()) {
                write(message, file);
            }
            offset = result.getNextBeginOffset();
        }
    }

    private static void write(MessageExt message, LineFile file) throws IOException {
        file.write(message.getQueueId(), message.getQueueOffset(), sum(message),
            Payload.intact(message.getBody()) ? 1 : 0, Payload.id(message.getBody()));
    }

    private static long sum(MessageExt message) {
        CRC32 crc = new CRC32();
        crc.update(message.getBody());
        Map<String, String> properties = new TreeMap<>(message.getProperties());
        properties.keySet().removeAll(ADDED_BY_READING);
        crc.update(properties.toString().getBytes());
        crc.update((message.getCommitLogOffset() + " " + message.getStoreTimestamp() + " " + message.getBornTimestamp()
            + " " + message.getStoreHost() + " " + message.getBornHost() + " " + message.getSysFlag()).getBytes());
        return crc.getValue();
    }
}
