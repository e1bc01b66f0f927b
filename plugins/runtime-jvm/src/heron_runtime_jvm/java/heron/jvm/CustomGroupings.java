package heron.jvm;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.storm.generated.Bolt;
import org.apache.storm.generated.GlobalStreamId;
import org.apache.storm.generated.Grouping;
import org.apache.storm.generated.JavaObject;
import org.apache.storm.generated.JavaObjectArg;
import org.apache.storm.grouping.CustomStreamGrouping;
import org.apache.storm.utils.Utils;

/**
 * Groupings that are Java objects. They choose tasks here, in the emitter; its tuples leave on a direct stream with the
 * name STREAM--CONSUMER.
 */
final class CustomGroupings {
    /** A consumer of a stream with a grouping of this kind. */
    static final class Choice {
        final Output.Route route;
        final CustomStreamGrouping grouping;

        Choice(Output.Route route, CustomStreamGrouping grouping) {
            this.route = route;
            this.grouping = grouping;
        }
    }

    private final Map<String, List<Choice>> choices = new HashMap<>();
    private final Map<String, Boolean> hasOthers = new HashMap<>();

    CustomGroupings(Setup setup) throws Exception {
        if (!setup.topology.is_set_bolts()) {
            return;
        }
        for (Map.Entry<String, Bolt> consumer : setup.topology.get_bolts().entrySet()) {
            for (Map.Entry<GlobalStreamId, Grouping> input : consumer.getValue().get_common().get_inputs().entrySet()) {
                GlobalStreamId source = input.getKey();
                if (!source.get_componentId().equals(setup.component)) {
                    continue;
                }
                String stream = source.get_streamId();
                Output.Route route = setup.routes.get(direct(stream, consumer.getKey()));
                if (route == null) {
                    hasOthers.put(stream, true);
                    continue;
                }
                CustomStreamGrouping grouping = grouping(input.getValue());
                grouping.prepare(setup.context, source, setup.context.getComponentTasks(consumer.getKey()));
                choices.computeIfAbsent(stream, key -> new ArrayList<>()).add(new Choice(route, grouping));
            }
        }
    }

    List<Choice> of(String stream) {
        return choices.getOrDefault(stream, List.of());
    }

    /** Whether the tuples of a stream also go to consumers with groupings of Heron. */
    boolean hasOthers(String stream) {
        return !choices.containsKey(stream) || hasOthers.containsKey(stream);
    }

    /** The stream that the author knows, of the name that Heron has: STREAM--CONSUMER is STREAM. */
    static String original(Setup setup, String component, String heronStream) {
        for (GlobalStreamId input : setup.context.getThisSources().keySet()) {
            boolean isDirect = input.get_componentId().equals(component)
                && direct(input.get_streamId(), setup.component).equals(heronStream);
            if (isDirect) {
                return input.get_streamId();
            }
        }
        return setup.stormName(heronStream);
    }

    /** The name of the stream, as `direct_stream` in Python. */
    private static String direct(String stream, String consumer) {
        return Setup.heronName(stream) + "--" + Setup.heronName(consumer);
    }

    private static CustomStreamGrouping grouping(Grouping given) throws Exception {
        if (given.is_set_custom_serialized()) {
            return Utils.javaDeserialize(given.get_custom_serialized(), CustomStreamGrouping.class);
        }
        JavaObject object = given.get_custom_object();
        List<Object> arguments = new ArrayList<>();
        for (JavaObjectArg each : object.get_args_list()) {
            arguments.add(each.getFieldValue());
        }
        return (CustomStreamGrouping) Setup.instance(object.get_full_class_name(), arguments);
    }
}
