package bolide.peer;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * {@code shares}: which queues the original's own strategies give to a member.
 *
 * <p>Option file: a line for each question, of five words in base64: the strategy, what it is told, the own client id,
 * the ids of all members and all queues (topic/broker/queue); each of the lists with a line for each. The answer has for
 * each question the numbers of the queues that the member gets. Both lists are sorted first, as the original does before
 * it asks a strategy.
 */
final class Shares {
    private Shares() {
    }

    static Map<String, Object> run(Command command) throws Exception {
        List<List<Integer>> shares = new ArrayList<>();
        for (String line : Files.readAllLines(Paths.get(command.text("file")), StandardCharsets.US_ASCII)) {
            shares.add(share(line.split(" ", -1)));
        }
        return Output.fields("shares", shares);
    }

    private static List<Integer> share(String[] words) {
        List<MessageQueue> queues = Strategies.queues(lines(words[4]));
        List<MessageQueue> sorted = new ArrayList<>(queues);
        Collections.sort(sorted);
        List<String> members = lines(words[3]);
        Collections.sort(members);
        List<Integer> numbers = new ArrayList<>();
        for (MessageQueue queue : Strategies.of(text(words[0]), lines(words[1]))
            .allocate("group", text(words[2]), sorted, members)) {
            numbers.add(queues.indexOf(queue));
        }
        return numbers;
    }

    private static String text(String word) {
        return new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_8);
    }

    private static List<String> lines(String word) {
        String text = text(word);
        return text.isEmpty() ? new ArrayList<>() : new ArrayList<>(Arrays.asList(text.split("\n")));
    }
}
