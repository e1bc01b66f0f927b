package heron.jvm;

import com.codahale.metrics.Counter;
import com.codahale.metrics.Gauge;
import com.codahale.metrics.Meter;
import java.util.HashMap;
import java.util.Map;
import org.apache.storm.metric.api.AssignableMetric;
import org.apache.storm.metric.api.IMetric;
import org.apache.storm.metric.api.StateMetric;

/** Reads the metrics that the component has registered, in its thread. Counts are sent as what was added. */
final class TaskMetrics {
    private static final int PERIOD_S = 10;

    private final Setup setup;
    private final TaskOutput output;
    private final Map<Integer, Long> dueNs = new HashMap<>();
    private final Map<String, Long> known = new HashMap<>();

    TaskMetrics(Setup setup, TaskOutput output) {
        this.setup = setup;
        this.output = output;
        setup.metrics.keySet().forEach(this::next);
        next(PERIOD_S);
    }

    void sendIfDue() {
        long now = System.nanoTime();
        Map<String, Object> counts = new HashMap<>();
        Map<String, Object> gauges = new HashMap<>();
        for (int period : dueNs.keySet().toArray(new Integer[0])) {
            if (now - dueNs.get(period) < 0) {
                continue;
            }
            next(period);
            read(setup.metrics.getOrDefault(period, Map.of()).getOrDefault(setup.task, Map.of()), counts, gauges);
            if (period == PERIOD_S) {
                readRegistry(counts, gauges);
            }
        }
        if (counts.size() + gauges.size() > 0) {
            output.out.frame(Frames.METRICS, counts, gauges);
        }
    }

    private void next(int period) {
        dueNs.put(period, System.nanoTime() + period * 1_000_000_000L);
    }

    private void read(Map<String, IMetric> metrics, Map<String, Object> counts, Map<String, Object> gauges) {
        metrics.forEach((name, metric) -> {
            Object value;
            try {
                value = metric.getValueAndReset();
            } catch (RuntimeException error) {
                output.error(error);
                return;
            }
            if (metric instanceof AssignableMetric || metric instanceof StateMetric) { // a level, not a count
                gauges.put(name, value instanceof Number ? ((Number) value).doubleValue() : String.valueOf(value));
            } else if (value instanceof Long || value instanceof Integer) {
                counts.put(name, value);
            } else if (value instanceof Map) {
                ((Map<?, ?>) value).forEach((key, each) -> put(name + "/" + key, each, counts, gauges));
            } else {
                put(name, value, counts, gauges);
            }
        });
    }

    private void readRegistry(Map<String, Object> counts, Map<String, Object> gauges) {
        for (Map.Entry<String, Counter> each : setup.registry.getTaskCounters(setup.task).entrySet()) {
            counts.put(each.getKey(), added(each.getKey(), each.getValue().getCount()));
        }
        for (Map.Entry<String, Meter> each : setup.registry.getTaskMeters(setup.task).entrySet()) {
            counts.put(each.getKey(), added(each.getKey(), each.getValue().getCount()));
        }
        for (Map.Entry<String, Gauge> each : setup.registry.getTaskGauges(setup.task).entrySet()) {
            try {
                Object value = each.getValue().getValue();
                if (value instanceof Number) {
                    gauges.put(each.getKey(), ((Number) value).doubleValue());
                }
            } catch (RuntimeException error) {
                output.error(error);
            }
        }
    }

    private long added(String name, long count) {
        Long before = known.put(name, count);
        return before == null ? count : count - before;
    }

    private static void put(String name, Object value, Map<String, Object> counts, Map<String, Object> gauges) {
        if (value instanceof Long || value instanceof Integer) {
            counts.put(name, value);
        } else if (value instanceof Number) {
            gauges.put(name, ((Number) value).doubleValue());
        } else if (value != null) {
            gauges.put(name, value.toString());
        }
    }
}
