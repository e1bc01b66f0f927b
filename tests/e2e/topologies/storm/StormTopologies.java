package heron.tests;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.storm.Config;
import org.apache.storm.StormSubmitter;
import org.apache.storm.generated.ComponentObject;
import org.apache.storm.generated.GlobalStreamId;
import org.apache.storm.generated.ShellComponent;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.grouping.CustomStreamGrouping;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.state.KeyValueState;
import org.apache.storm.starter.bolt.SingleJoinBolt;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.ShellBolt;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.task.WorkerTopologyContext;
import org.apache.storm.topology.BasicOutputCollector;
import org.apache.storm.topology.IRichBolt;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.topology.base.BaseBasicBolt;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.topology.base.BaseStatefulBolt;
import org.apache.storm.topology.base.BaseWindowedBolt;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;
import org.apache.storm.utils.TupleUtils;
import org.apache.storm.utils.Utils;
import org.apache.storm.windowing.TupleWindow;

/** Topologies with exact results: KIND NAME OUT COUNT [KEY=VALUE...]. What they receive is in files of the folder OUT. */
public final class StormTopologies {
    private StormTopologies() {
    }

    public static void main(String[] args) throws Exception {
        String kind = args[0];
        if (kind.equals("exit")) {
            System.exit(3);
        } else if (kind.equals("throws")) {
            throw new IllegalStateException("main has its reason");
        } else if (kind.equals("nothing")) {
            return;
        } else if (kind.equals("hang")) {
            new java.util.concurrent.CountDownLatch(1).await();
        }
        System.out.println("main has " + args.length + " arguments");
        String name = args[1];
        Path out = Path.of(args[2]);
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("numbers", new Numbers(out.toString(), Integer.parseInt(args[3])));
        Config conf = new Config();
        conf.setMaxSpoutPending(200);
        for (String each : Arrays.asList(args).subList(4, args.length)) {
            String[] pair = each.split("=", 2);
            conf.put(pair[0], pair[1].matches("\\d+") ? (Object) Integer.valueOf(pair[1]) : pair[1]);
        }
        StormTopology topology = build(kind, builder, out.toString(), args[3]);
        StormSubmitter.submitTopology(name, conf, topology);
        if (kind.equals("twice")) {
            StormSubmitter.submitTopology(name + "-again", conf, topology);
        } else if (kind.equals("exits")) {
            System.exit(4);
        }
    }

    private static StormTopology build(String kind, TopologyBuilder builder, String out, String count) {
        switch (kind) {
            case "direct":
                builder.setBolt("router", new Router(), 2).shuffleGrouping("numbers");
                builder.setBolt("sink", new Sink(out), 3).directGrouping("router", "route");
                break;
            case "following":
                builder.setBolt("router", new Following()).shuffleGrouping("numbers");
                builder.setBolt("sink", new Sink(out), 2).directGrouping("router", "route");
                builder.setBolt("modulo", new Sink(out), 2).customGrouping("numbers", new Modulo());
                break;
            case "groupings":
                builder.setBolt("plain", new Sink(out), 2).shuffleGrouping("numbers");
                builder.setBolt("whole", new Sink(out), 2).allGrouping("numbers");
                builder.setBolt("near", new Sink(out), 2).localOrShuffleGrouping("numbers");
                // falls through
            case "custom":
                builder.setBolt("modulo", new Sink(out), 3).customGrouping("numbers", new Modulo());
                builder.setBolt("everyone", new Sink(out), 2).customGrouping("numbers", new Everyone());
                builder.setBolt("partial", new Sink(out), 4).partialKeyGrouping("numbers", new Fields("text"));
                builder.setBolt("first", new Sink(out), 2).globalGrouping("numbers");
                break;
            case "ticks":
                builder.setBolt("ticking", new Ticking()).shuffleGrouping("numbers");
                builder.setBolt("sink", new Sink(out)).shuffleGrouping("ticking");
                break;
            case "windows":
                builder.setBolt("sums", new Sums().withTumblingWindow(BaseWindowedBolt.Count.of(10)))
                        .shuffleGrouping("numbers");
                builder.setBolt("sink", new Sink(out)).shuffleGrouping("sums");
                break;
            case "stateful":
                builder.setBolt("counts", new Counts(), 2).fieldsGrouping("numbers", new Fields("text"));
                builder.setBolt("sink", new Sink(out)).shuffleGrouping("counts");
                break;
            case "join":
                builder.setSpout("genders", new Pairs("gender", Integer.parseInt(count)));
                builder.setSpout("ages", new Pairs("age", Integer.parseInt(count)));
                builder.setBolt("join", new SingleJoinBolt(new Fields("gender", "age")), 2)
                        .fieldsGrouping("genders", new Fields("id"))
                        .fieldsGrouping("ages", new Fields("id"));
                builder.setBolt("sink", new Sink(out)).shuffleGrouping("join");
                break;
            case "shell":
                builder.setBolt("shout", new Sink(out)).shuffleGrouping("numbers");
                builder.setBolt("java_shout", new Shout()).shuffleGrouping("numbers");
                builder.setBolt("sink", new Sink(out), 2).shuffleGrouping("shout").shuffleGrouping("java_shout");
                StormTopology topology = builder.createTopology();
                topology.get_bolts().get("shout").get_common().put_to_streams(
                        "default", Utils.javaDeserialize(Utils.javaSerialize(
                                topology.get_bolts().get("java_shout").get_common().get_streams().get("default")),
                                org.apache.storm.generated.StreamInfo.class));
                topology.get_bolts().get("shout").set_bolt_object(
                        ComponentObject.shell(new ShellComponent("python3", "shout.py")));
                return topology;
            default:
                builder.setBolt("double", new Twice(), 2).shuffleGrouping("numbers");
                builder.setBolt("sink", new Sink(out), 2).fieldsGrouping("double", new Fields("text"));
        }
        return builder.createTopology();
    }

    /**
     * Emits each number, again after a fail. While the file "hold" is there, it emits more than COUNT. When all are acked,
     * it writes how it stands.
     */
    public static final class Numbers extends BaseRichSpout {
        private final String out;
        private final int count;
        private transient SpoutOutputCollector collector;
        private transient Deque<Integer> again;
        private transient Set<Integer> open;
        private transient Path hold;
        private transient int next;
        private transient int written;
        private transient int fails;

        Numbers(String out, int count) {
            this.out = out;
            this.count = count;
        }

        @Override
        public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector collector) {
            this.collector = collector;
            again = new ArrayDeque<>();
            open = new HashSet<>();
            hold = Path.of(out, "hold");
        }

        @Override
        public void nextTuple() {
            Integer number = again.poll();
            boolean isHeld = number == null && next >= count && Files.exists(hold);
            if (number == null && (next < count || isHeld)) {
                number = next++;
                open.add(number);
            }
            if (number == null || isHeld) {
                Utils.sleep(2);
            }
            if (number == null) {
                if (open.isEmpty() && written != next) {
                    written = next;
                    write(out, "numbers.json", String.format("{\"emitted\": %d, \"fails\": %d}", next, fails));
                }
                return;
            }
            collector.emit(new Values(number, "text" + number % 7), number);
        }

        @Override
        public void ack(Object id) {
            open.remove(id);
        }

        @Override
        public void fail(Object id) {
            fails++;
            again.add((Integer) id);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("number", "text"));
        }
    }

    /** Emits an id and its value for each number, genders upwards and ages downwards. */
    public static final class Pairs extends BaseRichSpout {
        private final String field;
        private final int count;
        private transient SpoutOutputCollector collector;
        private transient int next;

        Pairs(String field, int count) {
            this.field = field;
            this.count = count;
        }

        @Override
        public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector collector) {
            this.collector = collector;
        }

        @Override
        public void nextTuple() {
            if (next == count) {
                Utils.sleep(2);
                return;
            }
            boolean genders = field.equals("gender");
            int id = genders ? next++ : count - ++next;
            collector.emit(new Values(id, genders ? (id % 2 == 0 ? "male" : "female") : (Object) (id + 20)), id);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("id", field));
        }
    }

    /** Appends what it receives to a file of its process, with its task index, source and stream. */
    public static final class Sink extends BaseRichBolt {
        private final String out;
        private transient OutputCollector collector;
        private transient Path file;
        private transient int index;

        Sink(String out) {
            this.out = out;
        }

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            this.collector = collector;
            index = context.getThisTaskIndex();
            String process = context.getThisTaskId() + "-" + ProcessHandle.current().pid() + "-" + System.nanoTime();
            file = Path.of(out, context.getThisComponentId() + "-" + process + ".rows");
        }

        @Override
        public void execute(Tuple tuple) {
            List<String> parts = new ArrayList<>(List.of("" + index, tuple.getSourceComponent(), tuple.getSourceStreamId()));
            tuple.getValues().forEach(each -> parts.add(String.valueOf(each)));
            try {
                Files.writeString(file, String.join("\t", parts) + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
            collector.ack(tuple);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
        }
    }

    /** Sends each number to the task of its remainder. */
    public static final class Router extends BaseRichBolt {
        private transient OutputCollector collector;
        private transient List<Integer> tasks;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            this.collector = collector;
            tasks = context.getComponentTasks("sink");
        }

        @Override
        public void execute(Tuple tuple) {
            int task = tasks.get(tuple.getIntegerByField("number") % tasks.size());
            collector.emitDirect(task, "route", tuple, tuple.getValues());
            collector.ack(tuple);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declareStream("route", true, new Fields("number", "text"));
        }
    }

    /** As `Router`, with the tasks that there are when a tuple comes. */
    public static final class Following extends BaseRichBolt {
        private transient OutputCollector collector;
        private transient TopologyContext context;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            this.collector = collector;
            this.context = context;
        }

        @Override
        public void execute(Tuple tuple) {
            List<Integer> tasks = context.getComponentTasks("sink");
            int task = tasks.get(tuple.getIntegerByField("number") % tasks.size());
            collector.emitDirect(task, "route", tuple, tuple.getValues());
            collector.ack(tuple);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declareStream("route", true, new Fields("number", "text"));
        }
    }

    /** The task of the remainder. */
    public static final class Modulo implements CustomStreamGrouping {
        private List<Integer> tasks;

        @Override
        public void prepare(WorkerTopologyContext context, GlobalStreamId stream, List<Integer> targetTasks) {
            tasks = targetTasks;
        }

        @Override
        public List<Integer> chooseTasks(int taskId, List<Object> values) {
            return List.of(tasks.get(((Number) values.get(0)).intValue() % tasks.size()));
        }
    }

    /** All tasks. */
    public static final class Everyone implements CustomStreamGrouping {
        private List<Integer> tasks;

        @Override
        public void prepare(WorkerTopologyContext context, GlobalStreamId stream, List<Integer> targetTasks) {
            tasks = targetTasks;
        }

        @Override
        public List<Integer> chooseTasks(int taskId, List<Object> values) {
            return tasks;
        }
    }

    /** Emits the number of tuples since the last tick. */
    public static final class Ticking extends BaseRichBolt {
        private transient OutputCollector collector;
        private transient int ticks;
        private transient int tuples;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            this.collector = collector;
        }

        @Override
        public void execute(Tuple tuple) {
            if (TupleUtils.isTick(tuple)) {
                collector.emit(new Values(++ticks, tuples));
                tuples = 0;
            } else {
                tuples++;
            }
            collector.ack(tuple);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("tick", "tuples"));
        }

        @Override
        public Map<String, Object> getComponentConfiguration() {
            return new HashMap<>(Map.of(Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS, 1));
        }
    }

    /** The sum of each window. */
    public static final class Sums extends BaseWindowedBolt {
        private transient OutputCollector collector;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            this.collector = collector;
        }

        @Override
        public void execute(TupleWindow window) {
            collector.emit(new Values(window.get().stream().mapToInt(each -> each.getInteger(0)).sum()));
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("sum"));
        }
    }

    /** Counts texts in Storm's state. */
    public static final class Counts extends BaseStatefulBolt<KeyValueState<String, Long>> {
        private transient OutputCollector collector;
        private transient KeyValueState<String, Long> state;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            this.collector = collector;
        }

        @Override
        public void initState(KeyValueState<String, Long> state) {
            this.state = state;
        }

        @Override
        public void execute(Tuple tuple) {
            String text = tuple.getStringByField("text");
            long count = state.get(text, 0L) + 1;
            state.put(text, count);
            collector.emit(tuple, new Values(text, count));
            collector.ack(tuple);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("text", "count"));
        }
    }

    /** A program in Python as a bolt, by Storm's own class. */
    public static final class Shout extends ShellBolt implements IRichBolt {
        Shout() {
            super("python3", "shout.py");
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("number", "text"));
        }

        @Override
        public Map<String, Object> getComponentConfiguration() {
            return null;
        }
    }

    /** Emits each tuple with twice its number. */
    public static final class Twice extends BaseBasicBolt {
        @Override
        public void execute(Tuple tuple, BasicOutputCollector collector) {
            collector.emit(new Values(tuple.getInteger(0) * 2, tuple.getString(1)));
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("number", "text"));
        }
    }

    private static void write(String folder, String name, String text) {
        try {
            Path unfinished = Path.of(folder, name + ".new");
            Files.writeString(unfinished, text);
            Files.move(unfinished, Path.of(folder, name), StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
