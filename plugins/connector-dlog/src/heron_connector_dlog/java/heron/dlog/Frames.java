package heron.dlog;

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** The frames on stdin and stdout; the README of the plugin describes each. */
final class Frames {
    static final byte SETUP = 0;
    static final byte READ = 1;
    static final byte MORE = 2;
    static final byte OPEN_WRITER = 3;
    static final byte WRITE = 4;
    static final byte CLOSE = 5;
    static final byte ASK = 6;
    static final byte RECORDS = 17;
    static final byte OPENED = 18;
    static final byte WRITTEN = 19;
    static final byte FAILED = 20;
    static final byte ANSWER = 21;

    private final DataInputStream in;
    private final OutputStream out;

    Frames(DataInputStream in, OutputStream out) {
        this.in = in;
        this.out = out;
    }

    /** Returns what follows the length of the next frame, or null at the end of stdin. */
    ByteBuffer next() throws IOException {
        int length;
        try {
            length = in.readInt();
        } catch (EOFException end) {
            return null;
        }
        byte[] frame = new byte[length];
        in.readFully(frame);
        return ByteBuffer.wrap(frame);
    }

    /** Writes a frame; any thread may call it. */
    void send(byte kind, int channel, Body body) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(256);
        DataOutputStream data = new DataOutputStream(bytes);
        try {
            data.writeInt(0);
            data.writeByte(kind);
            data.writeInt(channel);
            body.write(data);
            byte[] frame = bytes.toByteArray();
            ByteBuffer.wrap(frame).putInt(0, frame.length - Integer.BYTES);
            synchronized (out) {
                out.write(frame);
                out.flush();
            }
        } catch (IOException error) {
            Runtime.getRuntime().halt(0); // the task has ended
        }
    }

    static String text(ByteBuffer frame) {
        return new String(bytes(frame), StandardCharsets.UTF_8);
    }

    static byte[] bytes(ByteBuffer frame) {
        byte[] bytes = new byte[frame.getInt()];
        frame.get(bytes);
        return bytes;
    }

    static void text(DataOutputStream data, String text) throws IOException {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        data.writeInt(bytes.length);
        data.write(bytes);
    }

    /** Writes what follows the channel. */
    interface Body {
        void write(DataOutputStream data) throws IOException;
    }
}
