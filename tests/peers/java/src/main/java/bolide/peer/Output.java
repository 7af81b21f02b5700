package bolide.peer;

import java.io.BufferedOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.Map;
import java.util.TreeMap;

/** Writes one JSON object per line to the process's own standard output, whatever System.out points to. */
final class Output {
    private static final PrintStream STREAM = new PrintStream(
        new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), 1 << 16), false, StandardCharsets.UTF_8);

    private Output() {
    }

    /** Builds an object from alternating keys and values. */
    static Map<String, Object> fields(Object... keysAndValues) {
        Map<String, Object> fields = new TreeMap<>();
        for (int i = 0; i < keysAndValues.length; i += 2) {
            fields.put((String) keysAndValues[i], keysAndValues[i + 1]);
        }
        return fields;
    }

    static void line(Map<String, Object> fields) {
        StringBuilder text = new StringBuilder(160);
        write(text, fields);
        text.append('\n');
        synchronized (STREAM) {
            STREAM.print(text);
            STREAM.flush();
        }
    }

    private static void write(StringBuilder out, Object value) {
        if (value == null || value instanceof Number || value instanceof Boolean) {
            out.append(value);
        } else if (value instanceof Map) {
            writeObject(out, (Map<?, ?>) value);
        } else if (value instanceof Collection) {
            writeArray(out, (Collection<?>) value);
        } else {
            writeString(out, value.toString());
        }
    }

    private static void writeObject(StringBuilder out, Map<?, ?> map) {
        char separator = '{';
        for (Map.Entry<?, ?> entry : map.entrySet()) {
            out.append(separator);
            writeString(out, entry.getKey().toString());
            out.append(':');
            write(out, entry.getValue());
            separator = ',';
        }
        out.append(separator == '{' ? "{}" : "}");
    }

    private static void writeArray(StringBuilder out, Collection<?> items) {
        char separator = '[';
        for (Object item : items) {
            out.append(separator);
            write(out, item);
            separator = ',';
        }
        out.append(separator == '[' ? "[]" : "]");
    }

    private static void writeString(StringBuilder out, String text) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < 0x20) {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }
}
