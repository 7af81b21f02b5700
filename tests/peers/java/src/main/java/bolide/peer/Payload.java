package bolide.peer;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Bodies that carry their own identity: {@code id|filler}, the filler derived from the id so that damage shows. */
final class Payload {
    private Payload() {
    }

    static byte[] make(String id, int size) {
        byte[] head = (id + "|").getBytes(StandardCharsets.UTF_8);
        byte[] body = Arrays.copyOf(head, Math.max(size, head.length));
        for (int i = head.length; i < body.length; i++) {
            body[i] = filler(head, i);
        }
        return body;
    }

    static String id(byte[] body) {
        String text = new String(body, StandardCharsets.UTF_8);
        int end = text.indexOf('|');
        return end < 0 ? text : text.substring(0, end);
    }

    static boolean intact(byte[] body) {
        return Arrays.equals(body, make(id(body), body.length));
    }

    private static byte filler(byte[] head, int position) {
        return (byte) ('a' + (head[position % head.length] + position) % 26);
    }
}
