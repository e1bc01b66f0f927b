package heron.jvm;

import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * What the child writes. Any thread of the component may emit; rows of one stream become one frame: columns where each
 * field has one scalar type, and else MessagePack.
 *
 * <p>The order of one flush is: emits, then acks or fails, and what is done, so that an ack never overtakes the emits
 * that were made before it. Acks and fails keep their order, because the first of one tuple counts.
 */
final class Output implements Runnable {
    private static final int MOST_BYTES = 32 * 1024;
    private static final int MOST_NUMBERS = 4096;
    private static final int MOST_REFUSALS = 16; // rows that are no columns, of a stream; then it is not tried again
    private static final long OLDEST_NS = 5_000_000;
    private static final long OLDEST_IN_CALL_NS = 200_000_000; // the call may ask for the tasks of its last emit

    private final OutputStream out;
    private final Values values;
    private final MsgWriter frames = new MsgWriter();
    private final MsgWriter rows = new MsgWriter();
    private final Links links = new Links();
    private final Numbers acks = new Numbers();
    private final Numbers fails = new Numbers();
    private long done;
    private Route route;
    private int task;
    private int count;
    private int lastRow;
    private List<Object> last; // only of columns
    private boolean isPlain;
    private long emits;
    private boolean waits;
    private boolean isReady;
    private long sinceNs;

    /** Whether the component is called now; its last call has ended otherwise, and what it has left can go. */
    volatile boolean isCalling;

    Output(OutputStream out, Values values) {
        this.out = out;
        this.values = values;
    }

    /** Emits a row, and returns its number. `link` is an id, ids of anchors, or null. */
    synchronized long emit(Route to, int directTask, List<Object> given, long[] link) {
        flushIfFull();
        boolean canBePlain = directTask == 0 && to.refusals < MOST_REFUSALS && (link == null || link.length == 1);
        List<Object> row = canBePlain ? new ArrayList<>(given) : given; // the author may change it before `ask`
        if (to != route || directTask != task || isPlain && !canBePlain) {
            endSegment();
        }
        if (count == 0) {
            route = to;
            task = directTask;
            isPlain = canBePlain;
        }
        if (isPlain && !to.columns.add(row)) {
            endSegment(); // perhaps only its types differ from those of the rows before
            to.refusals++;
            route = to;
            isPlain = to.columns.add(row);
        }
        if (!isPlain) {
            lastRow = rows.length;
            try {
                write(to, row);
            } catch (RuntimeException | Error refused) { // the author's objects may throw anything
                rows.length = lastRow;
                throw refused;
            }
        }
        last = row;
        links.add(link);
        count++;
        began();
        return ++emits;
    }

    synchronized long emits() {
        return emits;
    }

    synchronized void ack(long id) {
        if (fails.length > 0) { // of one tuple, the first counts
            endSegment();
            numbers(Frames.FAIL, fails);
        }
        acks.add(id);
        began();
    }

    synchronized void fail(long id) {
        if (acks.length > 0) {
            endSegment();
            numbers(Frames.ACK, acks);
        }
        fails.add(id);
        began();
    }

    /** The bolt has executed all tuples up to this one. */
    synchronized void done(long id) {
        done = id;
        began();
    }

    /** Writes a frame that has only numbers and texts. */
    synchronized void frame(int kind, Object... parts) {
        endSegment();
        int before = frames.length;
        int start = begin();
        try {
            frames.array(1 + parts.length);
            frames.integer(kind);
            for (Object each : parts) {
                values.write(frames, each, false);
            }
        } catch (RuntimeException | Error refused) {
            frames.length = before;
            throw refused;
        }
        end(start);
        began();
    }

    /** Writes the frame that comes first; what was emitted before, in `open` or `prepare`, follows it. */
    synchronized void ready(long pid, String version) {
        MsgWriter frame = new MsgWriter();
        frame.array(3);
        frame.integer(Frames.READY);
        frame.integer(pid);
        frame.text(version);
        write(out, frame);
        isReady = true;
        flush();
    }

    /** Writes the only frame of a child that cannot start. */
    static void refuse(OutputStream out, Throwable error) {
        MsgWriter frame = new MsgWriter();
        frame.array(4);
        frame.integer(Frames.ERROR);
        for (String each : TaskOutput.described(error)) {
            frame.text(each);
        }
        write(out, frame);
    }

    /** Sends the row of this number apart, as a question for the ids of its tasks. False if it has left already. */
    synchronized boolean ask(long number) {
        if (number != emits || count == 0 || !isReady) {
            return false;
        }
        Route to = route;
        List<Object> row = last;
        byte[] written = isPlain ? null : Arrays.copyOfRange(rows.bytes, lastRow, rows.length);
        if (isPlain) {
            to.columns.takeBack();
        } else {
            rows.length = lastRow;
        }
        long[] link = links.takeBack();
        count--;
        endSegment();
        int start = begin();
        frames.array(4);
        frames.integer(Frames.ASK);
        frames.text(to.stream);
        if (written == null) {
            frames.array(row.size());
            row.forEach(each -> values.write(frames, each, to.exact));
        } else {
            frames.raw(written, written.length);
        }
        Links.write(frames, link);
        end(start);
        flush();
        return true;
    }

    synchronized void flushIfFull() {
        long waiting = rows.length + links.bytes() + frames.length + (isPlain ? route.columns.bytes : 0);
        if (waiting >= MOST_BYTES || acks.length + fails.length >= MOST_NUMBERS) {
            flush();
        }
    }

    synchronized void flush() {
        if (!isReady) {
            return;
        }
        endSegment();
        numbers(Frames.ACK, acks);
        numbers(Frames.FAIL, fails);
        if (done > 0) {
            int start = begin();
            frames.array(2);
            frames.integer(Frames.DONE);
            frames.integer(done);
            end(start);
            done = 0;
        }
        waits = false;
        if (frames.length == 0) {
            return;
        }
        writeBytes(out, frames);
        frames.clear();
    }

    private static void write(OutputStream out, MsgWriter frame) {
        MsgWriter whole = new MsgWriter();
        whole.fixed(frame.length, 4);
        whole.raw(frame.bytes, frame.length);
        writeBytes(out, whole);
    }

    private static void writeBytes(OutputStream out, MsgWriter whole) {
        try {
            out.write(whole.bytes, 0, whole.length);
            out.flush();
        } catch (IOException error) { // Heron has ended, or has given this child up
            Runtime.getRuntime().halt(Main.BROKEN);
        }
    }

    /** Flushes what a call that takes long, or a thread of the component, has left. */
    @Override
    public void run() {
        try {
            while (true) {
                synchronized (this) {
                    while (!waits) {
                        wait();
                    }
                }
                Thread.sleep(OLDEST_NS / 1_000_000);
                synchronized (this) {
                    if (waits && System.nanoTime() - sinceNs >= (isCalling ? OLDEST_IN_CALL_NS : OLDEST_NS)) {
                        flush();
                    }
                }
            }
        } catch (InterruptedException end) {
            Thread.currentThread().interrupt();
        }
    }

    private void began() {
        if (!waits) {
            waits = true;
            sinceNs = System.nanoTime();
            notifyAll();
        }
    }

    private void write(Route to, List<Object> row) {
        if (row.size() != to.fields.size()) {
            throw new IllegalArgumentException("stream '" + to.stream + "' has the fields " + to.fields + ", and "
                + row.size() + " values were emitted");
        }
        int field = 0;
        try {
            rows.array(row.size());
            for (; field < row.size(); field++) {
                values.write(rows, row.get(field), to.exact);
            }
        } catch (NotPlainException error) {
            String where = to.exact ? "" : " to " + to.reader;
            throw new NotPlainException("stream '" + to.stream + "', field '" + to.fields.get(field) + "': "
                + error.getMessage() + " cannot travel" + where
                + "; emit null, Boolean, Integer, Long, Double, String, byte[], List or Map");
        }
    }

    private void endSegment() {
        if (count > 0) {
            writeSegment();
        }
        links.clear();
        rows.clear();
        count = 0;
        isPlain = false;
        route = null;
        last = null;
    }

    private void writeSegment() {
        int start = begin();
        frames.array(5);
        frames.integer(isPlain ? Frames.EMIT_PLAIN : Frames.EMIT);
        frames.text(route.stream);
        if (isPlain) {
            frames.integer(count);
            links.write(frames);
            route.columns.end(frames);
        } else {
            frames.integer(task);
            frames.array(count);
            frames.raw(rows.bytes, rows.length);
            links.write(frames);
        }
        end(start);
    }

    private void numbers(int kind, Numbers numbers) {
        if (numbers.length == 0) {
            return;
        }
        int start = begin();
        frames.array(2);
        frames.integer(kind);
        numbers.end(frames);
        end(start);
    }

    private int begin() {
        frames.fixed(0, 4);
        return frames.length;
    }

    private void end(int start) {
        int length = frames.length;
        frames.length = start - 4;
        frames.fixed(length - start, 4);
        frames.length = length;
    }

    /** Where the rows of a stream go: its name and fields, whether only JVMs read it, and else a reader that does not. */
    static final class Route {
        final String stream;
        final List<String> fields;
        final boolean exact;
        final String reader;
        private final PlainWriter columns;
        private int refusals;

        Route(String stream, List<String> fields, boolean exact, String reader) {
            this.stream = stream;
            this.fields = fields;
            this.exact = exact;
            this.reader = reader;
            this.columns = new PlainWriter(fields.size(), exact);
        }
    }

    /** Ids as ranges: a first one and their number, and so on. */
    private static final class Numbers {
        private long[] values = new long[256];
        private int length;

        void add(long value) {
            if (length > 0 && values[length - 2] + values[length - 1] == value) {
                values[length - 1]++;
                return;
            }
            if (length == values.length) {
                values = Arrays.copyOf(values, 2 * length);
            }
            values[length++] = value;
            values[length++] = 1;
        }

        void end(MsgWriter out) {
            out.array(length);
            for (int i = 0; i < length; i++) {
                out.integer(values[i]);
            }
            length = 0;
        }
    }

    /** The links of the rows of a segment: nothing, the first of ids that follow each other, or an array. */
    private static final class Links {
        private long[][] many; // of rows with several, by row; null if no row has
        private long[] ids = new long[256]; // 0 for no link
        private int count;
        private int linked; // rows that have one
        private long size; // in bytes, at most, if they do not follow each other
        private boolean follow = true;

        void add(long[] link) {
            if (count == ids.length) {
                ids = Arrays.copyOf(ids, 2 * count);
            }
            long id = link == null || link.length != 1 ? 0 : link[0];
            if (link != null && link.length != 1) {
                many = Arrays.copyOf(many == null ? new long[0][] : many, count + 1);
                many[count] = link;
            }
            linked += link == null ? 0 : 1;
            size += bytes(link);
            follow &= id != 0 && (count == 0 || ids[count - 1] + 1 == id);
            ids[count++] = id;
        }

        private long[] of(int row) {
            return many != null && row < many.length && many[row] != null ? many[row]
                : ids[row] == 0 ? null : new long[] {ids[row]};
        }

        /** Removes the last one, and returns it. */
        long[] takeBack() {
            long[] link = of(--count);
            linked -= link == null ? 0 : 1;
            size -= bytes(link);
            if (many != null && many.length > count) {
                many = count == 0 ? null : Arrays.copyOf(many, count);
            }
            return link;
        }

        long bytes() {
            return linked > 0 && !follow ? size : 0;
        }

        private static long bytes(long[] link) {
            return link == null ? 1 : 5 + 9L * link.length;
        }

        void write(MsgWriter out) {
            if (linked == 0) {
                out.nil();
            } else if (follow) {
                out.integer(ids[0]);
            } else {
                out.array(count);
                for (int row = 0; row < count; row++) {
                    write(out, of(row));
                }
            }
        }

        void clear() {
            many = null;
            count = 0;
            linked = 0;
            size = 0;
            follow = true;
        }

        static void write(MsgWriter out, long[] link) {
            if (link == null) {
                out.nil();
            } else if (link.length == 1) {
                out.integer(link[0]);
            } else {
                out.array(link.length);
                for (long each : link) {
                    out.integer(each);
                }
            }
        }
    }
}
