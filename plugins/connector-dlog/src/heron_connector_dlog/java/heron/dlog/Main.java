package heron.dlog;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;

/**
 * The client of DistributedLog of one task of Heron. It ends with the task, whose end closes stdin.
 *
 * <p>Each channel is a reader, a writer or a question. Calls that wait are made by threads of their channel.
 */
public final class Main {
    private static final int NOT_STARTED = 3;

    private final Frames frames;
    private final Map<Integer, Channel> channels = new HashMap<>();
    private Namespaces namespaces;

    private Main(Frames frames) {
        this.frames = frames;
    }

    public static void main(String[] arguments) {
        OutputStream stdout = new FileOutputStream(FileDescriptor.out);
        System.setOut(System.err);
        DataInputStream stdin = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
        try {
            new Main(new Frames(stdin, stdout)).run();
        } catch (Throwable error) {
            error.printStackTrace();
            System.err.flush();
            Runtime.getRuntime().halt(NOT_STARTED);
        }
        Runtime.getRuntime().halt(0);
    }

    private void run() throws Exception {
        ByteBuffer frame;
        while ((frame = frames.next()) != null) {
            byte kind = frame.get();
            int number = frame.getInt();
            if (kind == Frames.SETUP) {
                namespaces = new Namespaces(frame);
                namespaces.connectEarly();
            } else if (kind == Frames.CLOSE) {
                Channel channel = channels.remove(number);
                if (channel != null) {
                    channel.close();
                }
            } else {
                take(kind, number, frame);
            }
        }
    }

    private void take(byte kind, int number, ByteBuffer frame) {
        Channel channel = channels.get(number);
        if (channel == null) {
            channel = channel(kind, number);
            channels.put(number, channel);
        }
        channel.take(kind, frame);
    }

    private Channel channel(byte kind, int number) {
        switch (kind) {
            case Frames.READ: return new ReadChannel(namespaces, frames, number);
            case Frames.OPEN_WRITER: return new WriteChannel(namespaces, frames, number);
            case Frames.ASK: return new Question(namespaces, frames, number);
            default: return new Channel(frames, number); // it was closed
        }
    }
}
