package bolide.peer;

import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;

/**
 * {@code timed}: sends a message for each of {@code times} and answers their recall handles.
 *
 * <p>Options: nameserver, topic, name, way=setDeliverTimeMs|setDelayTimeMs|setDelayTimeSec, times (a list). With recall=handle it
 * sends nothing and calls that message back. Clients of 4.9 have none of these methods, so they are called by name.
 */
final class Timed {
    static Map<String, Object> run(Command command) throws Throwable {
        try {
            return runByName(command);
        } catch (InvocationTargetException problem) {
            throw problem.getCause();
        }
    }

    private static Map<String, Object> runByName(Command command) throws Exception {
        String name = command.text("name");
        String topic = command.text("topic");
        DefaultMQProducer producer = new DefaultMQProducer("timed-" + name);
        Session.configure(producer, command, name);
        producer.start();
        try {
            if (command.has("recall")) {
                Object id = DefaultMQProducer.class.getMethod("recallMessage", String.class, String.class)
                    .invoke(producer, topic, command.text("recall"));
                return Output.fields("id", id);
            }
            List<String> handles = new ArrayList<>();
            List<String> ids = new ArrayList<>();
            for (String time : command.list("times")) {
                String body = String.format("%s-%06d", name, handles.size());
                Message message = new Message(topic, body.getBytes(StandardCharsets.UTF_8));
                Message.class.getMethod(command.text("way"), long.class).invoke(message, Long.parseLong(time));
                SendResult result = producer.send(message);
                handles.add(String.valueOf(SendResult.class.getMethod("getRecallHandle").invoke(result)));
                ids.add(result.getMsgId());
            }
            return Output.fields("handles", String.join(",", handles), "ids", String.join(",", ids));
        } finally {
            producer.shutdown();
        }
    }
}
