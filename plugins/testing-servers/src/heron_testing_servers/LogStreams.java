import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.bookkeeper.client.BookKeeperAdmin;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.distributedlog.DLSN;
import org.apache.distributedlog.DistributedLogConfiguration;
import org.apache.distributedlog.LogRecord;
import org.apache.distributedlog.LogRecordWithDLSN;
import org.apache.distributedlog.api.AsyncLogWriter;
import org.apache.distributedlog.api.DistributedLogManager;
import org.apache.distributedlog.api.LogReader;
import org.apache.distributedlog.api.LogWriter;
import org.apache.distributedlog.api.namespace.Namespace;
import org.apache.distributedlog.api.namespace.NamespaceBuilder;
import org.apache.distributedlog.exceptions.LogEmptyException;
import org.apache.distributedlog.exceptions.LogNotFoundException;
import org.apache.distributedlog.exceptions.ReadCancelledException;
import org.apache.distributedlog.impl.metadata.BKDLConfig;
import org.apache.distributedlog.metadata.DLMetadata;

/**
 * Carries out one command for each line of stdin. It answers with lines: "more" and words, as often as there are many,
 * then "ok" and words, or "error".
 */
public final class LogStreams {
    private static final long PATIENCE_MS = 60_000;
    private static final long SILENCE_MS = 5_000;
    private static final int MOST_WORDS = 1000; // of a line

    private final URI uri;
    private final DistributedLogConfiguration conf = new DistributedLogConfiguration();
    private final Map<String, LogWriter> writers = new HashMap<>();
    private final Map<String, Long> lastIds = new HashMap<>(); // of open writers
    private final PrintStream answers;
    private Namespace namespace;

    private LogStreams(URI uri, PrintStream answers) {
        this.uri = uri;
        this.answers = answers;
        conf.setWriteLockEnabled(false).setCreateStreamIfNotExists(false).setImmediateFlushEnabled(true);
        conf.setProperty("bkcEnsembleSize", 2);
        conf.setProperty("bkcWriteQuorumSize", 2);
        conf.setProperty("bkcAckQuorumSize", 2);
        conf.setProperty("explicitTruncationByApp", true);
        conf.setProperty("bkc.allowShadedLedgerManagerFactoryClass", false);
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), true);
        System.setOut(System.err);
        LogStreams streams = new LogStreams(URI.create(arguments[0]), answers);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String line;
        while ((line = commands.readLine()) != null) {
            try {
                answers.println(String.join(" ", streams.answer(line.split(" "))));
            } catch (Exception error) {
                error.printStackTrace();
                answers.println("error " + error.toString().replace('\n', ' '));
            } catch (Error error) { // such as one of memory: threads of the client would keep the process
                error.printStackTrace();
                Runtime.getRuntime().halt(1);
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private List<String> answer(String[] words) throws Exception {
        List<String> answer = new ArrayList<>(List.of("ok"));
        switch (words[0]) {
            case "init": init(); break;
            case "create": namespace().createLog(words[1]); break;
            case "write": write(words); break;
            case "read":
                read(words, each -> Base64.getEncoder().encodeToString(each.getPayload()), answer);
                break;
            case "ids":
                read(words, each -> String.valueOf(each.getTransactionId()), answer);
                break;
            case "names": namespace().getLogs().forEachRemaining(answer::add); break;
            case "close": close(words[1]); break;
            case "truncate": truncate(words[1], Long.parseLong(words[2])); break;
            default: throw new IllegalArgumentException(words[0]);
        }
        return answer;
    }

    private void init() throws Exception {
        ServerConfiguration bookies = new ServerConfiguration();
        bookies.setMetadataServiceUri("zk+hierarchical://" + uri.getAuthority() + "/ledgers");
        if (!BookKeeperAdmin.initNewCluster(bookies)) {
            throw new IOException("the metadata of BookKeeper cannot be made");
        }
        DLMetadata.create(new BKDLConfig(uri.getAuthority(), "/ledgers")).create(uri);
    }

    private Namespace namespace() throws IOException {
        if (namespace == null) {
            namespace = NamespaceBuilder.newBuilder().conf(conf).uri(uri).clientId("tests").build();
        }
        return namespace;
    }

    private LogWriter writer(String name) throws IOException {
        LogWriter writer = writers.get(name);
        if (writer == null) {
            writer = namespace().openLog(name).openLogWriter();
            writers.put(name, writer);
        }
        return writer;
    }

    /** After an error the last transaction id says what is there. */
    private void write(String[] words) throws Exception {
        long given = Long.parseLong(words[2]);
        Long last = lastIds.get(words[1]);
        long first = given > 0 ? given : (last == null ? lastId(words[1]) : last) + 1;
        long untilMs = System.currentTimeMillis() + PATIENCE_MS;
        int next = 3;
        while (next < words.length) {
            try {
                LogWriter writer = writer(words[1]);
                for (int index = next; index < words.length; index++) {
                    writer.write(new LogRecord(first + index - 3, Base64.getDecoder().decode(words[index])));
                }
                writer.flush();
                writer.commit();
                lastIds.put(words[1], first + words.length - 4);
                return;
            } catch (IOException error) {
                if (System.currentTimeMillis() > untilMs) {
                    throw error;
                }
                error.printStackTrace();
                LogWriter former = writers.remove(words[1]);
                if (former != null) {
                    former.abort();
                }
                Thread.sleep(200);
                next = (int) Math.max(3, lastId(words[1]) - first + 4);
            }
        }
    }

    /** Ends the segment that is written now, if there is one. */
    private long lastId(String name) throws Exception {
        long untilMs = System.currentTimeMillis() + PATIENCE_MS;
        while (true) {
            close(name);
            try (DistributedLogManager log = namespace().openLog(name)) {
                log.recover();
                return Math.max(0, log.getLastTxId());
            } catch (LogEmptyException error) {
                return 0;
            } catch (IOException error) {
                if (System.currentTimeMillis() > untilMs) {
                    throw error;
                }
                Thread.sleep(200);
            }
        }
    }

    /**
     * Reads a log from a transaction id to its present end.
     *
     * <p>The library cancels its reader when another writer closes the segment, and where a segment ends if its threads
     * race. After deaths of writers a reader was seen that got no further record. Then another reader goes on. It is
     * opened at an id: at a DLSN it would begin with the whole entry again.
     */
    private void read(String[] words, Function<LogRecordWithDLSN, String> word, List<String> answer) throws Exception {
        long untilMs = System.currentTimeMillis() + PATIENCE_MS;
        long next = Long.parseLong(words[2]);
        while (true) {
            try (DistributedLogManager log = namespace().openLog(words[1])) {
                long last = log.getLastTxId();
                try (LogReader reader = log.openLogReader(next)) {
                    long silentMs = System.currentTimeMillis() + SILENCE_MS;
                    while (next <= last && System.currentTimeMillis() < silentMs) {
                        LogRecordWithDLSN record = reader.readNext(false);
                        if (record != null) {
                            next = record.getTransactionId() + 1;
                            answer.add(word.apply(record));
                            handOver(answer);
                            silentMs = System.currentTimeMillis() + SILENCE_MS;
                        }
                    }
                }
                if (next > last) {
                    return;
                }
                if (System.currentTimeMillis() > untilMs) {
                    throw new IOException(words[1] + ": no record comes after " + (next - 1) + ", the last is " + last);
                }
            } catch (LogNotFoundException | LogEmptyException error) {
                return;
            } catch (ReadCancelledException error) {
                if (System.currentTimeMillis() > untilMs) {
                    throw error;
                }
            }
        }
    }

    /** Sends what is ready, so that a large log needs little memory. */
    private void handOver(List<String> answer) {
        if (answer.size() > MOST_WORDS) {
            answers.println("more " + String.join(" ", answer.subList(1, answer.size())));
            answer.subList(1, answer.size()).clear();
        }
    }

    private void close(String name) throws IOException {
        lastIds.remove(name);
        LogWriter writer = writers.remove(name);
        if (writer != null) {
            writer.close();
        }
    }

    private void truncate(String name, long firstId) throws Exception {
        close(name);
        try (DistributedLogManager log = namespace().openLog(name)) {
            DLSN first = log.getDLSNNotLessThanTxId(firstId).get();
            AsyncLogWriter writer = log.openAsyncLogWriter().get();
            writer.truncate(first).get();
            writer.asyncClose().get();
            log.purgeLogsOlderThan(firstId);
        }
    }
}
