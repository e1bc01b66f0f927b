package heron.jvm;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.List;
import java.util.Set;
import java.util.UUID;

/**
 * The key groups of WIRE.md in Java: code of a JVM that knows which task owns a key, as the instances in Python do.
 *
 * <p>An instance routes the tuples of its child, so the runtime itself does not call this. Keys are lists of the values
 * of a grouping's fields: null, Boolean, Character, String, byte[], Byte, Short, Integer, Long, BigInteger, Float,
 * Double, BigDecimal, LocalDate, LocalDateTime, Instant, OffsetDateTime, ZonedDateTime, UUID, and lists, which are
 * Python's tuples.
 */
public final class KeyGroups {
    private static final Set<Class<?>> WHOLE = Set.of(Byte.class, Short.class, Integer.class, Long.class);
    private static final int DEEPEST = 32;
    private static final int INT_DIGITS = 19; // of 2^63: a number with more of them is no i64

    private ByteBuffer out = ByteBuffer.allocate(64).order(ByteOrder.LITTLE_ENDIAN);

    private KeyGroups() { }

    /**
     * The group of a key, from 0, less than `groups`.
     *
     * @throws IllegalArgumentException if a value has no encoding
     */
    public static int of(List<?> key, int groups) {
        return (int) Long.remainderUnsigned(Xxh3.hash(encoded(key)), groups);
    }

    /**
     * The canonical bytes of a key.
     *
     * @throws IllegalArgumentException if a value has no encoding
     */
    public static byte[] encoded(List<?> key) {
        KeyGroups encoder = new KeyGroups();
        key.forEach(value -> encoder.write(value, 0));
        byte[] bytes = new byte[encoder.out.position()];
        encoder.out.flip();
        encoder.out.get(bytes);
        return bytes;
    }

    private void write(Object value, int depth) {
        if (value == null) {
            room(1).put((byte) 'n');
        } else if (value instanceof String || value instanceof Character) {
            text(value.toString());
        } else if (value instanceof Boolean) {
            number('i', (Boolean) value ? 1 : 0);
        } else if (value instanceof Number) {
            number((Number) value);
        } else if (value instanceof byte[]) {
            number('b', ((byte[]) value).length);
            room(((byte[]) value).length).put((byte[]) value);
        } else if (value instanceof LocalDate) {
            number('D', ((LocalDate) value).toEpochDay());
        } else if (value instanceof UUID) {
            ByteBuffer most = room(17).put((byte) 'u');
            most.putLong(Long.reverseBytes(((UUID) value).getMostSignificantBits()));
            most.putLong(Long.reverseBytes(((UUID) value).getLeastSignificantBits()));
        } else if (value instanceof List) {
            if (depth == DEEPEST) {
                throw new IllegalArgumentException("a key is nested deeper than " + DEEPEST + " levels; flatten it");
            }
            number('(', ((List<?>) value).size());
            ((List<?>) value).forEach(each -> write(each, depth + 1));
        } else {
            time(value);
        }
    }

    private void time(Object value) {
        if (value instanceof LocalDateTime) {
            number('t', micros(((LocalDateTime) value).toInstant(ZoneOffset.UTC)));
        } else if (value instanceof Instant) {
            number('T', micros((Instant) value));
        } else if (value instanceof OffsetDateTime) {
            number('T', micros(((OffsetDateTime) value).toInstant()));
        } else if (value instanceof ZonedDateTime) { // the first pass of an hour that the zone repeats
            number('T', micros(((ZonedDateTime) value).withEarlierOffsetAtOverlap().toInstant()));
        } else {
            throw refused(value);
        }
    }

    private static IllegalArgumentException refused(Object value) {
        return new IllegalArgumentException("a " + value.getClass().getName() + " cannot be part of a key");
    }

    private static long micros(Instant time) {
        return Math.addExact(Math.multiplyExact(time.getEpochSecond(), 1_000_000L), time.getNano() / 1000);
    }

    private void number(Number value) {
        if (value instanceof Double || value instanceof Float) {
            real(value.doubleValue());
        } else if (value instanceof BigDecimal) {
            decimal((BigDecimal) value);
        } else if (value instanceof BigInteger) {
            decimal(new BigDecimal((BigInteger) value));
        } else if (WHOLE.contains(value.getClass())) {
            number('i', value.longValue());
        } else {
            throw refused(value);
        }
    }

    private void real(double value) {
        if (value == Math.rint(value) && value >= -0x1p63 && value < 0x1p63) {
            number('i', (long) value);
        } else {
            number('f', Double.doubleToLongBits(value)); // every NaN is one
        }
    }

    private void decimal(BigDecimal value) {
        BigDecimal stripped = value.stripTrailingZeros();
        boolean isShort = stripped.scale() <= 0 && stripped.precision() - (long) stripped.scale() <= INT_DIGITS;
        BigInteger whole = isShort ? stripped.toBigIntegerExact() : null;
        double nearest = stripped.doubleValue();
        if (whole != null && whole.bitLength() < Long.SIZE) {
            number('i', whole.longValue());
        } else if (!Double.isInfinite(nearest) && new BigDecimal(nearest).compareTo(stripped) == 0) {
            number('f', Double.doubleToLongBits(nearest));
        } else {
            String digits = stripped.unscaledValue() + "E" + -(long) stripped.scale();
            number('d', digits.length());
            digits.chars().forEach(each -> room(1).put((byte) each));
        }
    }

    /** A tag and eight bytes: an i64, the bits of a binary64, or a length. */
    private void number(char tag, long value) {
        room(9).put((byte) tag).putLong(value);
    }

    /** UTF-8, with three bytes for a lone surrogate. */
    private void text(String value) {
        number('s', 0);
        int begin = out.position();
        value.codePoints().forEach(point -> {
            room(4);
            if (point < 0x80) {
                out.put((byte) point);
                return;
            }
            int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
            out.put((byte) (0xff00 >> more + 1 | point >> 6 * more));
            for (int i = more - 1; i >= 0; i--) {
                out.put((byte) (0x80 | point >> 6 * i & 0x3f));
            }
        });
        out.putLong(begin - 8, out.position() - begin);
    }

    private ByteBuffer room(int bytes) {
        if (out.remaining() < bytes) {
            ByteBuffer larger = ByteBuffer.allocate(2 * out.capacity() + bytes).order(ByteOrder.LITTLE_ENDIAN);
            out.flip();
            out = larger.put(out);
        }
        return out;
    }
}
