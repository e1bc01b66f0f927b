package heron.jvm;

import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;

/**
 * The frames that arrive on stdin: their kinds, and the thread that reads them. WIRE.md describes each.
 *
 * <p>A question of Heron for a sign of life is answered between two tuples, and task ids do not wait for frames.
 */
final class Frames implements Runnable {
    static final int SETUP = 0;
    static final int TUPLES = 1;
    static final int NEXT = 2;
    static final int ACKED = 3;
    static final int FAILED = 4;
    static final int ACTIVATE = 5;
    static final int DEACTIVATE = 6;
    static final int PING = 7;
    static final int TASK_IDS = 8;
    static final int PLAIN_TUPLES = 9;
    static final int PLAN = 10;
    static final int READY = 16;
    static final int EMIT = 17;
    static final int ASK = 18;
    static final int ACK = 19;
    static final int FAIL = 20;
    static final int DONE = 21;
    static final int TURN_OVER = 22;
    static final int PONG = 23;
    static final int ERROR = 24;
    static final int METRICS = 25;
    static final int END = 26;
    static final int EMIT_PLAIN = 27;

    /** Stands for the end of stdin. */
    static final byte[] NO_MORE = {};

    volatile boolean isAsked;
    private final DataInputStream in;
    private final BlockingQueue<byte[]> arrived = new LinkedBlockingQueue<>();
    private final SynchronousQueue<byte[]> replies = new SynchronousQueue<>();

    Frames(DataInputStream in) {
        this.in = in;
    }

    byte[] read() throws IOException {
        byte[] frame = new byte[in.readInt()];
        in.readFully(frame);
        return frame;
    }

    /** Returns the next frame for the task, or null after `waitMs`. */
    byte[] next(long waitMs) throws InterruptedException {
        byte[] frame = arrived.poll();
        return frame != null || waitMs == 0 ? frame : arrived.poll(waitMs, TimeUnit.MILLISECONDS);
    }

    boolean isEmpty() {
        return arrived.isEmpty();
    }

    byte[] reply() throws InterruptedException {
        return replies.take();
    }

    @Override
    public void run() {
        try {
            while (true) {
                byte[] frame = read();
                if (frame[1] == TASK_IDS) { // the first byte says how long the array is
                    replies.put(frame);
                    continue;
                }
                if (frame[1] == PING) {
                    isAsked = true;
                }
                arrived.put(frame);
            }
        } catch (EOFException end) {
            arrived.add(NO_MORE);
        } catch (IOException | InterruptedException error) {
            error.printStackTrace();
            Runtime.getRuntime().halt(Main.BROKEN);
        }
    }
}
