package heron.jvm;

import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.storm.task.IBolt;
import org.apache.storm.task.IOutputCollector;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.tuple.Tuple;

/** Executes the tuples of a bolt, one by one. An exception fails its tuple, and the bolt goes on. */
final class BoltTask implements Task, IOutputCollector {
    private static final int REPORT = 64; // tuples; Heron may send more when it knows that these are done

    private final Setup setup;
    private final Frames frames;
    private final TaskOutput output;
    private final IBolt bolt;
    private final Map<String, String> streams = new HashMap<>();

    BoltTask(Setup setup, Frames frames, TaskOutput output, IBolt bolt) {
        this.setup = setup;
        this.frames = frames;
        this.output = output;
        this.bolt = bolt;
    }

    @Override
    public void open() {
        bolt.prepare(setup.conf, setup.context, new OutputCollector(this));
    }

    @Override
    public void take(int kind, MsgReader frame) {
        if (kind != Frames.TUPLES && kind != Frames.PLAIN_TUPLES) {
            throw new IllegalStateException("a bolt has no use for a frame of kind " + kind);
        }
        long id = frame.integer();
        String component = setup.stormName(frame.text());
        String given = frame.text();
        int task = (int) frame.integer();
        String stream = streams.computeIfAbsent(component + "\0" + given,
            key -> CustomGroupings.original(setup, component, given));
        boolean isTick = id == 0;
        PlainReader plain = kind == Frames.PLAIN_TUPLES ? new PlainReader((byte[]) frame.value()) : null;
        int rows = plain == null ? frame.array() : plain.rows();
        if (plain != null && !isDecoded(plain, id)) {
            return;
        }
        if (rows == 0) { // Heron could not send the tuple of this id
            output.out.done(id);
        }
        for (int left = rows; left > 0; left--) {
            List<Object> values = plain == null ? frame.list() : plain.next();
            HeronTuple tuple = new HeronTuple(setup.context, id, values, component, task, stream);
            try {
                bolt.execute(tuple);
            } catch (Exception | StackOverflowError | LinkageError | AssertionError error) {
                fail(tuple);
                output.error(error);
            }
            if (!isTick) {
                if (left == 1 || id % REPORT == 0) {
                    output.out.done(id);
                }
                id++;
            }
            if (frames.isAsked) {
                frames.isAsked = false;
                output.out.frame(Frames.PONG);
                output.out.flush();
            }
        }
    }

    /** False if a batch does not decode: then its tuples, whose ids begin with this one, have failed. */
    private boolean isDecoded(PlainReader batch, long first) {
        try {
            batch.decode();
            return true;
        } catch (RuntimeException error) {
            for (long id = first; setup.tracks && id < first + batch.rows(); id++) {
                output.out.fail(id);
            }
            output.error(error);
            output.out.done(first + batch.rows() - 1);
            return false;
        }
    }

    @Override
    public void close() {
        bolt.cleanup();
    }

    @Override
    public List<Integer> emit(String stream, Collection<Tuple> anchors, List<Object> values) {
        long[] link = link(anchors);
        return output.emit(stream, values, () -> link);
    }

    @Override
    public void emitDirect(int task, String stream, Collection<Tuple> anchors, List<Object> values) {
        long[] link = link(anchors);
        output.emitDirect(task, stream, values, () -> link);
    }

    @Override
    public void ack(Tuple tuple) {
        long id = id(tuple);
        if (setup.tracks && id > 0) {
            output.out.ack(id);
        }
    }

    @Override
    public void fail(Tuple tuple) {
        long id = id(tuple);
        if (setup.tracks && id > 0) {
            output.out.fail(id);
        }
    }

    /** Does nothing: Heron has no such message; the timeout of a root counts from its emit. */
    @Override
    public void resetTimeout(Tuple tuple) { }

    @Override
    public void flush() {
        output.out.flush();
    }

    @Override
    public void reportError(Throwable error) {
        output.error(error);
    }

    private long[] link(Collection<Tuple> anchors) {
        if (!setup.tracks || anchors == null || anchors.isEmpty()) {
            return null;
        }
        long[] ids = new long[anchors.size()];
        int count = 0;
        for (Tuple each : anchors) {
            long id = id(each);
            if (id > 0) {
                ids[count++] = id;
            }
        }
        return count == 0 ? null : count == ids.length ? ids : java.util.Arrays.copyOf(ids, count);
    }

    private static long id(Tuple tuple) {
        if (!(tuple instanceof HeronTuple)) {
            throw new IllegalArgumentException("a " + tuple.getClass().getName() + " was not received by execute");
        }
        return ((HeronTuple) tuple).id;
    }
}
