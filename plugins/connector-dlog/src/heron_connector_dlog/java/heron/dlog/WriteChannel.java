package heron.dlog;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.distributedlog.DLSN;
import org.apache.distributedlog.LogRecord;
import org.apache.distributedlog.api.AsyncLogWriter;
import org.apache.distributedlog.api.DistributedLogManager;
import org.apache.distributedlog.api.MetadataAccessor;
import org.apache.distributedlog.api.namespace.Namespace;
import org.apache.distributedlog.exceptions.LogExistsException;

/**
 * The writer of a log. To open it fences the writer before it, and makes what that one has written readable.
 *
 * <p>The metadata of the log names its owner: the last writer that has taken it over. No other one may open it.
 */
final class WriteChannel extends Channel {
    private final Namespaces namespaces;
    private DistributedLogManager log;
    private AsyncLogWriter writer;

    WriteChannel(Namespaces namespaces, Frames frames, int number) {
        super(frames, number);
        this.namespaces = namespaces;
    }

    @Override
    void carryOut(byte kind, ByteBuffer frame) throws Exception {
        if (kind == Frames.OPEN_WRITER) {
            open(Frames.text(frame), Frames.bytes(frame), frame.get() != 0);
        } else {
            write(frame);
        }
    }

    @Override
    void release() throws Exception {
        if (writer != null) {
            writer.asyncClose();
        }
        if (log != null) {
            log.asyncClose();
        }
    }

    /** The check behind the opening refuses a writer that has fenced its successor, before it writes anything. */
    private void open(String stream, byte[] owner, boolean takesOver) throws Exception {
        Namespace namespace = namespaces.get();
        if (takesOver && !namespace.logExists(stream)) {
            try {
                namespace.createLog(stream);
            } catch (LogExistsException made) {
                // by another task in this moment
            }
        }
        try (MetadataAccessor metadata = namespace.getNamespaceDriver().getMetadataAccessor(stream)) {
            if (takesOver) {
                metadata.createOrUpdateMetadata(owner);
            }
            if (has(metadata, owner)) {
                log = namespace.openLog(stream);
                writer = log.openAsyncLogWriter().get();
            }
            if (!has(metadata, owner)) {
                fail("taken", "another writer has taken it over");
                return;
            }
        }
        long last = Math.max(0, writer.getLastTxId());
        frames.send(Frames.OPENED, number, data -> data.writeLong(last));
    }

    private void write(ByteBuffer frame) throws Exception {
        long first = frame.getLong();
        int count = frame.getInt();
        ByteBuffer sizes = frame.slice();
        frame.position(frame.position() + count * Integer.BYTES);
        List<LogRecord> records = new ArrayList<>(count);
        for (int index = 0; index < count; index++) {
            byte[] data = new byte[sizes.getInt()];
            frame.get(data);
            records.add(new LogRecord(first + index, data));
        }
        long last = first + count - 1;
        List<CompletableFuture<DLSN>> written = writer.writeBulk(records).get();
        for (CompletableFuture<DLSN> each : written) {
            each.exceptionally(error -> {
                fail(error);
                return null;
            });
        }
        CompletableFuture.allOf(written.toArray(new CompletableFuture<?>[0])).thenRun(
            () -> frames.send(Frames.WRITTEN, number, data -> data.writeLong(last)));
    }

    private static boolean has(MetadataAccessor metadata, byte[] owner) throws IOException {
        return Arrays.equals(metadata.getMetadata(), owner);
    }
}
