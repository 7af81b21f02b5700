package bolide.peer;

import java.util.Map;
import java.util.concurrent.atomic.AtomicLongArray;

/** Counts durations in buckets at most 1 % wide, so that millions of them cost no memory and any thread may add. */
final class Latencies {
    private static final int SUB_BITS = 7;
    private static final int SUB_COUNT = 1 << SUB_BITS;
    private final AtomicLongArray buckets = new AtomicLongArray(SUB_COUNT * (64 - SUB_BITS));

    void add(long nanos) {
        buckets.incrementAndGet(bucketOf(Math.max(0, nanos)));
    }

    Map<String, Object> summary() {
        return Output.fields("p50_us", percentile(0.50), "p90_us", percentile(0.90), "p99_us", percentile(0.99),
            "p999_us", percentile(0.999), "max_us", percentile(1.0), "samples", total());
    }

    private double percentile(double fraction) {
        long wanted = Math.max(1, (long) Math.ceil(total() * fraction));
        long seen = 0;
        for (int i = 0; i < buckets.length(); i++) {
            seen += buckets.get(i);
            if (seen >= wanted) {
                return valueOf(i) / 1000.0;
            }
        }
        return 0;
    }

    private long total() {
        long total = 0;
        for (int i = 0; i < buckets.length(); i++) {
            total += buckets.get(i);
        }
        return total;
    }

    private static int bucketOf(long value) {
        int shift = Math.max(0, 63 - SUB_BITS - Long.numberOfLeadingZeros(value | 1));
        return shift == 0 ? (int) value : shift * SUB_COUNT + (int) (value >>> shift);
    }

    private static long valueOf(int bucket) {
        if (bucket < 2 * SUB_COUNT) {
            return bucket;
        }
        int shift = bucket / SUB_COUNT - 1;
        return (long) (bucket - shift * SUB_COUNT) << shift;
    }
}
