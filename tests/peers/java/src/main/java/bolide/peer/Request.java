package bolide.peer;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;

/**
 * {@code request}: asks {@code count} questions, one after the other, and tells the reply to each.
 *
 * <p>Options: name, nameserver, topic, count, timeout (milliseconds for each reply), size.
 */
final class Request {
    private final Command command;

    Request(Command command) {
        this.command = command;
    }

    Map<String, Object> run() throws Exception {
        String name = command.text("name");
        DefaultMQProducer producer = new DefaultMQProducer("requesters-" + name);
        Session.configure(producer, command, name);
        producer.start();
        List<String> replies = new ArrayList<>();
        List<String> errors = new ArrayList<>();
        try {
            for (int number = 0; number < command.number("count", 1); number++) {
                String id = String.format("%s-%06d", name, number);
                Message question = new Message(command.text("topic"), Payload.make(id, command.number("size", 0)));
                try {
                    Message reply = producer.request(question, command.number("timeout", 60_000));
                    replies.add(new String(reply.getBody(), StandardCharsets.UTF_8).trim());
                } catch (Exception problem) {
                    errors.add(problem.toString());
                }
            }
        } finally {
            producer.shutdown();
        }
        return Output.fields("replies", replies, "errors", errors);
    }
}
