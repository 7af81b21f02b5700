package bolide.peer;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.rocketmq.common.MQVersion;

/**
 * Drives real RocketMQ clients on behalf of a test.
 *
 * <p>{@code serve} reads lines {@code number verb key=value …} from standard input, runs each on a thread of its own and
 * answers {@code {"answer": number, …}}; what clients see in between comes as {@code {"event": …}}. End of input closes
 * every client and ends the process. Any other first argument is one command, run at once.
 */
public final class Main {
    private final Session session = new Session();
    private final ExecutorService workers = Executors.newCachedThreadPool();

    private Main() {
    }

    public static void main(String[] arguments) throws Exception {
        Main main = new Main();
        if (arguments.length == 1 && arguments[0].equals("serve")) {
            main.serve();
        } else {
            main.answer(0, Arrays.asList(arguments));
        }
        main.session.closeAll();
        System.exit(0);
    }

    private void serve() throws Exception {
        Output.line(Output.fields("event", "ready", "version", MQVersion.getVersionDesc(MQVersion.CURRENT_VERSION)));
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            List<String> words = Arrays.asList(line.trim().split(" +"));
            int number = Integer.parseInt(words.get(0));
            workers.execute(() -> answer(number, words.subList(1, words.size())));
        }
    }

    private void answer(int number, List<String> words) {
        Map<String, Object> fields;
        try {
            fields = run(Command.parse(words));
            fields.put("ok", true);
        } catch (Throwable problem) {
            fields = Output.fields("ok", false, "error", problem.toString());
            problem.printStackTrace();
        }
        fields.put("answer", number);
        Output.line(fields);
    }

    private Map<String, Object> run(Command command) throws Throwable {
        switch (command.verb) {
            case "ping":
                return Output.fields();
            case "produce":
                return new Produce(session, command).run();
            case "transact":
                return new Transact(session, command).run();
            case "consume":
                return new Consume(session, command).run();
            case "request":
                return new Request(command).run();
            case "reply":
                return new Reply(session, command).run();
            case "pull":
                return new Pull(command).run();
            case "litepull":
                return new LitePull(command).run();
            case "endure":
                return new Endure(session, command).run();
            case "sweep":
                return new Sweep(command).run();
            case "offsets":
                return new Offsets(command).run();
            case "assignment":
                return session.assignment(command.text("name"));
            case "release":
                Verdict.release(command.text("name"));
                return Output.fields();
            case "expire":
                session.expire(command.text("name"));
                return Output.fields();
            case "stop":
                session.close(command.text("name"));
                return Output.fields();
            case "admin":
                return Admin.run(command);
            case "timed":
                return Timed.run(command);
            case "catalogue":
                return Catalogue.run();
            case "verdicts":
                return Verdicts.run(command);
            case "shares":
                return Shares.run(command);
            case "load-send":
                return new LoadSend(session, command).run();
            case "load-consume":
                return new LoadConsume(command).run();
            case "load-latency":
                return new LoadLatency(command).run();
            default:
                throw new IllegalArgumentException("unknown verb: " + command.verb);
        }
    }
}
