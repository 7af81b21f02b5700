package bolide.peer;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Set;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * {@code admin}: runs one mqadmin command line ({@code line=…}) inside this process and answers what it printed.
 *
 * <p>With {@code millis=…} the command is interrupted after that time: some never end by themselves.
 */
final class Admin {
    private static final long LOOK_MILLIS = 20;

    private Admin() {
    }

    static synchronized Map<String, Object> run(Command command) throws Exception {
        PrintStream standardOutput = System.out;
        PrintStream standardError = System.err;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        ByteArrayOutputStream complained = new ByteArrayOutputStream();
        Catalogue.commands().clear(); // each remembers its last run; in a process of its own it would be the first one
        System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(complained, true, StandardCharsets.UTF_8));
        try {
            runWhole(command.text("line").split(" +"), command.number("millis", Integer.MAX_VALUE));
        } finally {
            System.setOut(standardOutput);
            System.setErr(standardError);
        }
        return Output.fields("output", printed.toString(StandardCharsets.UTF_8),
            "errors", complained.toString(StandardCharsets.UTF_8));
    }

    /** A client that ends waits up to 3 s until its event thread looks up; here somebody taps on its shoulder. */
    private static void runWhole(String[] words, int millis) throws InterruptedException {
        Set<Thread> before = Thread.getAllStackTraces().keySet();
        Thread running = new Thread(() -> MQAdminStartup.main0(words, null), "mqadmin");
        running.start();
        for (long waited = 0; running.isAlive(); waited += LOOK_MILLIS) {
            running.join(LOOK_MILLIS);
            if (waited >= millis) {
                running.interrupt();
            }
            for (Thread thread : Thread.getAllStackTraces().keySet()) {
                if (thread.getName().equals("NettyEventExecutor") && !before.contains(thread)) {
                    thread.interrupt();
                }
            }
        }
    }
}
