package bolide.peer;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/** {@code admin}: runs one mqadmin command line ({@code line=…}) inside this process and answers what it printed. */
final class Admin {
    private Admin() {
    }

    static synchronized Map<String, Object> run(Command command) {
        PrintStream standardOutput = System.out;
        PrintStream standardError = System.err;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        ByteArrayOutputStream complained = new ByteArrayOutputStream();
        System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(complained, true, StandardCharsets.UTF_8));
        try {
            MQAdminStartup.main0(command.text("line").split(" +"), null);
        } finally {
            System.setOut(standardOutput);
            System.setErr(standardError);
        }
        return Output.fields("output", printed.toString(StandardCharsets.UTF_8),
            "errors", complained.toString(StandardCharsets.UTF_8));
    }
}
