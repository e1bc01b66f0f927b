package demo;

import java.util.HashMap;
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

/** A word count, as one writes it for Storm; the spout ends after so many lines. */
public final class Words {
    private Words() { }

    /** Emits each line until it is acked, and ends when all are; at most once, each is acked at once. */
    public static class Lines extends BaseRichSpout {
        final int count;
        int next;
        private int acked;
        private SpoutOutputCollector collector;
        private final java.util.ArrayDeque<Integer> failed = new java.util.ArrayDeque<>();

        public Lines(int count) {
            this.count = count;
        }

        @Override
        public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector given) {
            collector = given;
        }

        @Override
        public void nextTuple() {
            Integer number = failed.poll();
            if (number == null && next < count) {
                number = next++;
            }
            if (number != null) {
                collector.emit(new Values("the word w" + number % 100 + " of the line", number), number);
            }
        }

        @Override
        public void fail(Object id) {
            failed.add((Integer) id);
        }

        @Override
        public void ack(Object id) {
            acked++;
        }

        public boolean hasEnded() {
            return acked == count;
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("line", "number"));
        }
    }

    /** Ends when all lines are emitted, whatever becomes of them. */
    public static final class Early extends Lines {
        public Early(int count) {
            super(count);
        }

        @Override
        public boolean hasEnded() {
            return next == count;
        }
    }

    /** Emits numbers, but a list for 3, which Python refuses as a key; then the number again. */
    public static final class Listed extends BaseRichSpout {
        private int next;
        private int acked;
        private SpoutOutputCollector collector;

        @Override
        public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector given) {
            collector = given;
            collector.emit(new Values(-1));
        }

        @Override
        public void nextTuple() {
            if (next < 10) {
                Object value = next == 3 ? java.util.List.of(next) : (Object) next;
                collector.emit(new Values(value), next++);
            }
        }

        @Override
        public void fail(Object id) {
            collector.emit(new Values(id), id);
        }

        @Override
        public void ack(Object id) {
            acked++;
        }

        public boolean hasEnded() {
            return acked == 10;
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("value"));
        }
    }

    /** Splits lines. */
    public static final class Split extends BaseBasicBolt {
        @Override
        public void execute(Tuple tuple, BasicOutputCollector collector) {
            for (String word : tuple.getString(0).split(" ")) {
                collector.emit(new Values(word, tuple.getValueByField("number")));
            }
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("word", "number"));
        }
    }

    /** Counts words. */
    public static final class Count extends BaseRichBolt {
        private OutputCollector collector;
        private final Map<String, Integer> counts = new HashMap<>();

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector given) {
            collector = given;
        }

        @Override
        public void execute(Tuple tuple) {
            String word = tuple.getString(0);
            int count = counts.merge(word, 1, Integer::sum);
            collector.emit(tuple, new Values(word, count));
            collector.ack(tuple);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("word", "count"));
        }
    }
}
