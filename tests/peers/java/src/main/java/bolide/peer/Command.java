package bolide.peer;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** One instruction: a verb and its named options, {@code verb key=value …}; values are percent-encoded. */
final class Command {
    final String verb;
    private final Map<String, String> options = new LinkedHashMap<>();

    Command(String verb) {
        this.verb = verb;
    }

    static Command parse(List<String> words) {
        Command command = new Command(words.get(0));
        for (String word : words.subList(1, words.size())) {
            int equals = word.indexOf('=');
            if (equals <= 0) {
                throw new IllegalArgumentException("expected key=value, got: " + word);
            }
            String value = URLDecoder.decode(word.substring(equals + 1), StandardCharsets.UTF_8);
            command.options.put(word.substring(0, equals), value);
        }
        return command;
    }

    boolean has(String key) {
        return options.containsKey(key);
    }

    String text(String key) {
        String value = options.get(key);
        if (value == null) {
            throw new IllegalArgumentException(verb + " needs " + key + "=…");
        }
        return value;
    }

    String text(String key, String fallback) {
        return options.getOrDefault(key, fallback);
    }

    int number(String key, int fallback) {
        return Integer.parseInt(text(key, Integer.toString(fallback)));
    }

    boolean flag(String key) {
        return Boolean.parseBoolean(text(key, "false"));
    }

    /** A comma-separated option as a list; an absent or empty one is an empty list. */
    List<String> list(String key) {
        List<String> parts = new ArrayList<>();
        for (String part : text(key, "").split(",")) {
            if (!part.isEmpty()) {
                parts.add(part);
            }
        }
        return parts;
    }
}
