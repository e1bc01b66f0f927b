package heron.dlog;

import java.io.IOException;
import java.util.List;
import org.apache.distributedlog.DLSN;
import org.apache.distributedlog.LogRecordWithDLSN;
import org.apache.distributedlog.LogSegmentMetadata;
import org.apache.distributedlog.api.DistributedLogManager;
import org.apache.distributedlog.exceptions.LogEmptyException;

/** What a log has now: the first place that is not truncated, the place behind its last committed record. */
final class LogRange {
    final DLSN first; // null of a log without segments
    final DLSN end;
    private final List<LogSegmentMetadata> segments;
    private final LogRecordWithDLSN last; // null of a log without records

    private LogRange(List<LogSegmentMetadata> segments, LogRecordWithDLSN last) {
        this.segments = segments;
        this.last = last;
        DLSN found = null;
        for (LogSegmentMetadata each : segments) {
            if (found == null && !each.isTruncated()) {
                found = each.isPartiallyTruncated() ? each.getMinActiveDLSN() : each.getFirstDLSN();
            }
        }
        first = found;
        end = last == null ? DLSN.InitialDLSN : last.getDlsn().getNextDLSN();
    }

    static LogRange of(DistributedLogManager log) throws IOException {
        LogRecordWithDLSN last = null;
        try {
            last = log.getLastLogRecord();
        } catch (LogEmptyException empty) {
            // no segment, or none with records
        }
        return new LogRange(log.getLogSegments(), last);
    }

    /** Whether a place is in a segment that this log has not had yet: the place belongs to another log. */
    boolean isBefore(DLSN place) {
        long newest = segments.isEmpty() ? 1 : segments.get(segments.size() - 1).getLogSegmentSequenceNumber();
        return place.getLogSegmentSequenceNo() > newest + 1;
    }

    /** How many records are behind the first ones, or behind all that are not truncated if `passed` is negative. */
    long backlog(long passed) {
        long begin = passed >= 0 || segments.isEmpty() ? passed : segments.get(0).getStartSequenceId();
        return Math.max(0, count() - Math.max(0, begin));
    }

    /** How many records the log has had. */
    long count() {
        return last == null ? 0 : last.getSequenceId() + 1;
    }

    static String text(DLSN place) {
        return place.getLogSegmentSequenceNo() + " " + place.getEntryId() + " " + place.getSlotId();
    }
}
