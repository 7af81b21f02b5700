package bolide.peer;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.broker.filter.MessageEvaluationContext;
import org.apache.rocketmq.filter.SqlFilter;
import org.apache.rocketmq.filter.expression.Expression;
import org.apache.rocketmq.filter.expression.MQFilterException;

/**
 * {@code verdicts}: what the original's own filter says of messages.
 *
 * <p>Option file: a line for each question, of words in base64: the expression, then name and value of each property.
 * The answer has a letter for each: x for an expression that is refused, t and f for true and false, n for neither, and
 * e where judging failed; a broker delivers t alone.
 */
final class Verdicts {
    private final SqlFilter filter = new SqlFilter();
    private final Map<String, Expression> known = new HashMap<>();

    static Map<String, Object> run(Command command) throws Exception {
        Verdicts verdicts = new Verdicts();
        StringBuilder letters = new StringBuilder();
        for (String line : Files.readAllLines(Paths.get(command.text("file")), StandardCharsets.US_ASCII)) {
            List<String> words = new ArrayList<>();
            for (String word : line.split(" ")) {
                words.add(new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_8));
            }
            letters.append(verdicts.verdict(words));
        }
        return Output.fields("letters", letters.toString());
    }

    private char verdict(List<String> words) {
        Expression expression;
        try {
            expression = known.computeIfAbsent(words.get(0), this::compile);
        } catch (IllegalArgumentException refused) {
            return 'x';
        }
        Map<String, String> properties = new HashMap<>();
        for (int i = 1; i < words.size(); i += 2) {
            properties.put(words.get(i), words.get(i + 1));
        }
        try {
            Object said = expression.evaluate(new MessageEvaluationContext(properties));
            return said instanceof Boolean ? ((Boolean) said ? 't' : 'f') : 'n';
        } catch (Throwable problem) {
            return 'e';
        }
    }

    private Expression compile(String text) {
        try {
            return filter.compile(text);
        } catch (MQFilterException refused) {
            throw new IllegalArgumentException(refused);
        }
    }
}
