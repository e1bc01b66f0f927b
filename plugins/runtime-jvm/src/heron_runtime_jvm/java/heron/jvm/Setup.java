package heron.jvm;

import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.storm.Config;
import org.apache.storm.Constants;
import org.apache.storm.generated.Bolt;
import org.apache.storm.generated.ComponentCommon;
import org.apache.storm.generated.ComponentObject;
import org.apache.storm.generated.GlobalStreamId;
import org.apache.storm.generated.Grouping;
import org.apache.storm.generated.JavaObject;
import org.apache.storm.generated.JavaObjectArg;
import org.apache.storm.generated.NullStruct;
import org.apache.storm.generated.SpoutSpec;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.generated.StreamInfo;
import org.apache.storm.metric.api.IMetric;
import org.apache.storm.metrics2.StormMetricRegistry;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.IComponent;
import org.apache.storm.topology.OutputFieldsGetter;
import org.apache.storm.tuple.Fields;
import org.apache.storm.utils.Utils;

/** What the first frame says, as Storm's classes: the component, its configuration and its context. */
final class Setup {
    final String component; // Storm's name, as all names here
    final int task;
    final boolean tracks;
    final boolean isSpout;
    final long firstRoot;
    final Map<String, Object> conf;
    final StormTopology topology;
    final TopologyContext context;
    final Map<Integer, Map<Integer, Map<String, IMetric>>> metrics = new HashMap<>();
    final StormMetricRegistry registry = new StormMetricRegistry();
    final AtomicBoolean isPrepared = new AtomicBoolean(false);
    final Map<String, Output.Route> routes = new HashMap<>();
    private final Map<Integer, String> components = new ConcurrentHashMap<>(); // of the context, as `tasks`
    private final Map<String, List<Integer>> tasks = new ConcurrentHashMap<>();
    private final Map<?, ?> given;
    private final Map<String, String> stormNames = new HashMap<>();

    Setup(Map<?, ?> given) throws Exception {
        this.given = given;
        task = (Integer) given.get("task");
        tracks = (Boolean) given.get("tracks");
        isSpout = (Boolean) given.get("spout");
        firstRoot = ((Number) given.get("first_root")).longValue();
        component = (String) given.get("storm_component");
        topology = file() == null ? ofHeron() : readTopology(file());
        if (file() != null) {
            noteNames();
        }
        conf = configuration();
        context = context();
        for (Object each : (List<?>) given.get("outputs")) {
            List<?> output = (List<?>) each;
            String stream = (String) output.get(0);
            Object reader = output.get(2); // null: only JVMs read it
            routes.put(stormName(stream), new Output.Route(stream, texts(output.get(1)), reader == null, (String) reader));
        }
    }

    /** Storm's name of a component or stream; Heron refuses some characters of Storm's names. */
    String stormName(String name) {
        return stormNames.getOrDefault(name, name);
    }

    /** Heron's name of a component or stream of Storm, as `heron_name` in Python. */
    static String heronName(String name) {
        StringBuilder text = new StringBuilder();
        name.codePoints().forEach(point -> {
            boolean isKept = point < 128 && (Character.isLetterOrDigit(point) || point == '_' || point == '-');
            text.append(isKept ? String.valueOf((char) point) : "-x" + Integer.toHexString(point) + "-");
        });
        return text.toString();
    }

    private void noteNames() {
        if (topology.is_set_spouts()) {
            topology.get_spouts().forEach((name, spout) -> noteNames(name, spout.get_common()));
        }
        if (topology.is_set_bolts()) {
            topology.get_bolts().forEach((name, bolt) -> noteNames(name, bolt.get_common()));
        }
    }

    private void noteNames(String name, ComponentCommon common) {
        stormNames.put(heronName(name), name);
        common.get_streams().keySet().forEach(stream -> stormNames.put(heronName(stream), stream));
    }

    /** Makes the spout or bolt. */
    Object component() throws Exception {
        if (file() == null) {
            return instance((String) given.get("java_class"), (List<?>) given.get("arguments"));
        }
        ComponentObject object = topology.is_set_spouts() && topology.get_spouts().containsKey(component)
            ? topology.get_spouts().get(component).get_spout_object()
            : topology.get_bolts().get(component).get_bolt_object();
        if (object.is_set_java_object()) {
            JavaObject made = object.get_java_object();
            List<Object> arguments = new ArrayList<>();
            for (JavaObjectArg each : made.get_args_list()) {
                arguments.add(each.getFieldValue());
            }
            return instance(made.get_full_class_name(), arguments);
        }
        if (!object.is_set_serialized_java()) {
            throw new IllegalArgumentException("component '" + component + "' is no Java object, but a shell "
                + "component; run it with ShellBolt or ShellSpout of heron-runtime-multilang");
        }
        return Utils.javaDeserialize(object.get_serialized_java(), Object.class);
    }

    /** Refuses a component whose streams differ from those of the topology, and takes its own configuration. */
    void checkDeclared(IComponent made) {
        if (file() == null && made.getComponentConfiguration() != null) {
            Map<String, Object> own = made.getComponentConfiguration();
            Object period = own.get(Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS);
            if (period != null && !strings(given.get("config")).containsKey(Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS)) {
                throw new IllegalArgumentException("component '" + component + "' wants a tick every " + period
                    + " s; give config={'" + Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS + "': " + period + "} to its spec");
            }
            Map<String, Object> fromHeron = strings(given.get("config"));
            own.forEach((key, value) -> {
                if (!fromHeron.containsKey(key)) {
                    conf.put(key, value);
                }
            });
        }
        OutputFieldsGetter declared = new OutputFieldsGetter();
        made.declareOutputFields(declared);
        declared.getFieldsDeclaration().forEach((stream, info) -> {
            Output.Route route = routes.get(stream);
            List<String> fields = info.get_output_fields();
            if (route == null || !route.fields.equals(fields)) {
                throw new IllegalArgumentException("component '" + component + "' declares the stream '" + stream
                    + "' with the fields " + fields + ", and the topology has "
                    + (route == null ? "no such stream" : route.fields) + "; correct `outputs` of its spec");
            }
        });
    }

    private String file() {
        return (String) given.get("storm_topology");
    }

    private StormTopology readTopology(String file) throws IOException {
        Path path = Paths.get(file).toAbsolutePath();
        StormTopology read;
        try {
            read = Utils.thriftDeserialize(StormTopology.class, Files.readAllBytes(path));
        } catch (RuntimeException error) {
            throw new IllegalArgumentException(path + " is no topology of Storm in Thrift's binary protocol", error);
        }
        List<String> known = new ArrayList<>();
        if (read.is_set_spouts()) {
            known.addAll(read.get_spouts().keySet());
        }
        if (read.is_set_bolts()) {
            known.addAll(read.get_bolts().keySet());
        }
        if (!known.contains(component)) {
            throw new IllegalArgumentException(path + " has no component '" + component + "'; it has " + known);
        }
        return read;
    }

    private Map<String, Object> configuration() {
        Map<String, Object> merged = new HashMap<>(Utils.readDefaultConfig());
        // Within one worker, Storm hands objects on as they are, and so most topologies register none.
        merged.put(Config.TOPOLOGY_FALL_BACK_ON_JAVA_SERIALIZATION, true);
        merged.putAll(strings(given.get("config")));
        if (file() != null) {
            String own = Utils.getComponentCommon(topology, component).get_json_conf();
            if (own != null && !own.isEmpty()) {
                merged.putAll(Utils.parseJson(own));
            }
        }
        merged.put("topology.name", given.get("topology"));
        return merged;
    }

    private TopologyContext context() {
        Map<String, Map<String, Fields>> fields = new HashMap<>();
        for (Object each : (List<?>) given.get("components")) {
            Map<?, ?> one = (Map<?, ?>) each;
            String name = stormName((String) one.get("name"));
            setTasks(name, (List<?>) one.get("tasks"));
            Map<String, Fields> streams = new HashMap<>();
            strings(one.get("streams")).forEach((stream, names) -> streams.put(stormName(stream), new Fields(texts(names))));
            fields.put(name, streams);
        }
        components.put(-1, Constants.SYSTEM_COMPONENT_ID);
        tasks.put(Constants.SYSTEM_COMPONENT_ID, List.of(-1));
        fields.put(Constants.SYSTEM_COMPONENT_ID, Map.of(Constants.SYSTEM_TICK_STREAM_ID, new Fields("rate_secs")));
        Path folder = Paths.get("").toAbsolutePath();
        Path resources = folder.resolve("resources"); // where Storm's ShellBolt finds its program
        String code = (Files.isDirectory(resources) ? resources : folder).toString();
        return new TopologyContext(topology, conf, components, tasks, fields, new HashMap<>(),
            (String) given.get("topology"), code, (String) given.get("pid_folder"), task, -1, List.of(task), new HashMap<>(),
            new HashMap<>(), new HashMap<>(), metrics, isPrepared, registry);
    }

    /** Takes over [component, [task...]] for each component; returns whether tasks have changed. */
    boolean replan(List<Object> plan) {
        boolean isChanged = false;
        for (Object each : plan) {
            List<?> one = (List<?>) each;
            isChanged |= setTasks(stormName((String) one.get(0)), (List<?>) one.get(1));
        }
        return isChanged;
    }

    private boolean setTasks(String name, List<?> given) {
        List<Integer> ids = new ArrayList<>();
        given.forEach(id -> ids.add((Integer) id));
        ids.forEach(id -> components.put(id, name));
        List<Integer> former = tasks.put(name, ids);
        components.entrySet().removeIf(each -> each.getValue().equals(name) && !ids.contains(each.getKey()));
        return !ids.equals(former);
    }

    /** The topology of Heron, as Storm would have it; its components have no objects. */
    private StormTopology ofHeron() {
        StormTopology made = new StormTopology(new HashMap<>(), new HashMap<>(), new HashMap<>());
        for (Object each : (List<?>) given.get("components")) {
            Map<?, ?> one = (Map<?, ?>) each;
            ComponentCommon common = new ComponentCommon(new HashMap<>(), new HashMap<>());
            common.set_parallelism_hint(((List<?>) one.get("tasks")).size());
            common.set_json_conf("{}");
            strings(one.get("streams")).forEach(
                (stream, names) -> common.put_to_streams(stream, new StreamInfo(texts(names), false)));
            for (Object input : (List<?>) one.get("inputs")) {
                List<?> parts = (List<?>) input;
                GlobalStreamId id = new GlobalStreamId((String) parts.get(0), (String) parts.get(1));
                common.put_to_inputs(id, grouping((String) parts.get(2), texts(parts.get(3))));
            }
            ComponentObject none = ComponentObject.serialized_java(new byte[0]);
            if ((Boolean) one.get("spout")) {
                made.put_to_spouts((String) one.get("name"), new SpoutSpec(none, common));
            } else {
                made.put_to_bolts((String) one.get("name"), new Bolt(none, common));
            }
        }
        return made;
    }

    private static Grouping grouping(String kind, List<String> fields) {
        switch (kind) {
            case "fields":
            case "partial_key": return Grouping.fields(fields);
            case "lowest": return Grouping.fields(new ArrayList<>());
            case "all": return Grouping.all(new NullStruct());
            case "direct": return Grouping.direct(new NullStruct());
            case "local_or_shuffle": return Grouping.local_or_shuffle(new NullStruct());
            case "shuffle": return Grouping.shuffle(new NullStruct());
            default: return Grouping.none(new NullStruct());
        }
    }

    static Object instance(String name, List<?> arguments) throws Exception {
        Class<?> type;
        try {
            type = Class.forName(name);
        } catch (ClassNotFoundException error) {
            throw new IllegalArgumentException("the class " + name + " is not on the class path: "
                + System.getProperty("java.class.path"), error);
        }
        for (Constructor<?> each : type.getDeclaredConstructors()) {
            Object[] converted = converted(each, arguments);
            if (converted != null && !Modifier.isPrivate(each.getModifiers())) {
                each.setAccessible(true);
                return each.newInstance(converted);
            }
        }
        throw new IllegalArgumentException(name + " has no constructor for the arguments " + arguments);
    }

    private static Object[] converted(Constructor<?> constructor, List<?> arguments) {
        Class<?>[] types = constructor.getParameterTypes();
        if (types.length != arguments.size()) {
            return null;
        }
        Object[] values = new Object[types.length];
        for (int i = 0; i < types.length; i++) {
            Object value = arguments.get(i);
            Class<?> type = types[i];
            if (value instanceof Number && (type == long.class || type == Long.class)) {
                values[i] = ((Number) value).longValue();
            } else if (value instanceof Number && (type == double.class || type == Double.class)) {
                values[i] = ((Number) value).doubleValue();
            } else if (value instanceof Integer && type == int.class || value instanceof Boolean && type == boolean.class
                || value == null && !type.isPrimitive() || type.isInstance(value)) {
                values[i] = value;
            } else {
                return null;
            }
        }
        return values;
    }

    static Map<String, Object> strings(Object value) {
        Map<String, Object> result = new LinkedHashMap<>();
        ((Map<?, ?>) value).forEach((key, each) -> result.put((String) key, each));
        return result;
    }

    static List<String> texts(Object value) {
        List<String> result = new ArrayList<>();
        ((List<?>) value).forEach(each -> result.add((String) each));
        return result;
    }
}
