package heron.jvm;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** What collectors of spouts and bolts share: emits by all kinds of groupings, and reports of errors. */
final class TaskOutput {
    final Output out;
    private final Setup setup;
    private final Frames frames;
    private volatile CustomGroupings customs;

    /** Storm's ShellBolt and ShellSpout hand the ids to another thread, which reads them later. */
    boolean asksAtOnce;

    TaskOutput(Setup setup, Frames frames, Output out) throws Exception {
        this.setup = setup;
        this.frames = frames;
        this.out = out;
        this.customs = new CustomGroupings(setup);
    }

    /** Gives the link of each copy of a tuple that is emitted. */
    interface Links {
        long[] next();
    }

    /** Goes on with other tasks. Groupings that are objects are made again, as after a rebalance of Storm. */
    void replan(List<Object> plan) {
        if (setup.replan(plan)) {
            try {
                customs = new CustomGroupings(setup);
            } catch (Exception | LinkageError | AssertionError | StackOverflowError error) {
                error(error); // they go on with the old tasks
            }
        }
    }

    List<Integer> emit(String stream, List<Object> values, Links links) {
        Output.Route route = route(stream);
        CustomGroupings customs = this.customs;
        List<CustomGroupings.Choice> choices = customs.of(stream);
        if (choices.isEmpty() && asksAtOnce) {
            return emitAndAsk(route, values, links);
        }
        if (choices.isEmpty()) {
            return new TaskIds(this, out.emit(route, 0, values, links.next()));
        }
        List<Integer> ids = new ArrayList<>();
        for (CustomGroupings.Choice each : choices) {
            for (Integer task : each.grouping.chooseTasks(setup.task, values)) {
                out.emit(each.route, task, values, links.next());
                ids.add(task);
            }
        }
        if (customs.hasOthers(stream)) {
            out.emit(route, 0, values, links.next());
        }
        return ids;
    }

    void emitDirect(int task, String stream, List<Object> values, Links links) {
        out.emit(route(stream), task, values, links.next());
    }

    synchronized List<Integer> askTasks(long number) {
        if (!out.ask(number)) {
            throw new IllegalStateException("the ids of the tasks are not known any more; read what emit returns "
                + "before the next emit, and in the same call");
        }
        return reply();
    }

    private synchronized List<Integer> emitAndAsk(Output.Route route, List<Object> values, Links links) {
        synchronized (out) {
            out.ask(out.emit(route, 0, values, links.next()));
        }
        return reply();
    }

    private List<Integer> reply() {
        try {
            MsgReader reply = new MsgReader(frames.reply(), (type, bytes) -> null);
            reply.array();
            reply.integer();
            List<Integer> ids = new ArrayList<>();
            reply.list().forEach(each -> ids.add((Integer) each));
            return ids;
        } catch (InterruptedException end) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while Heron is asked for task ids", end);
        }
    }

    /** Reports an exception with its stack trace. */
    void error(Throwable error) {
        out.frame(Frames.ERROR, (Object[]) described(error));
    }

    /** Returns the class, the message and the stack trace of an exception. */
    static String[] described(Throwable error) {
        StringWriter trace = new StringWriter();
        error.printStackTrace(new PrintWriter(trace));
        return new String[] {error.getClass().getName(), whole(error.getMessage()), whole(trace.toString())};
    }

    /** A text with a question mark for half a character, so that the report itself can travel. */
    private static String whole(String text) {
        return new String(String.valueOf(text).getBytes(StandardCharsets.UTF_8), StandardCharsets.UTF_8);
    }

    private Output.Route route(String stream) {
        Output.Route route = setup.routes.get(stream);
        if (route == null) {
            throw new IllegalArgumentException("component '" + setup.component + "' has no output stream '" + stream
                + "'; declared in the topology: " + setup.routes.keySet());
        }
        return route;
    }
}
