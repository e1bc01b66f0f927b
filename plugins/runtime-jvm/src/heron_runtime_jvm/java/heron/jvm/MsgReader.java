package heron.jvm;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;

/** Reads MessagePack. An int that fits is an Integer, any other a Long; `extensions` makes values of extension types. */
final class MsgReader {
    private final ByteBuffer bytes;
    private final BiFunction<Integer, byte[], Object> extensions;

    MsgReader(byte[] bytes, BiFunction<Integer, byte[], Object> extensions) {
        this.bytes = ByteBuffer.wrap(bytes);
        this.extensions = extensions;
    }

    boolean hasMore() {
        return bytes.hasRemaining();
    }

    long integer() {
        return ((Number) value()).longValue();
    }

    String text() {
        return (String) value();
    }

    int array() {
        int first = bytes.get() & 0xff;
        if (first >= 0x90 && first <= 0x9f) {
            return first & 0x0f;
        }
        if (first == 0xdc) {
            return bytes.getShort() & 0xffff;
        }
        if (first == 0xdd) {
            return bytes.getInt();
        }
        throw new IllegalStateException("byte " + first + " begins no array");
    }

    List<Object> list() {
        return list(array());
    }

    Object value() {
        int first = bytes.get() & 0xff;
        if (first < 0x80 || first >= 0xe0) {
            return (int) (byte) first;
        }
        if (first < 0x90) {
            return map(first & 0x0f);
        }
        if (first < 0xa0) {
            return list(first & 0x0f);
        }
        if (first < 0xc0) {
            return text(first & 0x1f);
        }
        switch (first) {
            case 0xc0: return null;
            case 0xc2: return false;
            case 0xc3: return true;
            case 0xc4: return raw(bytes.get() & 0xff);
            case 0xc5: return raw(bytes.getShort() & 0xffff);
            case 0xc6: return raw(bytes.getInt());
            case 0xc7: return extension(bytes.get() & 0xff);
            case 0xc8: return extension(bytes.getShort() & 0xffff);
            case 0xc9: return extension(bytes.getInt());
            case 0xca: return (double) bytes.getFloat();
            case 0xcb: return bytes.getDouble();
            case 0xcc: return bytes.get() & 0xff;
            case 0xcd: return bytes.getShort() & 0xffff;
            case 0xce: return number(bytes.getInt() & 0xffffffffL);
            case 0xcf: return unsigned(bytes.getLong());
            case 0xd0: return (int) bytes.get();
            case 0xd1: return (int) bytes.getShort();
            case 0xd2: return bytes.getInt();
            case 0xd3: return number(bytes.getLong());
            case 0xd4: case 0xd5: case 0xd6: case 0xd7: case 0xd8: return extension(1 << first - 0xd4);
            case 0xd9: return text(bytes.get() & 0xff);
            case 0xda: return text(bytes.getShort() & 0xffff);
            case 0xdb: return text(bytes.getInt());
            case 0xdc: return list(bytes.getShort() & 0xffff);
            case 0xdd: return list(bytes.getInt());
            case 0xde: return map(bytes.getShort() & 0xffff);
            case 0xdf: return map(bytes.getInt());
            default: throw new IllegalStateException("byte " + first + " begins no value");
        }
    }

    private static Object number(long value) {
        return value == (int) value ? (Object) (int) value : (Object) value;
    }

    private static Object unsigned(long value) {
        if (value < 0) {
            throw new IllegalStateException("an integer of more than 64 bits with a sign");
        }
        return number(value);
    }

    private byte[] raw(int count) {
        byte[] value = new byte[count];
        bytes.get(value);
        return value;
    }

    private String text(int count) {
        String value = new String(bytes.array(), bytes.position(), count, StandardCharsets.UTF_8);
        bytes.position(bytes.position() + count);
        return value;
    }

    private Object extension(int count) {
        int type = bytes.get();
        return extensions.apply(type, raw(count));
    }

    private List<Object> list(int count) {
        List<Object> values = new ArrayList<>(Math.min(count, bytes.remaining()));
        for (int i = 0; i < count; i++) {
            values.add(value());
        }
        return values;
    }

    private Map<Object, Object> map(int count) {
        Map<Object, Object> values = new LinkedHashMap<>();
        for (int i = 0; i < count; i++) {
            Object key = value();
            values.put(key, value());
        }
        return values;
    }
}
