import java.io.Serializable;
import java.util.*;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.*;
import org.apache.flink.api.common.typeinfo.*;
import org.apache.flink.api.java.tuple.*;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.*;
import org.apache.flink.streaming.api.datastream.*;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.functions.windowing.ProcessAllWindowFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.*;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

/**
 * Queries of Nexmark, and the Yahoo streaming benchmark, with Flink's DataStream in this JVM: FlinkQueries QUERY BLOCK
 * ROUNDS PARALLELISM. A block of events is generated first, and replayed, each time later; the first run warms up.
 */
public final class FlinkQueries {
    static final int SKIP = 123;
    static final AtomicLong BEGAN_NS = new AtomicLong();
    static final LongAdder RESULTS = new LongAdder();
    static final LongAdder SUM = new LongAdder();

    /** The number of a result that is summed up. */
    interface Amount<T> extends Serializable {
        long of(T result);
    }

    /** The time of an event, in milliseconds. */
    interface Time<T> extends Serializable {
        long of(T event);
    }

    /** An event of the block, so much later. */
    interface Replay<T> extends Serializable {
        T at(int place, long laterMs);
    }

    /** Counts and sums the results that pass. */
    static final class Tally<T> extends RichFilterFunction<T> {
        private final Amount<T> amount;
        private transient long results;
        private transient long sum;

        Tally(Amount<T> amount) {
            this.amount = amount;
        }

        @Override
        public boolean filter(T result) {
            results++;
            sum += amount.of(result);
            return true;
        }

        @Override
        public void close() {
            RESULTS.add(results);
            SUM.add(sum);
        }
    }

    /** Counts the elements of a window. */
    static final class Count<T> implements AggregateFunction<T, Long, Long> {
        @Override
        public Long createAccumulator() {
            return 0L;
        }

        @Override
        public Long add(T element, Long count) {
            return count + 1;
        }

        @Override
        public Long getResult(Long count) {
            return count;
        }

        @Override
        public Long merge(Long one, Long other) {
            return one + other;
        }
    }

    /** Keeps the elements of a window with the largest amount. */
    static final class Largest<T> implements AggregateFunction<T, List<T>, List<T>> {
        private final Amount<T> amount;

        Largest(Amount<T> amount) {
            this.amount = amount;
        }

        @Override
        public List<T> createAccumulator() {
            return new ArrayList<>();
        }

        @Override
        public List<T> add(T element, List<T> largest) {
            long order = largest.isEmpty() ? 1 : Long.compare(amount.of(element), amount.of(largest.get(0)));
            if (order > 0) {
                largest.clear();
            }
            if (order >= 0) {
                largest.add(element);
            }
            return largest;
        }

        @Override
        public List<T> getResult(List<T> largest) {
            return largest;
        }

        @Override
        public List<T> merge(List<T> one, List<T> other) {
            other.forEach(each -> add(each, one));
            return one;
        }
    }

    /** Adds the start of the window, and the key, to its count. */
    static final class WithPlace<K> extends ProcessWindowFunction<Long, Tuple3<Long, K, Long>, K, TimeWindow> {
        @Override
        public void process(K key, Context context, Iterable<Long> counts, Collector<Tuple3<Long, K, Long>> out) {
            out.collect(Tuple3.of(context.window().getStart(), key, counts.iterator().next()));
        }
    }

    /** Gives the elements of the list of a window one by one. */
    static final class Each<T> extends ProcessAllWindowFunction<List<T>, T, TimeWindow> {
        @Override
        public void process(Context context, Iterable<List<T>> lists, Collector<T> out) {
            lists.iterator().next().forEach(out::collect);
        }
    }

    private final StreamExecutionEnvironment env;
    private final int block;
    private final long rounds;
    private final int parallelism;

    FlinkQueries(int block, long rounds, int parallelism) {
        env = StreamExecutionEnvironment.createLocalEnvironment(parallelism, new Configuration());
        env.getConfig().enableObjectReuse();
        this.block = block;
        this.rounds = rounds;
        this.parallelism = parallelism;
    }

    /**
     * The events in the order of their times, in each of the parallel sources: the source gives each of them a range of
     * indexes, so index i of range r is the event i * parallelism + r.
     */
    <T> SingleOutputStreamOperator<T> source(Replay<T> replay, Time<T> time, Class<T> type) {
        int size = block;
        int sources = parallelism;
        long total = size * rounds;
        long range = total / sources;
        long blockMs = size * NexmarkEvents.DELAY_US / 1000;
        GeneratorFunction<Long, T> give = index -> {
            if (index % range == 0) {
                BEGAN_NS.compareAndSet(0, System.nanoTime());
            }
            long number = index % range * sources + index / range;
            return replay.at((int) (number % size), number / size * blockMs);
        };
        WatermarkStrategy<T> ordered =
            WatermarkStrategy.<T>forMonotonousTimestamps().withTimestampAssigner((event, before) -> time.of(event));
        return env.fromSource(
            new DataGeneratorSource<>(give, total, TypeInformation.of(type)), ordered, "events");
    }

    <T> void end(SingleOutputStreamOperator<T> results, Amount<T> amount) {
        results.filter(new Tally<>(amount)).sinkTo(new DiscardingSink<>());
    }

    /** Builds the query on Nexmark. */
    void nexmark(String query, Replay<NexmarkEvents.Event> replay) {
        SingleOutputStreamOperator<NexmarkEvents.Event> events =
            source(replay, event -> event.time, NexmarkEvents.Event.class);
        if (query.equals("q0")) {
            end(events.map(event -> event).returns(NexmarkEvents.Event.class), FlinkQueries::priceOf);
            return;
        }
        if (query.equals("q8")) {
            end(sellers(events), found -> found.f0);
            return;
        }
        SingleOutputStreamOperator<NexmarkEvents.Bid> bids = events
            .filter(event -> event instanceof NexmarkEvents.Bid)
            .map(event -> (NexmarkEvents.Bid) event).returns(NexmarkEvents.Bid.class);
        switch (query) {
            case "q1" -> end(bids.map(FlinkQueries::inEuro).returns(NexmarkEvents.Bid.class), bid -> bid.price);
            case "q2" -> end(bids.filter(bid -> bid.auction % SKIP == 0).map(bid -> Tuple2.of(bid.auction, bid.price))
                .returns(Types.TUPLE(Types.LONG, Types.LONG)), bid -> bid.f1);
            case "q5" -> end(hottest(bids), found -> found.f2);
            case "q7" -> end(highest(bids), bid -> bid.f2);
            default -> throw new IllegalArgumentException("no query " + query);
        }
    }

    static long priceOf(NexmarkEvents.Event event) {
        return event instanceof NexmarkEvents.Bid bid ? bid.price : 0;
    }

    static NexmarkEvents.Bid inEuro(NexmarkEvents.Bid bid) {
        NexmarkEvents.Bid made = (NexmarkEvents.Bid) bid.later(0);
        made.price = bid.price * 89 / 100;
        return made;
    }

    /** The auctions with the most bids of each window: its start, the auction, and the count. */
    static SingleOutputStreamOperator<Tuple3<Long, Long, Long>> hottest(DataStream<NexmarkEvents.Bid> bids) {
        TypeInformation<Tuple3<Long, Long, Long>> type = Types.TUPLE(Types.LONG, Types.LONG, Types.LONG);
        return bids.map(bid -> bid.auction).returns(Types.LONG)
            .keyBy(auction -> auction)
            .window(SlidingEventTimeWindows.of(java.time.Duration.ofSeconds(10), java.time.Duration.ofSeconds(5)))
            .aggregate(new Count<>(), new WithPlace<>(), Types.LONG, Types.LONG, type)
            .windowAll(TumblingEventTimeWindows.of(java.time.Duration.ofSeconds(5)))
            .aggregate(new Largest<>(found -> found.f2), new Each<>(), Types.LIST(type), Types.LIST(type), type);
    }

    /** The bids with the highest price of each window: auction, bidder, price. Each source's part is reduced first. */
    static SingleOutputStreamOperator<Tuple4<Long, Long, Long, Integer>> highest(DataStream<NexmarkEvents.Bid> bids) {
        TypeInformation<Tuple4<Long, Long, Long, Integer>> type =
            Types.TUPLE(Types.LONG, Types.LONG, Types.LONG, Types.INT);
        return bids.map(bid -> Tuple4.of(bid.auction, bid.bidder, bid.price, (int) bid.bidder % 16)).returns(type)
            .keyBy(bid -> bid.f3)
            .window(TumblingEventTimeWindows.of(java.time.Duration.ofSeconds(10)))
            .aggregate(new Largest<>(bid -> bid.f2), Types.LIST(type), Types.LIST(type))
            .<Tuple4<Long, Long, Long, Integer>>flatMap((found, out) -> found.forEach(out::collect)).returns(type)
            .windowAll(TumblingEventTimeWindows.of(java.time.Duration.ofSeconds(10)))
            .aggregate(new Largest<>(bid -> bid.f2), new Each<>(), Types.LIST(type), Types.LIST(type), type);
    }

    /** The persons who have registered and begun an auction in one window: id, name, and start of the window. */
    static SingleOutputStreamOperator<Tuple3<Long, String, Long>> sellers(DataStream<NexmarkEvents.Event> events) {
        DataStream<Tuple2<Long, String>> persons = events.filter(event -> event instanceof NexmarkEvents.Person)
            .map(event -> (NexmarkEvents.Person) event).returns(NexmarkEvents.Person.class)
            .map(person -> Tuple2.of(person.id, person.name)).returns(Types.TUPLE(Types.LONG, Types.STRING));
        DataStream<Long> sellers = events.filter(event -> event instanceof NexmarkEvents.Auction)
            .map(event -> ((NexmarkEvents.Auction) event).seller).returns(Types.LONG);
        DataStream<Tuple2<Long, String>> found = persons.coGroup(sellers)
            .where(person -> person.f0, Types.LONG).equalTo(seller -> seller, Types.LONG)
            .window(TumblingEventTimeWindows.of(java.time.Duration.ofSeconds(10)))
            .apply(new Sold(), Types.TUPLE(Types.LONG, Types.STRING));
        return found.map(person -> Tuple3.of(person.f0, person.f1, 0L))
            .returns(Types.TUPLE(Types.LONG, Types.STRING, Types.LONG));
    }

    /** A person with an auction, once. */
    static final class Sold implements CoGroupFunction<Tuple2<Long, String>, Long, Tuple2<Long, String>> {
        @Override
        public void coGroup(
                Iterable<Tuple2<Long, String>> persons, Iterable<Long> sellers, Collector<Tuple2<Long, String>> out) {
            if (sellers.iterator().hasNext()) {
                persons.forEach(out::collect);
            }
        }
    }

    /** Builds the Yahoo streaming benchmark: the views of each campaign in windows of ten seconds. */
    void yahoo(Replay<AdEvents.AdEvent> replay) {
        Map<String, String> campaigns = AdEvents.campaigns();
        TypeInformation<Tuple2<String, Long>> type = Types.TUPLE(Types.STRING, Types.LONG);
        SingleOutputStreamOperator<Tuple3<Long, String, Long>> counts =
            source(replay, event -> event.time, AdEvents.AdEvent.class)
                .filter(event -> event.eventType.equals("view"))
                .map(event -> Tuple2.of(event.ad, event.time)).returns(type)
                .map(view -> Tuple2.of(campaigns.get(view.f0), view.f1)).returns(type)
                .keyBy(view -> view.f0)
                .window(TumblingEventTimeWindows.of(java.time.Duration.ofSeconds(10)))
                .aggregate(new Count<>(), new WithPlace<>(), Types.LONG, Types.LONG,
                    Types.TUPLE(Types.LONG, Types.STRING, Types.LONG));
        end(counts, found -> found.f2 * found.f2);
    }

    static NexmarkEvents.Event[] nexmarkBlock;
    static AdEvents.AdEvent[] adBlock;

    public static void main(String[] arguments) throws Exception {
        String query = arguments[0];
        int block = Integer.parseInt(arguments[1]);
        long rounds = Long.parseLong(arguments[2]);
        int parallelism = Integer.parseInt(arguments[3]);
        if (query.equals("yahoo")) {
            adBlock = AdEvents.first(block);
        } else {
            nexmarkBlock = NexmarkEvents.first(block);
        }
        double seconds = 0;
        for (int run = 0; run < 2; run++) {
            FlinkQueries queries = new FlinkQueries(block, rounds, parallelism);
            if (query.equals("yahoo")) {
                queries.yahoo((place, laterMs) -> adBlock[place].later(laterMs));
            } else {
                queries.nexmark(query, (place, laterMs) -> nexmarkBlock[place].later(laterMs));
            }
            RESULTS.reset();
            SUM.reset();
            BEGAN_NS.set(0);
            queries.env.execute(query);
            seconds = (System.nanoTime() - BEGAN_NS.get()) / 1e9;
        }
        System.out.printf(Locale.ROOT, "{\"per_s\": %.1f, \"results\": %d, \"sum\": %d}%n", block * rounds / seconds,
            RESULTS.sum(), SUM.sum());
        System.exit(0);
    }
}
