package heron.dlog;

import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.function.ToLongFunction;
import org.apache.distributedlog.DLSN;
import org.apache.distributedlog.LogRecordWithDLSN;
import org.apache.distributedlog.api.AsyncLogReader;
import org.apache.distributedlog.api.DistributedLogManager;

/**
 * A reader of a log: it sends records as they are committed, as long as the task has room for them.
 *
 * <p>It begins at the next record that is there; sequence ids, which count the records of a log, tell whether that is
 * the wanted one.
 */
final class ReadChannel extends Channel {
    private static final int MOST_RECORDS = 1000;

    private final Namespaces namespaces;
    private DistributedLogManager log;
    private AsyncLogReader reader;
    private long roomBytes;
    private long averageBytes = 1 << 16;
    private boolean isReading;

    ReadChannel(Namespaces namespaces, Frames frames, int number) {
        super(frames, number);
        this.namespaces = namespaces;
    }

    @Override
    void carryOut(byte kind, ByteBuffer frame) throws Exception {
        if (kind == Frames.READ) {
            open(Frames.text(frame), new DLSN(frame.getLong(), frame.getLong(), frame.getLong()), frame.getLong());
        } else {
            roomBytes += frame.getLong();
        }
        readOn();
    }

    @Override
    void release() throws Exception {
        if (reader != null) {
            reader.asyncClose();
        }
        if (log != null) {
            log.asyncClose();
        }
    }

    private void open(String stream, DLSN wanted, long room) throws Exception {
        roomBytes = room;
        log = namespaces.get().openLog(stream);
        LogRange range = LogRange.of(log);
        boolean isBegin = wanted.getLogSegmentSequenceNo() == 0;
        if (!isBegin && range.isBefore(wanted)) {
            String place = LogRange.text(wanted);
            fail("other", "the log has no place " + place + ", and never had it; was it created again?");
            return;
        }
        DLSN begin = !isBegin ? wanted : range.first == null ? DLSN.InitialDLSN : range.first;
        reader = log.openAsyncLogReader(begin).get();
    }

    private void readOn() {
        if (reader == null || isReading || roomBytes <= 0) {
            return;
        }
        isReading = true;
        int most = (int) Math.max(1, Math.min(MOST_RECORDS, roomBytes / averageBytes));
        reader.readBulk(most).whenComplete((records, error) -> submit(() -> {
            isReading = false;
            if (error != null) {
                fail(error);
                return;
            }
            send(records);
            readOn();
        }));
    }

    private void send(List<LogRecordWithDLSN> records) {
        long sent = 0;
        for (LogRecordWithDLSN each : records) {
            sent += each.getPayloadBuf().readableBytes() + 40;
        }
        roomBytes -= sent;
        averageBytes = Math.max(1, sent / Math.max(1, records.size()));
        frames.send(Frames.RECORDS, number, data -> {
            data.writeInt(records.size());
            writeLongs(data, records, each -> each.getDlsn().getLogSegmentSequenceNo());
            writeLongs(data, records, each -> each.getDlsn().getEntryId());
            writeLongs(data, records, each -> each.getDlsn().getSlotId());
            writeLongs(data, records, LogRecordWithDLSN::getSequenceId);
            writeLongs(data, records, LogRecordWithDLSN::getTransactionId);
            for (LogRecordWithDLSN each : records) {
                data.writeInt(each.getPayloadBuf().readableBytes());
            }
            for (LogRecordWithDLSN each : records) {
                data.write(each.getPayload());
            }
        });
    }

    private static void writeLongs(
        DataOutputStream data, List<LogRecordWithDLSN> records, ToLongFunction<LogRecordWithDLSN> number
    ) throws IOException {
        for (LogRecordWithDLSN each : records) {
            data.writeLong(number.applyAsLong(each));
        }
    }
}
