package bolide.peer;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * What a listener says of a message.
 *
 * <p>Options: fails=N (a message fails until it was tried N times), failtag (only messages of this tag do),
 * how=later|null|throw, level (the delay level asked for), lost=true (failed messages name a place of the log where there
 * is nothing), suspend (milliseconds, orderly), manual=true (orderly: autoCommit off, failing is a rollback, the tag commit
 * commits, everything else succeeds only). A message of the tag hold waits in the listener until {@code release name=…},
 * and {@code event: ended} tells that the listener returns.
 */
final class Verdict {
    private static final Map<String, CountDownLatch> HELD = new ConcurrentHashMap<>();

    private final Command command;
    private final String name;
    private final int fails;
    private final Map<String, AtomicInteger> tries = new ConcurrentHashMap<>();

    Verdict(Command command, String name) {
        this.command = command;
        this.name = name;
        this.fails = command.number("fails", 0);
        HELD.put(name, new CountDownLatch(1));
    }

    static void release(String name) {
        HELD.get(name).countDown();
    }

    ConsumeConcurrentlyStatus concurrent(List<MessageExt> messages, ConsumeConcurrentlyContext context) {
        waitWhileHeld(messages);
        if (!failing(messages)) {
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        }
        context.setDelayLevelWhenNextConsume(command.number("level", 0));
        if (command.flag("lost")) {
            messages.forEach(message -> message.setCommitLogOffset(1));
        }
        return fail(ConsumeConcurrentlyStatus.RECONSUME_LATER);
    }

    ConsumeOrderlyStatus orderly(List<MessageExt> messages, ConsumeOrderlyContext context) {
        boolean manual = command.flag("manual");
        context.setAutoCommit(!manual);
        context.setSuspendCurrentQueueTimeMillis(command.number("suspend", -1));
        waitWhileHeld(messages);
        if (failing(messages)) {
            return fail(manual ? rollback() : ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT);
        }
        return manual && tagged(messages, "commit") ? commit() : ConsumeOrderlyStatus.SUCCESS;
    }

    @SuppressWarnings("deprecation")
    private static ConsumeOrderlyStatus rollback() {
        return ConsumeOrderlyStatus.ROLLBACK;
    }

    @SuppressWarnings("deprecation")
    private static ConsumeOrderlyStatus commit() {
        return ConsumeOrderlyStatus.COMMIT;
    }

    private <T> T fail(T status) {
        switch (command.text("how", "later")) {
            case "null":
                return null;
            case "throw":
                throw new IllegalStateException("as the test wants");
            default:
                return status;
        }
    }

    /** A client counts what it brings again in the message, but not what it rolls back. */
    private boolean failing(List<MessageExt> messages) {
        boolean failing = false;
        for (MessageExt message : messages) {
            String id = Payload.id(message.getBody());
            int here = tries.computeIfAbsent(id, key -> new AtomicInteger()).getAndIncrement();
            boolean chosen = !command.has("failtag") || command.text("failtag").equals(message.getTags());
            failing |= chosen && Math.max(here, message.getReconsumeTimes()) < fails;
        }
        return failing;
    }

    private void waitWhileHeld(List<MessageExt> messages) {
        if (!tagged(messages, "hold")) {
            return;
        }
        messages.forEach(message -> MessageAccessor.setConsumeStartTimeStamp(message, "1"));
        try {
            HELD.get(name).await();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        Output.line(Output.fields("event", "ended", "name", name));
    }

    private static boolean tagged(List<MessageExt> messages, String tag) {
        return messages.stream().anyMatch(message -> tag.equals(message.getTags()));
    }
}
