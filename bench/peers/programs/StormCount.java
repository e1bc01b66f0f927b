import java.nio.file.*;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.*;
import org.apache.storm.topology.*;
import org.apache.storm.topology.base.*;
import org.apache.storm.tuple.*;
import org.apache.storm.utils.TupleUtils;

/** A word count on Storm in this JVM: StormCount WORDS WARM_UP_S WINDOW_S ACKED BLOCKS. */
public final class StormCount {
    static final LongAdder COUNTED = new LongAdder();
    static final Map<String, Long> COUNTS = new ConcurrentHashMap<>();
    static volatile boolean stopped;
    static volatile long sentBlocks;

    /** Emits the words, over and over; with ids where acks are on. */
    public static final class Words extends BaseRichSpout {
        private final String[] words;
        private final boolean acked;
        private SpoutOutputCollector collector;
        private int at;
        private long id;

        Words(String[] words, boolean acked) {
            this.words = words;
            this.acked = acked;
        }

        @Override
        public void open(Map<String, Object> config, TopologyContext context, SpoutOutputCollector collector) {
            this.collector = collector;
        }

        @Override
        public void nextTuple() {
            if (at == 0 && stopped) {
                return;
            }
            if (acked) {
                collector.emit(new Values(words[at]), id++);
            } else {
                collector.emit(new Values(words[at]));
            }
            if (++at == words.length) {
                at = 0;
                sentBlocks++;
            }
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("word"));
        }
    }

    /** Counts; acks where acks are on. */
    public static final class Count extends BaseRichBolt {
        private final boolean acked;
        private OutputCollector collector;
        private final Map<String, Long> counts = new HashMap<>();
        private long since;

        Count(boolean acked) {
            this.acked = acked;
        }

        @Override
        public void prepare(Map<String, Object> config, TopologyContext context, OutputCollector collector) {
            this.collector = collector;
        }

        @Override
        public void execute(Tuple tuple) {
            if (TupleUtils.isTick(tuple)) {
                COUNTS.putAll(counts);
                COUNTED.add(since);
                since = 0;
                return;
            }
            counts.merge(tuple.getString(0), 1L, Long::sum);
            if (++since == 1000) {
                COUNTED.add(since);
                since = 0;
            }
            if (acked) {
                collector.ack(tuple);
            }
        }

        @Override
        public Map<String, Object> getComponentConfiguration() {
            return Map.of(Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS, 1);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
        }
    }

    public static void main(String[] arguments) throws Exception {
        String[] words = new String(Files.readAllBytes(Paths.get(arguments[0])), "UTF-8").trim().split("\\s+");
        double warmUp = Double.parseDouble(arguments[1]);
        double window = Double.parseDouble(arguments[2]);
        boolean acked = Boolean.parseBoolean(arguments[3]);
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("words", new Words(words, acked), 1);
        builder.setBolt("count", new Count(acked), 1).fieldsGrouping("words", new Fields("word"));
        Config config = new Config();
        config.setNumWorkers(1);
        config.setNumAckers(acked ? 1 : 0);
        config.put(Config.TOPOLOGY_PRODUCER_BATCH_SIZE, 1000);
        config.put(Config.TOPOLOGY_BOLT_WAIT_STRATEGY, "org.apache.storm.policy.WaitStrategyPark");
        config.put(Config.TOPOLOGY_DISABLE_LOADAWARE_MESSAGING, true);
        config.put(Config.TOPOLOGY_STATS_SAMPLE_RATE, 0.0001);
        config.put(Config.TOPOLOGY_MAX_SPOUT_PENDING, acked ? 10000 : null);
        try (LocalCluster cluster = new LocalCluster();
                LocalCluster.LocalTopology topology = cluster.submitTopology("words", config, builder.createTopology())) {
            while (COUNTED.sum() == 0) {
                Thread.sleep(10);
            }
            Thread.sleep((long) (warmUp * 1000));
            long startNs = System.nanoTime();
            long first = COUNTED.sum();
            Thread.sleep((long) (window * 1000));
            long last = COUNTED.sum();
            double seconds = (System.nanoTime() - startNs) / 1e9;
            stopped = true;
            boolean right = false;
            for (int look = 0; look < 100 && !right; look++) {
                Thread.sleep(200);
                long blocks = sentBlocks;
                right = COUNTS.size() == words.length && COUNTS.values().stream().allMatch(each -> each == blocks);
            }
            System.out.printf(Locale.ROOT, "{\"per_s\": %.1f, \"counted\": %d, \"right\": %b}%n", (last - first) / seconds, last, right);
            System.out.flush();
            Runtime.getRuntime().halt(0);
        }
    }
}
