package heron.jvm;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.storm.serialization.KryoValuesDeserializer;
import org.apache.storm.serialization.KryoValuesSerializer;

/**
 * The values of tuples as MessagePack.
 *
 * <p>Towards Python only plain data travels. Between JVMs ("exact"), a small Long stays a Long, and an object that is
 * not plain is the bytes of Storm's Kryo with the registrations of the topology.
 */
final class Values {
    private static final int LONG = 1;
    private static final int KRYO = 2;
    private static final Set<Class<?>> KEYS =
        Set.of(String.class, Integer.class, Long.class, Boolean.class, Double.class);
    private static final Set<Class<?>> LISTS = Set.of(ArrayList.class, Arrays.asList().getClass());
    private static final Set<Class<?>> MAPS = Set.of(HashMap.class, LinkedHashMap.class);
    private static final int DEEPEST = 100; // as on the other side

    private final Map<String, Object> conf;
    private KryoValuesSerializer serializer;
    private KryoValuesDeserializer deserializer;

    Values(Map<String, Object> conf) {
        this.conf = conf;
    }

    /** Makes the value of an extension type. */
    Object read(int type, byte[] bytes) {
        if (type == LONG) {
            return ByteBuffer.wrap(bytes).getLong();
        }
        if (type != KRYO) {
            throw new IllegalStateException("extension type " + type + " is unknown");
        }
        if (deserializer == null) {
            deserializer = new KryoValuesDeserializer(conf);
        }
        return deserializer.deserializeObject(bytes);
    }

    void write(MsgWriter out, Object value, boolean exact) {
        write(out, value, exact, 0);
    }

    private void write(MsgWriter out, Object value, boolean exact, int depth) {
        if (value == null) {
            out.nil();
        } else if (value instanceof String) {
            out.text((String) value);
        } else if (value instanceof Integer) {
            out.integer((Integer) value);
        } else if (value instanceof Long) {
            long number = (Long) value;
            if (exact && number == (int) number) {
                out.longExtension(LONG, number);
            } else {
                out.integer(number);
            }
        } else if (value instanceof Double) {
            out.real((Double) value);
        } else if (value instanceof Boolean) {
            out.bool((Boolean) value);
        } else if (value instanceof byte[]) {
            out.binary((byte[]) value);
        } else if (depth > DEEPEST) {
            throw new NotPlainException("a value that is nested in " + DEEPEST + " values");
        } else if (value instanceof List && (!exact || LISTS.contains(value.getClass()))) {
            List<?> list = (List<?>) value;
            out.array(list.size());
            for (Object each : list) {
                write(out, each, exact, depth + 1);
            }
        } else if (value instanceof Map && (!exact || MAPS.contains(value.getClass()))
            && hasPlainKeys((Map<?, ?>) value, exact)) {
            Map<?, ?> map = (Map<?, ?>) value;
            out.map(map.size());
            for (Map.Entry<?, ?> each : map.entrySet()) {
                write(out, each.getKey(), exact, depth + 1);
                write(out, each.getValue(), exact, depth + 1);
            }
        } else if (exact) {
            if (serializer == null) {
                serializer = new KryoValuesSerializer(conf);
            }
            out.extension(KRYO, serializer.serializeObject(value));
        } else {
            writeForPython(out, value);
        }
    }

    private static void writeForPython(MsgWriter out, Object value) {
        if (value instanceof Short || value instanceof Byte) {
            out.integer(((Number) value).longValue());
        } else if (value instanceof Float) {
            out.real((Float) value);
        } else if (value instanceof Character) {
            out.text(value.toString());
        } else {
            String keys = value instanceof Map ? " with keys of other or of several classes" : "";
            throw new NotPlainException("a " + value.getClass().getName() + keys);
        }
    }

    /** Whether all keys have one class, since 1, 1L, 1.0 and true are one key in Python; a small Long is not plain. */
    private static boolean hasPlainKeys(Map<?, ?> map, boolean exact) {
        Class<?> kind = null;
        for (Object key : map.keySet()) {
            if (key == null) {
                continue;
            }
            boolean known = KEYS.contains(key.getClass()) && !(exact && key instanceof Long);
            if (!known || kind != null && kind != key.getClass()) {
                return false;
            }
            kind = key.getClass();
        }
        return true;
    }
}
