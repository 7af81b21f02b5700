package bolide.peer;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.message.MessageQueue;

/** The original's strategies by our names of them. */
final class Strategies {
    private Strategies() {
    }

    /**
     * The strategy of this name. It is told queues (config, as topic/broker/queue), rooms (machine_room), the inner
     * strategy (machine_room_nearby) or the number of virtual nodes (consistent_hash; none for the original's default).
     */
    static AllocateMessageQueueStrategy of(String name, List<String> told) {
        switch (name) {
            case "averagely":
                return new AllocateMessageQueueAveragely();
            case "circle":
                return new AllocateMessageQueueAveragelyByCircle();
            case "consistent_hash":
                return told.isEmpty() ? new AllocateMessageQueueConsistentHash()
                    : new AllocateMessageQueueConsistentHash(Integer.parseInt(told.get(0)));
            case "config":
                AllocateMessageQueueByConfig config = new AllocateMessageQueueByConfig();
                config.setMessageQueueList(queues(told));
                return config;
            case "machine_room":
                AllocateMessageQueueByMachineRoom rooms = new AllocateMessageQueueByMachineRoom();
                rooms.setConsumeridcs(new HashSet<>(told));
                return rooms;
            case "machine_room_nearby":
                return new AllocateMachineRoomNearby(of(told.get(0), new ArrayList<>()), new Named());
            default:
                throw new IllegalArgumentException("unknown strategy: " + name);
        }
    }

    static List<MessageQueue> queues(List<String> texts) {
        List<MessageQueue> queues = new ArrayList<>();
        for (String text : texts) {
            String[] parts = text.split("/");
            queues.add(new MessageQueue(parts[0], parts[1], Integer.parseInt(parts[2])));
        }
        return queues;
    }

    /** A broker room@name or room-name, a member address@room-instance. */
    private static final class Named implements AllocateMachineRoomNearby.MachineRoomResolver {
        @Override
        public String brokerDeployIn(MessageQueue queue) {
            return queue.getBrokerName().split("[@-]")[0];
        }

        @Override
        public String consumerDeployIn(String client) {
            return client.substring(client.indexOf('@') + 1).split("-")[0];
        }
    }
}
