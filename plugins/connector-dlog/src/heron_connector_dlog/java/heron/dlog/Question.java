package heron.dlog;

import java.nio.ByteBuffer;
import java.util.Iterator;
import org.apache.distributedlog.api.DistributedLogManager;

/** A question about logs. Its answer is a text, which ends the channel. */
final class Question extends Channel {
    private final Namespaces namespaces;

    Question(Namespaces namespaces, Frames frames, int number) {
        super(frames, number);
        this.namespaces = namespaces;
    }

    @Override
    void carryOut(byte kind, ByteBuffer frame) throws Exception {
        String question = Frames.text(frame);
        String stream = Frames.text(frame);
        long given = frame.getLong();
        String answer = question.equals("names") ? names() : ofLog(question, stream, given);
        frames.send(Frames.ANSWER, number, data -> Frames.text(data, answer));
    }

    private String names() throws Exception {
        StringBuilder names = new StringBuilder();
        for (Iterator<String> each = namespaces.get().getLogs(); each.hasNext();) {
            names.append(each.next()).append('\n');
        }
        return names.toString();
    }

    private String ofLog(String question, String stream, long given) throws Exception {
        DistributedLogManager log = namespaces.get().openLog(stream);
        try {
            switch (question) {
                case "end":
                    LogRange range = LogRange.of(log);
                    return LogRange.text(range.end) + " " + range.count();
                case "find": return LogRange.text(log.getDLSNNotLessThanTxId(given).get()) + " -1";
                case "backlog": return String.valueOf(LogRange.of(log).backlog(given));
                default: throw new IllegalArgumentException(question);
            }
        } finally {
            log.asyncClose();
        }
    }
}
