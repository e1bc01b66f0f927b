package demo;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.HashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.LockSupport;
import org.apache.storm.metric.api.CountMetric;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.ShellBolt;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.IRichBolt;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.topology.base.BaseWindowedBolt;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;
import org.apache.storm.utils.TupleUtils;
import org.apache.storm.windowing.TupleWindow;

/** Bolts that get rows (number, value). */
public final class Probes {
    private Probes() { }

    /** What the bolts share. */
    abstract static class Probe extends BaseRichBolt {
        OutputCollector collector;
        TopologyContext context;
        private final List<String> fields;

        Probe(String... fields) {
            this.fields = Arrays.asList(fields);
        }

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext given, OutputCollector to) {
            collector = to;
            context = given;
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields(fields));
        }
    }

    /** Emits each value with the name of its class. */
    public static final class Echo extends Probe {
        public Echo() {
            super("number", "value", "kind");
        }

        @Override
        public void execute(Tuple tuple) {
            Object value = tuple.getValue(1);
            String kind = value == null ? "null" : value.getClass().getSimpleName();
            collector.emit(tuple, new Values(tuple.getLong(0), value, kind));
            collector.ack(tuple);
        }
    }

    /** Emits each value twice in one; refuses 7, and never returns for a text "wait". */
    public static final class Twice extends Probe {
        public Twice() {
            super("v");
        }

        @Override
        public void execute(Tuple tuple) {
            Object value = tuple.getValue(0);
            if (value.equals(7)) {
                throw new IllegalStateException("seven is refused");
            }
            while (value.equals("wait")) {
                LockSupport.park();
            }
            Object twice = value instanceof Integer ? (Object) (2 * (Integer) value) : value + "" + value;
            collector.emit(tuple, new Values(twice));
            collector.ack(tuple);
        }
    }

    /** Emits values of many types. */
    public static final class Typed extends Probe {
        public Typed() {
            super("number", "value");
        }

        static Object value(int number) {
            Object[] values = {
                1, 1L, 1L << 40, (short) 1, (byte) 1, 1.5, 1.5f, 'c', "text", new byte[] {1, 2}, true, null,
                new ArrayList<>(List.of(1, 1L, "x")), Map.of("key", 1L), new Date(86_400_000L), new int[] {1, 2},
                new TreeSet<>(List.of("a", "b")), new java.math.BigInteger("12345678901234567890"),
                new HashMap<>(Map.of(1L, "x")), new HashMap<Object, Object>(Map.of(1, "a", 1L, "b")),
                new LinkedList<>(List.of(1L)), new TreeMap<>(Map.of("a", 1)),
            };
            return values[number];
        }

        @Override
        public void execute(Tuple tuple) {
            int number = tuple.getInteger(0);
            collector.emit(tuple, new Values(number, value(number)));
            collector.ack(tuple);
        }
    }

    /** Says whether a value has arrived as `Typed` has emitted it. */
    public static final class Same extends Probe {
        public Same() {
            super("number", "same");
        }

        @Override
        public void execute(Tuple tuple) {
            Object expected = Typed.value(tuple.getInteger(0));
            Object got = tuple.getValue(1);
            boolean same = expected == null ? got == null : expected.getClass() == got.getClass()
                && Arrays.deepEquals(new Object[] {expected}, new Object[] {got});
            same |= expected instanceof Map && got instanceof Map && expected.equals(got);
            collector.emit(tuple, new Values(tuple.getInteger(0), same));
            collector.ack(tuple);
        }
    }

    /** Emits the ids of the tasks that have received the row, and its own id, component and configuration. */
    public static final class Tasks extends Probe {
        private String name;

        public Tasks() {
            super("number", "told");
        }

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext given, OutputCollector to) {
            super.prepare(conf, given, to);
            name = conf.get("topology.name") + " " + given.getThisComponentId() + " " + given.getThisTaskId() + " "
                + given.getComponentTasks("keep") + " " + given.getThisSources().keySet().iterator().next()
                + " " + given.getComponentOutputFields("numbers", "default");
        }

        @Override
        public void execute(Tuple tuple) {
            List<Integer> tasks = collector.emit(tuple, new Values(tuple.getInteger(0), name));
            collector.ack(tuple);
            collector.emit(new Values(tuple.getInteger(0), new ArrayList<>(tasks)));
        }
    }

    /** Emits and acks in a thread of its own. */
    public static final class Threads extends Probe {
        private transient ExecutorService threads;

        public Threads() {
            super("number", "double");
        }

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext given, OutputCollector to) {
            super.prepare(conf, given, to);
            threads = Executors.newFixedThreadPool(3);
        }

        @Override
        public void execute(Tuple tuple) {
            threads.execute(() -> {
                collector.emit(tuple, new Values(tuple.getInteger(0), 2 * tuple.getInteger(0)));
                collector.ack(tuple);
            });
        }
    }

    /** Doubles numbers in a program that speaks Storm's multilang protocol with Storm's own class. */
    public static final class Shell extends ShellBolt implements IRichBolt {
        public Shell(String script) {
            super("python3", script);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("number", "tasks"));
        }

        @Override
        public Map<String, Object> getComponentConfiguration() {
            return null;
        }
    }

    /** Wants ticks by its own configuration. */
    public static final class WantsTicks extends Probe {
        public WantsTicks() {
            super("number", "value", "kind");
        }

        @Override
        public void execute(Tuple tuple) { }

        @Override
        public Map<String, Object> getComponentConfiguration() {
            return Map.of("topology.tick.tuple.freq.secs", 5);
        }
    }

    /** Counts ticks, and holds all tuples until the third. */
    public static final class Ticks extends Probe {
        private final List<Tuple> held = new ArrayList<>();
        private int ticks;
        private transient CountMetric seen;

        public Ticks() {
            super("number", "ticks");
        }

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext given, OutputCollector to) {
            super.prepare(conf, given, to);
            seen = given.registerMetric("seen", new CountMetric(), 1);
        }

        @Override
        public void execute(Tuple tuple) {
            if (!TupleUtils.isTick(tuple)) {
                held.add(tuple);
                seen.incr();
            } else if (++ticks >= 3) {
                for (Tuple each : held) {
                    collector.emit(each, new Values(each.getInteger(0), ticks));
                    collector.ack(each);
                }
                held.clear();
            }
        }
    }

    /** Sums of 10 numbers. */
    public static final class Sums extends BaseWindowedBolt {
        private OutputCollector collector;

        public Sums() {
            withTumblingWindow(Count.of(10));
        }

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext given, OutputCollector to) {
            collector = to;
        }

        @Override
        public void execute(TupleWindow window) {
            int sum = 0;
            for (Tuple each : window.get()) {
                sum += each.getInteger(0);
            }
            collector.emit(new Values(window.get().size(), sum));
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("number", "sum"));
        }
    }

    /** Doubles numbers, and does what its first argument says; a marker file tells later processes not to. */
    public static final class Hostile extends Probe {
        private final String how;
        private final String marker;
        private int seen;

        public Hostile(String how, String marker) {
            super("number", "double");
            this.how = how;
            this.marker = marker;
        }

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext given, OutputCollector to) {
            super.prepare(conf, given, to);
            if (how.equals("prepare")) {
                throw new IllegalStateException("no connection to the database");
            }
            if (how.equals("early")) {
                collector.emit(new Values(-1, -2));
            }
        }

        @Override
        public void execute(Tuple tuple) {
            int number = tuple.getInteger(0);
            if (++seen == 20) {
                misbehave(tuple);
            }
            if (how.equals("throws") && number == 7) {
                throw new IllegalStateException("seven is refused");
            }
            if (how.equals("fails") && number == 7) {
                collector.fail(tuple);
                collector.ack(tuple); // has no effect, as in Storm
                return;
            }
            if (how.equals("surrogate") && number == 7) {
                throw new IllegalStateException("half \ud800");
            }
            Object twice = how.equals("date") && number == 7 ? new Date(0) : (Object) (2 * number);
            collector.emit(tuple, new Values(number, twice));
            collector.ack(tuple);
        }

        private void misbehave(Tuple tuple) {
            switch (how) {
                case "prints":
                    System.out.println("printed on stdout");
                    break;
                case "reports":
                    collector.reportError(new IllegalArgumentException("a wrong record"));
                    break;
                case "fields":
                    try {
                        collector.emit(tuple, new Values(1, 2, 3));
                    } catch (IllegalArgumentException error) {
                        collector.reportError(error);
                    }
                    break;
                default:
                    end();
            }
        }

        private void end() {
            try {
                Files.createFile(Path.of(marker));
            } catch (IOException again) {
                return;
            }
            switch (how) {
                case "exit":
                    System.err.println("the reason");
                    System.exit(3);
                    break;
                case "memory":
                    byte[][] much = new byte[1 << 20][];
                    for (int i = 0; i < much.length; i++) {
                        much[i] = new byte[1 << 20];
                    }
                    break;
                case "hang":
                    while (true) {
                        Thread.onSpinWait();
                        try {
                            Thread.sleep(1000);
                        } catch (InterruptedException ignored) {
                            // it hangs
                        }
                    }
                case "garbage":
                    try (java.io.OutputStream out = new java.io.FileOutputStream(java.io.FileDescriptor.out)) {
                        out.write("HTTP/1.1 200 OK\r\n\r\n".getBytes());
                        Thread.sleep(5000);
                    } catch (IOException | InterruptedException ignored) {
                        // it is killed
                    }
                    break;
                default:
            }
        }
    }
}
