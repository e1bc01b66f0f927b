import java.nio.file.*;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.*;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.*;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/** A keyed word count with Flink's DataStream, in this JVM: FlinkCount WORDS WARM_UP_S WINDOW_S PARALLELISM BLOCKS. */
public final class FlinkCount {
    static final LongAdder COUNTED = new LongAdder();
    static final Map<String, Long> NEWEST = new ConcurrentHashMap<>();

    /** Counts in keyed state on the heap; emits each new count, as a running count does. */
    static final class Count extends KeyedProcessFunction<String, String, Long> {
        private final boolean keeps;
        private transient ValueState<Long> state;
        private transient long since;

        Count(boolean keeps) {
            this.keeps = keeps;
        }

        @Override
        public void open(OpenContext context) {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
        }

        @Override
        public void processElement(String word, Context context, Collector<Long> out) throws Exception {
            Long before = state.value();
            long now = before == null ? 1 : before + 1;
            state.update(now);
            if (++since == 1000) {
                COUNTED.add(since);
                since = 0;
            }
            if (keeps) {
                NEWEST.put(word, now);
            }
            out.collect(now);
        }
    }

    static JobClient start(String[] words, int parallelism, long rows, boolean keeps) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(parallelism, new Configuration());
        env.getConfig().enableObjectReuse();
        DataGeneratorSource<String> source = new DataGeneratorSource<String>(
            (GeneratorFunction<Long, String>) index -> words[(int) (index % words.length)], rows, Types.STRING);
        env.fromSource(source, WatermarkStrategy.noWatermarks(), "words")
            .keyBy(word -> word)
            .process(new Count(keeps))
            .sinkTo(new DiscardingSink<>());
        return env.executeAsync("words");
    }

    public static void main(String[] arguments) throws Exception {
        String[] words = new String(Files.readAllBytes(Paths.get(arguments[0])), "UTF-8").trim().split("\\s+");
        double warmUp = Double.parseDouble(arguments[1]);
        double window = Double.parseDouble(arguments[2]);
        int parallelism = Integer.parseInt(arguments[3]);
        long blocks = Long.parseLong(arguments[4]);
        start(words, parallelism, blocks * words.length, true).getJobExecutionResult().get();
        boolean right = NEWEST.size() == words.length && NEWEST.values().stream().allMatch(each -> each == blocks);
        COUNTED.reset();
        JobClient job = start(words, parallelism, Long.MAX_VALUE, false);
        while (COUNTED.sum() == 0) {
            Thread.sleep(10);
        }
        Thread.sleep((long) (warmUp * 1000));
        long startNs = System.nanoTime();
        long first = COUNTED.sum();
        Thread.sleep((long) (window * 1000));
        long last = COUNTED.sum();
        double seconds = (System.nanoTime() - startNs) / 1e9;
        job.cancel().get();
        System.out.printf(Locale.ROOT, "{\"per_s\": %.1f, \"counted\": %d, \"right\": %b}%n", (last - first) / seconds, last, right);
        System.exit(0);
    }
}
