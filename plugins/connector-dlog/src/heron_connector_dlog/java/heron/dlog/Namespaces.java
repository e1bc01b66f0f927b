package heron.dlog;

import java.io.IOException;
import java.net.URI;
import java.nio.ByteBuffer;
import org.apache.distributedlog.DistributedLogConfiguration;
import org.apache.distributedlog.api.namespace.Namespace;
import org.apache.distributedlog.api.namespace.NamespaceBuilder;

/** The namespace of the task. A channel connects to it when it needs it, so ZooKeeper may be away at the start. */
final class Namespaces {
    private final URI uri;
    private final DistributedLogConfiguration conf = new DistributedLogConfiguration();
    private Namespace namespace;

    Namespaces(ByteBuffer frame) {
        uri = URI.create(Frames.text(frame));
        conf.setWriteLockEnabled(false); // a writer fences the one before it, instead of waiting for its session to end
        conf.setDisableRollingOnLogSegmentError(true); // after an error nothing more may be written behind the gap
        conf.setCreateStreamIfNotExists(false);
        conf.setImmediateFlushEnabled(true); // readers see a record when it is acknowledged
        conf.setOutputBufferSize(0); // a record, or a bulk of records, does not wait for others
        conf.setProperty("bkc.delayEnsembleChange", true); // a quorum is enough
        for (int left = frame.getInt(); left > 0; left--) {
            conf.setProperty(Frames.text(frame), Frames.text(frame));
        }
    }

    /** Begins to connect, so that the first channel need not wait for classes and connections. */
    void connectEarly() {
        Thread thread = new Thread(() -> {
            try {
                get();
            } catch (IOException error) {
                // the channel that needs it tells
            }
        }, "heron-connect");
        thread.setDaemon(true);
        thread.start();
    }

    synchronized Namespace get() throws IOException {
        if (namespace == null) {
            namespace = NamespaceBuilder.newBuilder().conf(conf).uri(uri).clientId("heron").build();
        }
        return namespace;
    }
}
