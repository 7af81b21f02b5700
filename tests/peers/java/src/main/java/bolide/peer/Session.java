package bolide.peer;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.common.message.MessageQueue;

/** What runs in this process right now, by the name the test gave it, and how each of them is ended. */
final class Session {
    private final Map<String, Runnable> closers = new ConcurrentHashMap<>();
    private final Map<String, DefaultMQPushConsumer> consumers = new ConcurrentHashMap<>();

    void opened(String name, Runnable closer) {
        if (closers.putIfAbsent(name, closer) != null) {
            throw new IllegalStateException("already running: " + name);
        }
    }

    void opened(String name, DefaultMQPushConsumer consumer) {
        opened(name, consumer::shutdown);
        consumers.put(name, consumer);
    }

    void ended(String name) {
        closers.remove(name);
        consumers.remove(name);
    }

    void close(String name) {
        Runnable closer = closers.get(name);
        ended(name);
        if (closer != null) {
            closer.run();
        }
    }

    void closeAll() {
        for (String name : new ArrayList<>(closers.keySet())) {
            close(name);
        }
    }

    /** The queues a push consumer holds at this moment, as topic/broker/queue. */
    Map<String, Object> assignment(String name) {
        List<String> queues = new ArrayList<>();
        DefaultMQPushConsumer consumer = consumers.get(name);
        if (consumer == null) {
            throw new IllegalStateException("no such consumer: " + name);
        }
        for (MessageQueue queue
            : consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet()) {
            queues.add(queue.getTopic() + "/" + queue.getBrokerName() + "/" + queue.getQueueId());
        }
        return Output.fields("queues", queues);
    }

    /** What a push consumer does every consumeTimeout minutes: messages that are consumed for too long are sent back. */
    void expire(String name) {
        DefaultMQPushConsumer consumer = consumers.get(name);
        consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().values()
            .forEach(queue -> queue.cleanExpiredMsg(consumer));
    }

    /**
     * Settings every client takes; each client is an instance of its own, with its own connections. With
     * -Dbolide.peer.soon=n it sends heartbeats and asks for routes every n milliseconds instead of every 30 seconds.
     */
    static void configure(ClientConfig client, Command command, String name) {
        client.setNamesrvAddr(command.text("nameserver"));
        client.setInstanceName(name + "-" + System.nanoTime());
        client.setVipChannelEnabled(command.flag("vip"));
        if (command.has("namespace")) {
            client.setNamespace(command.text("namespace"));
        }
        int soon = Integer.getInteger("bolide.peer.soon", 0);
        if (soon > 0) {
            client.setPollNameServerInterval(soon);
            client.setHeartbeatBrokerInterval(soon);
        }
        if (command.has("persist")) {
            client.setPersistConsumerOffsetInterval(command.number("persist", 0));
        }
    }
}
