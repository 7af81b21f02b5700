package bolide.peer;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * {@code reply}: a consumer that answers every question with {@code re: …}, padded with blanks to {@code size} bytes.
 *
 * <p>Options: name, nameserver, group, topic, size. Reports {@code replied} with the result of each reply;
 * {@code stop name=…} ends it.
 */
final class Reply {
    private final Session session;
    private final Command command;
    private final String name;

    Reply(Session session, Command command) {
        this.session = session;
        this.command = command;
        this.name = command.text("name");
    }

    Map<String, Object> run() throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("repliers-" + name);
        Session.configure(producer, command, name);
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(command.text("group"));
        Session.configure(consumer, command, name);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(command.text("topic"), "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt question : messages) {
                reply(producer, question);
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        producer.start();
        consumer.start();
        session.opened(name, () -> {
            consumer.shutdown();
            producer.shutdown();
        });
        return Output.fields();
    }

    private void reply(DefaultMQProducer producer, MessageExt question) {
        String text = "re: " + Payload.id(question.getBody());
        String padded = String.format("%-" + Math.max(text.length(), command.number("size", 0)) + "s", text);
        String result;
        try {
            Message reply = MessageUtil.createReplyMessage(question, padded.getBytes(StandardCharsets.UTF_8));
            result = producer.send(reply).getSendStatus().toString();
        } catch (Exception problem) {
            result = problem.toString();
        }
        Output.line(Output.fields("event", "replied", "name", name, "result", result));
    }
}
