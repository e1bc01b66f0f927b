package bench;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;
import org.apache.storm.utils.TupleUtils;

/** The spout and the bolt of `simplified_word_count.py` and `word_bolts.py`, with the same records. */
public final class WordCount {
    private WordCount() { }

    /** The records of a task, as `bench_record.CountLog` writes them; both clocks are CLOCK_MONOTONIC. */
    static final class CountLog {
        private static final long TICK_NS = 100_000_000;
        private final String stem;
        private long nextNs;

        CountLog(Map<String, Object> conf, TopologyContext context) {
            stem = conf.get("folder") + "/" + context.getThisComponentId() + "-" + context.getThisTaskIndex();
        }

        void note(long count) {
            long now = System.nanoTime();
            if (now - nextNs >= 0 || nextNs == 0) {
                nextNs = now + TICK_NS / 2;
                write(".log", now / 1e9 + " " + count + "\n", StandardOpenOption.APPEND);
            }
        }

        void conclude(String result) {
            write(".json", result, StandardOpenOption.TRUNCATE_EXISTING);
        }

        private void write(String suffix, String text, StandardOpenOption option) {
            try {
                Files.writeString(Path.of(stem + suffix), text, StandardOpenOption.CREATE, option);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }

    /** Emits the words of the list repeatedly, until the stop file exists or the rounds are over. */
    public static final class Words extends BaseRichSpout {
        private final List<String> words;
        private final boolean acked;
        private SpoutOutputCollector collector;
        private CountLog log;
        private Path stop;
        private int rounds;
        private int done;
        private int next;
        private long id;
        private boolean ended;

        public Words(List<String> words, boolean acked) {
            this.words = words;
            this.acked = acked;
        }

        @Override
        public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector given) {
            collector = given;
            log = new CountLog(conf, context);
            stop = Path.of((String) conf.get("folder"), "stop");
            rounds = ((Number) conf.get("rounds")).intValue();
        }

        @Override
        public void nextTuple() {
            if (ended) {
                return;
            }
            if (next == 0) {
                if (rounds > 0 ? done == rounds : Files.exists(stop)) {
                    ended = true;
                    log.conclude(String.valueOf(done));
                    return;
                }
                log.note((long) done * words.size());
            }
            Values values = new Values(words.get(next));
            if (acked) {
                collector.emit(values, id++);
            } else {
                collector.emit(values);
            }
            next = (next + 1) % words.size();
            done += next == 0 ? 1 : 0;
        }

        public boolean hasEnded() {
            return ended;
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("word"));
        }
    }

    /** Counts words. */
    public static final class Count extends BaseRichBolt {
        private final Map<String, Integer> counts = new HashMap<>();
        private OutputCollector collector;
        private CountLog log;
        private long total;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector given) {
            collector = given;
            log = new CountLog(conf, context);
        }

        @Override
        public void execute(Tuple tuple) {
            if (TupleUtils.isTick(tuple)) {
                log.note(total);
                return;
            }
            counts.merge(tuple.getString(0), 1, Integer::sum);
            total++;
            collector.ack(tuple);
        }

        @Override
        public void cleanup() {
            StringBuilder json = new StringBuilder("{");
            counts.forEach((word, count) ->
                json.append(json.length() > 1 ? "," : "").append('"').append(word).append("\":").append(count));
            log.conclude(json + "}");
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) { }
    }
}
