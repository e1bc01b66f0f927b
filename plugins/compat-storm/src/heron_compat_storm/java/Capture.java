package heron.storm;

import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;

import heron.jvm.StormLoggers;
import org.apache.storm.generated.Bolt;
import org.apache.storm.generated.ClusterSummary;
import org.apache.storm.generated.ComponentObject;
import org.apache.storm.generated.GlobalStreamId;
import org.apache.storm.generated.Grouping;
import org.apache.storm.generated.Nimbus;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.grouping.PartialKeyGrouping;
import org.apache.storm.shade.net.minidev.json.JSONValue;
import org.apache.storm.spout.ShellSpout;
import org.apache.storm.task.ShellBolt;
import org.apache.storm.thrift.TSerializer;
import org.apache.storm.thrift.protocol.TBinaryProtocol;
import org.apache.storm.tuple.Fields;
import org.apache.storm.utils.NimbusClient;
import org.apache.storm.utils.Utils;

/**
 * Runs the main method of a topology, and writes what it submits: OUT SECONDS MAINCLASS ARGS...
 *
 * <p>Each submission becomes NUMBER.thrift and NUMBER.json in the folder OUT. How main ended becomes end.json. Without
 * that file, main has called System.exit. A main that does not return is ended after SECONDS, or soon after its last
 * submission.
 */
public final class Capture {
    private static final long GRACE_MS = 5_000;
    private static final String LISTENERS = "org.apache.storm.StormSubmitter$";
    private static final Set<String> DECLARATIONS = Set.of("declareOutputFields", "getComponentConfiguration");

    private final Path out;
    private final AtomicInteger submissions = new AtomicInteger();
    private volatile long dueMs;

    private Capture(Path out, double seconds) {
        this.out = out;
        this.dueMs = now() + (long) (seconds * 1_000);
    }

    public static void main(String[] args) throws Exception {
        System.setOut(withoutProgress(System.out));
        StormLoggers.warnOnly();
        Capture capture = new Capture(Path.of(args[0]), Double.parseDouble(args[1]));
        Thread clock = new Thread(capture::limit, "limit of main");
        clock.setDaemon(true);
        clock.start();
        Throwable failure = capture.run(args[2], Arrays.copyOfRange(args, 3, args.length));
        Map<String, Object> end = new HashMap<>();
        if (failure != null) {
            StringWriter trace = new StringWriter();
            failure.printStackTrace(new PrintWriter(trace));
            end.put("exception", failure.getClass().getName());
            end.put("message", failure.getMessage());
            end.put("trace", trace.toString());
        }
        capture.end(end);
    }

    /** Storm's listener draws the progress of an upload that does not take place. */
    private static PrintStream withoutProgress(PrintStream out) {
        return new PrintStream(new OutputStream() {
            @Override
            public void write(int value) {
                write(new byte[] {(byte) value}, 0, 1);
            }

            @Override
            public void write(byte[] bytes, int start, int length) {
                boolean isProgress = StackWalker.getInstance().walk(
                        frames -> frames.anyMatch(each -> each.getClassName().startsWith(LISTENERS)));
                if (!isProgress) {
                    out.write(bytes, start, length);
                }
            }

            @Override
            public void flush() {
                out.flush();
            }
        }, true);
    }

    /** Returns what main has thrown, or null. */
    private Throwable run(String mainClass, String[] args) {
        Nimbus.Iface nimbus = (Nimbus.Iface) Proxy.newProxyInstance(
                Capture.class.getClassLoader(), new Class<?>[] {Nimbus.Iface.class}, (proxy, method, a) -> answer(method, a));
        try (NimbusClient.LocalOverride override = new NimbusClient.LocalOverride(nimbus)) {
            Class.forName(mainClass).getMethod("main", String[].class).invoke(null, (Object) args);
            return null;
        } catch (InvocationTargetException thrown) {
            return thrown.getCause();
        } catch (Throwable thrown) {
            return thrown;
        }
    }

    /** What Storm's Nimbus would answer to StormSubmitter. */
    private Object answer(Method method, Object[] arguments) throws Exception {
        switch (method.getName()) {
            case "submitTopology":
            case "submitTopologyWithOpts":
                submitted((String) arguments[0], (String) arguments[2], (StormTopology) arguments[3]);
                return null;
            case "isTopologyNameAllowed":
                return true;
            case "beginFileUpload":
                return "topology.jar";
            case "getClusterInfo":
                return new ClusterSummary();
            default:
                Class<?> type = method.getReturnType();
                return type == boolean.class ? (Object) false : type == int.class ? (Object) 0 : type == long.class ? (Object) 0L : null;
        }
    }

    private synchronized void submitted(String name, String conf, StormTopology topology) throws Exception {
        int number = submissions.incrementAndGet();
        byte[] bytes = new TSerializer(new TBinaryProtocol.Factory()).serialize(topology);
        Files.write(out.resolve(number + ".thrift"), bytes);
        Map<String, Object> found = new HashMap<>();
        found.put("name", name);
        found.put("conf", JSONValue.parse(conf));
        found.put("partial_keys", partialKeys(topology));
        found.put("programs", programs(topology));
        write(number + ".json", found);
        dueMs = Math.min(dueMs, now() + GRACE_MS);
    }

    /** Returns [consumer, component, stream, [field...]] for each input with Storm's own partial key grouping. */
    private static List<Object> partialKeys(StormTopology topology) throws ReflectiveOperationException {
        List<Object> found = new ArrayList<>();
        for (Map.Entry<String, Bolt> bolt : topology.get_bolts().entrySet()) {
            for (Map.Entry<GlobalStreamId, Grouping> input : bolt.getValue().get_common().get_inputs().entrySet()) {
                if (!input.getValue().is_set_custom_serialized()) {
                    continue;
                }
                Object grouping = Utils.javaDeserialize(input.getValue().get_custom_serialized(), Object.class);
                Fields fields = isUsual(grouping) ? (Fields) value(PartialKeyGrouping.class, "fields", grouping) : null;
                if (fields != null) {
                    GlobalStreamId from = input.getKey();
                    found.add(Arrays.asList(bolt.getKey(), from.get_componentId(), from.get_streamId(), fields.toList()));
                }
            }
        }
        return found;
    }

    /** Whether it is Storm's partial key grouping without classes of the author. */
    private static boolean isUsual(Object grouping) throws ReflectiveOperationException {
        if (grouping.getClass() != PartialKeyGrouping.class) {
            return false;
        }
        Object usual = new PartialKeyGrouping(new Fields("any"));
        for (String part : List.of("assignmentCreator", "targetSelector")) {
            Object own = value(PartialKeyGrouping.class, part, grouping);
            if (own.getClass() != value(PartialKeyGrouping.class, part, usual).getClass()) {
                return false;
            }
        }
        return true;
    }

    /** Returns the command of each component that is nothing but a program for Storm's ShellBolt or ShellSpout. */
    private static Map<String, Object> programs(StormTopology topology) throws ReflectiveOperationException {
        Map<String, ComponentObject> objects = new HashMap<>();
        topology.get_spouts().forEach((name, each) -> objects.put(name, each.get_spout_object()));
        topology.get_bolts().forEach((name, each) -> objects.put(name, each.get_bolt_object()));
        Map<String, Object> found = new HashMap<>();
        for (Map.Entry<String, ComponentObject> each : objects.entrySet()) {
            if (!each.getValue().is_set_serialized_java()) {
                continue;
            }
            Object component = Utils.javaDeserialize(each.getValue().get_serialized_java(), Object.class);
            Class<?> base = component instanceof ShellBolt ? ShellBolt.class : ShellSpout.class;
            if (base.isInstance(component) && onlyDeclares(component.getClass(), base)
                    && ((Map<?, ?>) value(base, "env", component)).isEmpty()
                    && (Boolean) value(base, "changeDirectory", component)) {
                found.put(each.getKey(), Arrays.asList((String[]) value(base, "command", component)));
            }
        }
        return found;
    }

    private static boolean onlyDeclares(Class<?> type, Class<?> base) {
        for (Class<?> each = type; each != base; each = each.getSuperclass()) {
            for (Method method : each.getDeclaredMethods()) {
                if (!DECLARATIONS.contains(method.getName()) && !method.isSynthetic()) {
                    return false;
                }
            }
        }
        return true;
    }

    private static Object value(Class<?> type, String field, Object of) throws ReflectiveOperationException {
        Field found = type.getDeclaredField(field);
        found.setAccessible(true);
        return found.get(of);
    }

    private void limit() {
        try {
            for (long left = dueMs - now(); left > 0; left = dueMs - now()) {
                Thread.sleep(Math.min(left, 100));
            }
        } catch (InterruptedException ended) {
            return;
        }
        end(Map.of("late", true));
    }

    private synchronized void end(Map<String, Object> how) {
        try {
            write("end.json", how);
        } catch (IOException error) {
            error.printStackTrace();
        }
        System.out.flush();
        Runtime.getRuntime().halt(0); // threads and shutdown hooks of main may run for ever
    }

    private void write(String name, Map<String, Object> found) throws IOException {
        Files.writeString(out.resolve(name), JSONValue.toJSONString(found));
    }

    private static long now() {
        return System.nanoTime() / 1_000_000;
    }
}
