package bolide.peer;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.rocketmq.tools.command.MQAdminStartup;
import org.apache.rocketmq.tools.command.SubCommand;

/** {@code catalogue}: the commands of mqadmin and the request codes that this version's jars have, as name=number. */
final class Catalogue {
    private Catalogue() {
    }

    static Map<String, Object> run() throws Exception {
        MQAdminStartup.initCommand();
        TreeSet<String> commands = new TreeSet<>();
        for (SubCommand command : commands()) {
            commands.add(command.commandName());
        }
        TreeSet<String> codes = new TreeSet<>();
        for (Field field : requestCodes().getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) && field.getType() == int.class) {
                codes.add(field.getName() + "=" + field.getInt(null));
            }
        }
        return Output.fields("commands", List.copyOf(commands), "codes", List.copyOf(codes));
    }

    /** The tool's own list, whose name differs by version. */
    @SuppressWarnings("unchecked")
    static List<SubCommand> commands() throws IllegalAccessException {
        for (Field field : MQAdminStartup.class.getDeclaredFields()) {
            if (List.class.isAssignableFrom(field.getType())) {
                field.setAccessible(true);
                return (List<SubCommand>) field.get(null);
            }
        }
        throw new IllegalStateException("mqadmin keeps its commands elsewhere");
    }

    /** 4.x and 5.x have it in different places. */
    private static Class<?> requestCodes() throws ClassNotFoundException {
        try {
            return Class.forName("org.apache.rocketmq.remoting.protocol.RequestCode");
        } catch (ClassNotFoundException classic) {
            return Class.forName("org.apache.rocketmq.common.protocol.RequestCode");
        }
    }
}
