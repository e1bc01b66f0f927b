package heron.jvm;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.storm.spout.ISpout;
import org.apache.storm.spout.ISpoutOutputCollector;
import org.apache.storm.spout.SpoutOutputCollector;

/** Calls a spout for turns, and gives it acks and fails by the id that it has chosen. */
final class SpoutTask implements Task, ISpoutOutputCollector {
    private static final long TURN_NS = 2_000_000;

    private final Setup setup;
    private final TaskOutput output;
    private final ISpout spout;
    private final Method ends;
    private final Map<Long, Root> roots = new HashMap<>();
    private List<Object> untracked = new ArrayList<>();
    private long lastRoot;
    private boolean hasEnded;

    SpoutTask(Setup setup, TaskOutput output, ISpout spout) {
        this.setup = setup;
        this.output = output;
        this.spout = spout;
        this.ends = ends(spout);
        this.lastRoot = setup.firstRoot;
    }

    @Override
    public void open() {
        spout.open(setup.conf, setup.context, new SpoutOutputCollector(this));
    }

    @Override
    public void take(int kind, MsgReader frame) throws Exception {
        switch (kind) {
            case Frames.NEXT:
                turn(frame.integer());
                output.out.frame(Frames.TURN_OVER);
                break;
            case Frames.ACKED:
                settle(frame, true);
                break;
            case Frames.FAILED:
                settle(frame, false);
                break;
            case Frames.ACTIVATE:
                guarded(spout::activate);
                break;
            case Frames.DEACTIVATE:
                guarded(spout::deactivate);
                break;
            default:
                throw new IllegalStateException("a spout has no use for a frame of kind " + kind);
        }
    }

    @Override
    public void close() {
        spout.close();
    }

    @Override
    public List<Integer> emit(String stream, List<Object> values, Object id) {
        Root root = root(id);
        try {
            List<Integer> tasks = output.emit(stream, values, links(root));
            ackIfNobodyHas(root);
            return tasks;
        } catch (RuntimeException | Error refused) {
            forget(root);
            throw refused;
        }
    }

    @Override
    public void emitDirect(int task, String stream, List<Object> values, Object id) {
        Root root = root(id);
        try {
            output.emitDirect(task, stream, values, links(root));
            ackIfNobodyHas(root);
        } catch (RuntimeException | Error refused) {
            forget(root);
            throw refused;
        }
    }

    @Override
    public synchronized long getPendingCount() {
        return roots.size();
    }

    @Override
    public void flush() {
        output.out.flush();
    }

    @Override
    public void reportError(Throwable error) {
        output.error(error);
    }

    /** Calls the spout until it has emitted so many rows, emits nothing, or has had its time. */
    private void turn(long rows) throws Exception {
        long first = output.out.emits();
        long before = first;
        long began = System.nanoTime();
        do {
            long known = before;
            guarded(spout::nextTuple);
            ackUntracked();
            if (ends != null && !hasEnded && (Boolean) ends.invoke(spout)) {
                hasEnded = true;
                output.out.frame(Frames.END);
            }
            before = output.out.emits();
            if (before == known) {
                return;
            }
        } while (before - first < rows && System.nanoTime() - began < TURN_NS);
    }

    private void ackUntracked() {
        List<Object> ids;
        synchronized (this) {
            if (untracked.isEmpty()) {
                return;
            }
            ids = untracked;
            untracked = new ArrayList<>();
        }
        ids.forEach(id -> guarded(() -> spout.ack(id)));
    }

    private void settle(MsgReader frame, boolean complete) {
        for (int left = frame.array(); left > 0; left -= 2) {
            long first = frame.integer();
            long end = first + frame.integer();
            for (long id = first; id < end; id++) {
                settle(id, complete);
            }
        }
    }

    private void settle(long id, boolean complete) {
        Root root;
        boolean last;
        synchronized (this) {
            root = roots.remove(id);
            if (root == null) {
                return;
            }
            root.open--;
            last = complete ? root.open == 0 && !root.failed : !root.failed;
            root.failed |= !complete;
        }
        if (last) {
            guarded(() -> {
                if (complete) {
                    spout.ack(root.id);
                } else {
                    spout.fail(root.id);
                }
            });
        }
    }

    private static Root root(Object id) {
        return id == null ? null : new Root(id);
    }

    private TaskOutput.Links links(Root root) {
        if (root == null || !setup.tracks) {
            return () -> null;
        }
        return () -> {
            synchronized (this) {
                root.open++;
                root.copies++;
                roots.put(++lastRoot, root);
                return new long[] {lastRoot};
            }
        };
    }

    /** A tuple that is not tracked, or that a custom grouping sends to no task, is acked when its call has ended. */
    private synchronized void ackIfNobodyHas(Root root) {
        if (root != null && root.copies == 0) {
            untracked.add(root.id);
        }
    }

    private synchronized void forget(Root root) {
        roots.values().removeIf(each -> each == root);
    }

    private void guarded(Runnable call) {
        try {
            call.run();
        } catch (Exception | StackOverflowError | LinkageError | AssertionError error) {
            output.error(error);
        }
    }

    /** A spout of Storm never ends. One with a method `boolean hasEnded()` ends when it returns true. */
    private static Method ends(ISpout spout) {
        try {
            Method method = spout.getClass().getMethod("hasEnded");
            method.setAccessible(true);
            return method.getReturnType() == boolean.class ? method : null;
        } catch (NoSuchMethodException none) {
            return null;
        }
    }

    /** An id of the spout, and how many copies of its tuple are not settled: a custom grouping may choose several. */
    private static final class Root {
        private final Object id;
        private int open;
        private int copies;
        private boolean failed;

        Root(Object id) {
            this.id = id;
        }
    }
}
