package heron.jvm;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.LongStream;
import org.apache.storm.utils.Utils;

/** Compares the Java side with the golden frames: FILE. With a second argument it prints what it would write. */
public final class GoldenFrames {
    private static final Map<String, String> READ = new TreeMap<>(Map.ofEntries(
        Map.entry("setup", "[0, {topology=words, component=count, task=7}]"),
        Map.entry("tuples", "[1, 42, split, default, 3, [[word, 1, 1099511627776, 1.5, null, true, 00ff, [1, a], {k=-1}], "
            + "[Zürich 𝄞, -129, -2147483649, -0.0, null, false, , [], {}]]]"),
        Map.entry("java-values", "[1, 1, typed, default, 3, [[5L]]]"),
        Map.entry("tick", "[1, 0, __system, __tick, -1, [[5]]]"),
        Map.entry("next", "[2, 512]"),
        Map.entry("plain-tuples", "[9, 42, split, default, 3, [[word, a\0b, 1, 1.5, null, 00ff, null], "
            + "[Zürich 𝄞, , 1099511627776, -0.0, true, , null], [null, c, null, 0.25, false, 6162, null]]]"),
        Map.entry("acked", "[3, [1099511627777, 2]]"),
        Map.entry("failed", "[4, [1099511627779, 1]]"),
        Map.entry("activate", "[5]"),
        Map.entry("deactivate", "[6]"),
        Map.entry("ping", "[7]"),
        Map.entry("task-ids", "[8, [3, 4]]"),
        Map.entry("plan", "[10, [[split, [2, 3]], [count, [4]]]]")));

    private GoldenFrames() { }

    public static void main(String[] arguments) throws Exception {
        Map<String, String> golden = new LinkedHashMap<>();
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            String[] parts = line.split(": ");
            golden.put(parts[0], parts[1]);
        }
        Values values = new Values(new HashMap<>(Utils.readDefaultConfig()));
        for (Map.Entry<String, String> each : READ.entrySet()) {
            byte[] frame = bytes(golden.remove(each.getKey()));
            check(each.getKey(), frame.length - 4 + "", ByteBuffer.wrap(frame).getInt() + "");
            Object read = new MsgReader(Arrays.copyOfRange(frame, 4, frame.length), values::read).value();
            if (each.getKey().startsWith("plain")) {
                List<Object> parts = new ArrayList<>((List<?>) read);
                parts.add(rows((byte[]) parts.remove(parts.size() - 1)));
                read = parts;
            }
            check(each.getKey(), each.getValue(), shown(read));
        }
        Map<String, String> written = written(values);
        if (arguments.length > 1) {
            written.forEach((name, hex) -> System.out.println(name + ": " + hex));
            return;
        }
        check("names", golden.keySet().toString(), written.keySet().toString());
        golden.forEach((name, hex) -> check(name, hex, written.get(name)));
        checkManyAnchors(values);
        checkChangedRows(values);
        checkGarbledColumns();
        checkLargeBuffers();
        System.out.println("checked " + (READ.size() + golden.size()));
    }

    private static Map<String, String> written(Values values) {
        Map<String, String> written = new LinkedHashMap<>();
        Output.Route plain = new Output.Route("default", List.of("word", "count"), false, "component 'keep'");
        Output.Route exact = new Output.Route("other", List.of("value"), true, null);
        ByteArrayOutputStream ready = new ByteArrayOutputStream();
        new Output(ready, values).ready(1234, "17.0.1");
        written.put("ready", hex(ready.toByteArray()));
        written.put("emit", of(values, out -> {
            out.emit(plain, 0, List.of("a", List.of()), null);
            out.emit(plain, 0, Arrays.asList("Zürich 𝄞", null), null);
        }));
        written.put("emit-anchored", of(values, out -> {
            out.emit(plain, 0, List.of(List.of(true, 1.5), Map.of("k", new byte[] {0, 1})), new long[] {42, 43});
            out.emit(plain, 0, List.of("a", -2147483649L), new long[] {42});
            out.emit(plain, 0, List.of("b", 128), null);
        }));
        written.put("emit-direct", of(values, out -> out.emit(plain, 7, List.of("a", 1), null)));
        written.put("emit-exact", of(values, out -> out.emit(exact, 0, List.of(5L), null)));
        written.put("ask", of(values, out -> out.ask(out.emit(plain, 0, List.of("a", 1), new long[] {42}))));
        written.put("ack-fail-done", of(values, out -> {
            out.ack(42);
            out.ack(43);
            out.ack(45);
            out.fail(44);
            out.done(45);
        }));
        written.put("turn-over", of(values, out -> out.frame(Frames.TURN_OVER)));
        written.put("pong", of(values, out -> out.frame(Frames.PONG)));
        written.put("error", of(values, out -> out.frame(Frames.ERROR, "java.lang.Error", "no", "java.lang.Error: no\n")));
        written.put("metrics", of(values, out -> out.frame(Frames.METRICS, Map.of("seen", 3L), Map.of("load", 0.5))));
        written.put("end", of(values, out -> out.frame(Frames.END)));
        written.put("emit-plain", of(values, out -> {
            out.emit(plain, 0, List.of("a", 1), null);
            out.emit(plain, 0, Arrays.asList("Zürich 𝄞", null), null);
        }));
        written.put("emit-plain-anchored", of(values, out -> {
            out.emit(plain, 0, List.of("a", 2147483648L), new long[] {42});
            out.emit(plain, 0, List.of("b", -1), new long[] {43});
            out.emit(plain, 0, Arrays.asList(null, 1.5), new long[] {42}); // another type begins another frame
            out.emit(plain, 0, List.of("", -0.0), null);
            out.emit(plain, 0, List.of("c", 0.25), new long[] {44});
            out.emit(plain, 0, List.of("\0", true), new long[] {43}); // no columns
        }));
        written.put("emit-plain-ask", of(values, out -> {
            out.emit(plain, 0, List.of("a", 1), null);
            out.ask(out.emit(plain, 0, Arrays.asList(null, 2), new long[] {42}));
        }));
        return written;
    }

    /** Ids count for the size of a frame: with 10,000 anchors each, no two rows share one. */
    private static void checkManyAnchors(Values values) {
        Output.Route route = new Output.Route("default", List.of("sum"), false, "component 'keep'");
        ByteBuffer written = ByteBuffer.wrap(bytes(of(values, out -> {
            for (int i = 0; i < 10; i++) {
                out.emit(route, 0, List.of(i), LongStream.range(1, 10_001).toArray());
            }
        })));
        int frames = 0;
        for (; written.hasRemaining(); frames++) {
            int length = written.getInt();
            written.position(written.position() + length);
        }
        check("frames", "10", frames + "");
    }

    /** A question has the row that was emitted, also if its list has changed since. */
    private static void checkChangedRows(Values values) {
        Output.Route route = new Output.Route("default", List.of("word", "count"), false, "component 'keep'");
        for (Object second : new Object[] {1, List.of(1)}) { // a row of columns, and another one
            List<Object> row = new ArrayList<>(List.of("a", second));
            String asked = of(values, out -> out.ask(out.emit(route, 0, row, null)));
            check("changed", asked, of(values, out -> {
                long number = out.emit(route, 0, row, null);
                row.set(1, new java.util.Date(0));
                out.ask(number);
            }));
            row.set(1, second);
            check("cleared", asked, of(values, out -> {
                long number = out.emit(route, 0, row, null);
                row.clear();
                out.ask(number);
            }));
        }
    }

    /** What is not in the encoding is refused; no other text takes its place. */
    private static void checkGarbledColumns() {
        String[] payloads = {
            "020000000100" + "0400" + "03000000" + "6100" + "ff", // not UTF-8
            "010000000100" + "0500" + "05000000" + "01000000" + "c3", // half a character
            "020000000100" + "0400" + "03000000" + "616263", // one text for two rows
            "010000000100" + "0400" + "03000000" + "610062", // two texts for one row
            "010000000100" + "0600" + "05000000" + "02000000" + "61", // bytes behind the end
            "010000000100" + "0600" + "05000000" + "00000000" + "61", // bytes of no value
            "010000000100" + "0200" + "07000000" + "01000000000000", // an int of seven bytes
            "010000000100" + "0700" + "00000000", // an unknown kind
            "010000000100" + "0400" + "e7030000" + "61", // a column behind the end
        };
        for (String each : payloads) {
            try {
                rows(bytes(each));
            } catch (RuntimeException refused) {
                continue;
            }
            throw new AssertionError("read: " + each);
        }
        check("replacement", "[[\ufffd]]", shown(rows(bytes("010000000100" + "0400" + "03000000" + "efbfbd"))));
    }

    /** A text of 1 MiB takes three times its size for a moment, and no longer. */
    private static void checkLargeBuffers() {
        MsgWriter buffer = new MsgWriter();
        buffer.text("x".repeat(1 << 20));
        check("large", "true", (buffer.bytes.length > 3 << 20) + "");
        buffer.clear();
        check("cleared", "0 of 4096", buffer.length + " of " + buffer.bytes.length);
    }

    private interface Writing {
        void to(Output out);
    }

    private static String of(Values values, Writing writing) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        Output out = new Output(bytes, values);
        out.ready(1234, "17.0.1");
        bytes.reset();
        writing.to(out);
        out.flush();
        return hex(bytes.toByteArray());
    }

    private static List<Object> rows(byte[] payload) {
        PlainReader reader = new PlainReader(payload);
        reader.decode();
        List<Object> rows = new ArrayList<>();
        for (int row = 0; row < reader.rows(); row++) {
            rows.add(reader.next());
        }
        return rows;
    }

    private static String shown(Object value) {
        if (value instanceof byte[]) {
            return hex((byte[]) value);
        }
        if (value instanceof Long && (Long) value == ((Long) value).intValue()) {
            return value + "L";
        }
        if (value instanceof List) {
            StringBuilder text = new StringBuilder("[");
            for (Object each : (List<?>) value) {
                text.append(text.length() > 1 ? ", " : "").append(shown(each));
            }
            return text + "]";
        }
        return String.valueOf(value);
    }

    private static String hex(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (byte each : bytes) {
            text.append(String.format("%02x", each));
        }
        return text.toString();
    }

    private static byte[] bytes(String hex) {
        byte[] bytes = new byte[hex.length() / 2];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
        }
        return bytes;
    }

    private static void check(String name, String expected, String got) {
        if (!expected.equals(got)) {
            throw new AssertionError(name + ": expected " + expected + ", got " + got);
        }
    }
}
