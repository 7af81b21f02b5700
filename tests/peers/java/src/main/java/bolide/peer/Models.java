package bolide.peer;

import java.lang.reflect.Method;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;

/** Sets clustering or broadcasting on a push consumer: the enum lives in a different package in 4.x and in 5.x. */
final class Models {
    private Models() {
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static void apply(DefaultMQPushConsumer consumer, String model) throws ReflectiveOperationException {
        for (Method method : DefaultMQPushConsumer.class.getMethods()) {
            if (method.getName().equals("setMessageModel")) {
                Class type = method.getParameterTypes()[0];
                method.invoke(consumer, Enum.valueOf(type, model.toUpperCase()));
                return;
            }
        }
        throw new NoSuchMethodException("setMessageModel");
    }
}
