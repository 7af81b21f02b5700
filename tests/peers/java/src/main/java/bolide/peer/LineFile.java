package bolide.peer;

import java.io.BufferedWriter;
import java.io.Closeable;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;

/** A file of words, one record per line, for reports too many to be answers; every line can be read once it is written. */
final class LineFile implements Closeable {
    private final BufferedWriter out;

    LineFile(String path) throws IOException {
        out = Files.newBufferedWriter(Paths.get(path), StandardCharsets.UTF_8,
            StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }

    synchronized void line(Object... words) {
        try {
            write(words);
            out.flush();
        } catch (IOException problem) {
            throw new UncheckedIOException(problem);
        }
    }

    /** Without making it readable yet; {@code close} does. */
    synchronized void write(Object... words) throws IOException {
        for (int i = 0; i < words.length; i++) {
            out.write(i == 0 ? "" : " ");
            out.write(String.valueOf(words[i]));
        }
        out.write('\n');
    }

    @Override
    public synchronized void close() throws IOException {
        out.close();
    }
}
