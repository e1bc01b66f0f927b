package parts;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Map;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.BasicOutputCollector;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseBasicBolt;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;

/** The parts in Java of the topology `jvm_words.py`; `languages.py` has the same in Python. */
public final class Parts {
    private Parts() { }

    /** Emits lines until they are acked; goes on while the folder of results has a file `hold`. */
    public static final class Lines extends BaseRichSpout {
        private final String out;
        private final int least;
        private final Deque<Integer> failed = new ArrayDeque<>();
        private int next;
        private boolean ended;
        private SpoutOutputCollector collector;

        public Lines(String out, int least) {
            this.out = out;
            this.least = least;
        }

        @Override
        public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector given) {
            collector = given;
        }

        @Override
        public void nextTuple() {
            if (!failed.isEmpty()) {
                line(failed.remove());
            } else if (next < least || Files.exists(Path.of(out, "hold"))) {
                line(next++);
            } else if (!ended) {
                ended = true;
                try {
                    Files.writeString(Path.of(out, "lines-java.json"), "[" + next + "]");
                } catch (IOException error) {
                    throw new UncheckedIOException(error);
                }
            }
        }

        private void line(int number) {
            collector.emit(new Values("word" + number % 7 + " word" + number % 5, number), number);
        }

        @Override
        public void fail(Object id) {
            failed.add((Integer) id);
        }

        public boolean hasEnded() {
            return ended;
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("text", "line"));
        }
    }

    /** Splits lines. */
    public static final class Split extends BaseBasicBolt {
        @Override
        public void execute(Tuple tuple, BasicOutputCollector collector) {
            String[] words = tuple.getStringByField("text").split(" ");
            for (int place = 0; place < words.length; place++) {
                collector.emit(new Values(words[place], tuple.getValue(1), place));
            }
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("word", "line", "place"));
        }
    }

    /** Sends words on. */
    public static final class Pass extends BaseRichBolt {
        private OutputCollector collector;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector given) {
            collector = given;
        }

        @Override
        public void execute(Tuple tuple) {
            collector.emit(tuple, tuple.getValues());
            collector.ack(tuple);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("word", "line", "place"));
        }
    }
}
