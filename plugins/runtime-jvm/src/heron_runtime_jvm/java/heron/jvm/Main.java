package heron.jvm;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.OutputStream;
import java.lang.reflect.InvocationTargetException;
import java.util.Map;
import org.apache.storm.spout.ISpout;
import org.apache.storm.spout.ShellSpout;
import org.apache.storm.task.IBolt;
import org.apache.storm.task.ShellBolt;
import org.apache.storm.topology.BasicBoltExecutor;
import org.apache.storm.topology.IBasicBolt;
import org.apache.storm.topology.IComponent;
import org.apache.storm.topology.IStatefulBolt;
import org.apache.storm.topology.IStatefulWindowedBolt;
import org.apache.storm.topology.IWindowedBolt;
import org.apache.storm.topology.WindowedBoltExecutor;

/**
 * One task of a topology: a spout or bolt that is written against Storm's interfaces.
 *
 * <p>Frames come on stdin and leave on stdout; WIRE.md describes them. What the component prints goes to stderr.
 */
public final class Main {
    static final int NOT_STARTED = 3; // as of a task of Heron
    static final int BROKEN = 4;
    private static final long WAIT_MS = 1000;

    private Main() { }

    public static void main(String[] arguments) throws Exception {
        OutputStream stdout = new FileOutputStream(FileDescriptor.out);
        System.setOut(System.err);
        StormLoggers.warnOnly();
        Frames frames = new Frames(new DataInputStream(new BufferedInputStream(System.in, 1 << 16)));
        try {
            run(frames, stdout);
        } catch (Throwable error) {
            error.printStackTrace();
            System.err.flush();
            Runtime.getRuntime().halt(error instanceof VirtualMachineError ? BROKEN : NOT_STARTED);
        }
        System.exit(0);
    }

    private static void run(Frames frames, OutputStream stdout) throws Exception {
        Setup setup;
        Values values;
        Output out;
        TaskOutput output;
        Task task;
        try {
            MsgReader first = new MsgReader(frames.read(), (type, bytes) -> null);
            first.array();
            first.integer();
            setup = new Setup((Map<?, ?>) first.value());
            values = new Values(setup.conf);
            out = new Output(stdout, values);
            output = new TaskOutput(setup, frames, out);
            task = task(setup, frames, output);
            start(out, "flush");
            start(frames, "frames");
            task.open();
        } catch (Exception | LinkageError | AssertionError | StackOverflowError error) {
            boolean isConstructors = error instanceof InvocationTargetException && error.getCause() != null;
            Output.refuse(stdout, isConstructors ? error.getCause() : error);
            Runtime.getRuntime().halt(NOT_STARTED);
            return;
        }
        setup.isPrepared.set(true);
        out.ready(ProcessHandle.current().pid(), System.getProperty("java.version"));
        TaskMetrics metrics = new TaskMetrics(setup, output);
        byte[] frame;
        while ((frame = frames.next(0)) != Frames.NO_MORE) {
            if (frame == null) {
                out.flush();
                metrics.sendIfDue();
                frame = frames.next(WAIT_MS);
            }
            if (frame == Frames.NO_MORE) {
                break;
            }
            if (frame != null) {
                take(task, frame, frames, output, values);
                out.flushIfFull();
                metrics.sendIfDue();
            }
        }
        task.close();
        out.flush();
    }

    private static void take(Task task, byte[] frame, Frames frames, TaskOutput output, Values values) throws Exception {
        Output out = output.out;
        MsgReader reader = new MsgReader(frame, values::read);
        reader.array();
        int kind = (int) reader.integer();
        if (kind == Frames.PLAN) {
            output.replan(reader.list());
        } else if (kind != Frames.PING) {
            out.isCalling = true;
            task.take(kind, reader);
            out.isCalling = false;
        }
        if (frames.isAsked) {
            frames.isAsked = false;
            out.frame(Frames.PONG);
            out.flush();
        }
    }

    private static Task task(Setup setup, Frames frames, TaskOutput output) throws Exception {
        Object component = setup.component();
        String kind = setup.isSpout ? "spout" : "bolt";
        if (component instanceof IStatefulBolt || component instanceof IStatefulWindowedBolt) {
            throw new IllegalArgumentException(component.getClass().getName() + " keeps state of Storm, so it runs only "
                + "in a topology that Storm's TopologyBuilder has made; give storm_topology");
        }
        output.asksAtOnce = component instanceof ShellBolt || component instanceof ShellSpout;
        if (component instanceof IWindowedBolt) {
            component = new WindowedBoltExecutor((IWindowedBolt) component);
        } else if (component instanceof IBasicBolt) {
            component = new BasicBoltExecutor((IBasicBolt) component);
        }
        if (component instanceof IComponent) {
            setup.checkDeclared((IComponent) component);
        }
        if (setup.isSpout && component instanceof ISpout) {
            return new SpoutTask(setup, output, (ISpout) component);
        }
        if (!setup.isSpout && component instanceof IBolt) {
            return new BoltTask(setup, frames, output, (IBolt) component);
        }
        throw new IllegalArgumentException(component.getClass().getName() + " is no " + kind + " of Storm");
    }

    private static void start(Runnable work, String name) {
        Thread thread = new Thread(work, "heron-" + name);
        thread.setDaemon(true);
        thread.start();
    }
}
