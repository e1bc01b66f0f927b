package heron.tests;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.storm.LocalCluster;
import org.apache.storm.daemon.drpc.DRPC;
import org.apache.storm.daemon.drpc.DRPCThrift;
import org.apache.storm.generated.DistributedRPCInvocations;
import org.apache.storm.metric.StormMetricsRegistry;
import org.apache.storm.security.auth.ThriftConnectionType;
import org.apache.storm.security.auth.ThriftServer;
import org.apache.storm.starter.ReachTopology;
import org.apache.storm.utils.DRPCClient;
import org.apache.storm.utils.Utils;

/**
 * Storm's own servers, until stdin ends. Answers of ReachTopology go to a file, with the right ones.
 *
 * <p>"cluster ANSWERS OUT COUNT KIND...": a LocalCluster runs ReachTopology, and topologies of `StormTopologies` whose
 * rows are in OUT/KIND. "drpc ANSWERS PORT": a server for the distributed calls of a topology elsewhere.
 */
public final class StormServers {
    private static final List<String> PAGES = List.of("foo.com/blog/1", "engineering.twitter.com/blog/5", "none.com");

    private StormServers() {
    }

    public static void main(String[] args) throws Exception {
        Path answers = Path.of(args[1]);
        if (args[0].equals("cluster")) {
            LocalCluster.withLocalModeOverride(() -> {
                for (String kind : Arrays.asList(args).subList(4, args.length)) {
                    StormTopologies.main(new String[] {kind, kind, Path.of(args[2], kind).toString(), args[3]});
                }
                ReachTopology.main(new String[] {"reach"});
                DRPCClient client = DRPCClient.getConfiguredClient(new HashMap<>(Utils.readDefaultConfig()));
                ask(client::execute, answers);
                awaitEnd();
                return null;
            }, 0, null);
        } else {
            Map<String, Object> conf = new HashMap<>(Utils.readDefaultConfig());
            conf.put("drpc.invocations.port", Integer.valueOf(args[2]));
            DRPC calls = new DRPC(new StormMetricsRegistry(), conf);
            ThriftServer server = new ThriftServer(conf,
                    new DistributedRPCInvocations.Processor<>(new DRPCThrift(calls)), ThriftConnectionType.DRPC_INVOCATIONS);
            Thread serving = new Thread(server::serve);
            serving.setDaemon(true);
            serving.start();
            ask(calls::executeBlocking, answers);
            awaitEnd();
        }
        System.exit(0);
    }

    private interface Call {
        String execute(String function, String argument) throws Exception;
    }

    private static void ask(Call call, Path file) throws Exception {
        StringBuilder text = new StringBuilder();
        for (String page : PAGES) {
            Set<String> reached = new HashSet<>();
            for (String tweeter : ReachTopology.TWEETERS_DB.getOrDefault(page, List.of())) {
                reached.addAll(ReachTopology.FOLLOWERS_DB.getOrDefault(tweeter, List.of()));
            }
            text.append(page).append('\t').append(call.execute("reach", page)).append('\t').append(reached.size()).append('\n');
        }
        Path unfinished = file.resolveSibling(file.getFileName() + ".new");
        Files.writeString(unfinished, text);
        Files.move(unfinished, file, StandardCopyOption.ATOMIC_MOVE);
    }

    private static void awaitEnd() throws IOException {
        while (System.in.read() >= 0) {
            continue;
        }
    }
}
