package heron.jvm;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.time.ZoneId;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.regex.Pattern;

/** Compares key groups in Java with vectors: FILE has key, encoding, hash and group of each, in MessagePack. */
public final class GoldenKeys {
    private static final Pattern SPECIAL = Pattern.compile("[ai]"); // nan, inf and their other spellings

    private GoldenKeys() { }

    public static void main(String[] arguments) throws Exception {
        byte[] file = Files.readAllBytes(Path.of(arguments[0]));
        List<?> vectors = (List<?>) new MsgReader(file, (type, bytes) -> null).value();
        for (Object each : vectors) {
            List<?> vector = (List<?>) each;
            List<Object> key = keys((List<?>) vector.get(0));
            check(key + " encoded", hex((byte[]) vector.get(1)), hex(KeyGroups.encoded(key)));
            check(key + " hashed", (String) vector.get(2), String.format("%016x", Xxh3.hash(KeyGroups.encoded(key))));
            check(key + " group", vector.get(3) + "", KeyGroups.of(key, 1024) + "");
        }
        checkEqualKeys();
        checkRefused();
        System.out.println("checked " + vectors.size());
    }

    private static List<Object> keys(List<?> spelt) {
        List<Object> values = new ArrayList<>();
        spelt.forEach(each -> ((Map<?, ?>) each).forEach((kind, value) -> values.add(read((String) kind, value))));
        return values;
    }

    private static Object read(String kind, Object value) {
        switch (kind) {
            case "int": return new BigInteger((String) value);
            case "float": return real((String) value);
            case "decimal": return SPECIAL.matcher((String) value).find()
                ? real((String) value) : new BigDecimal((String) value);
            case "bytes": return bytes((String) value);
            case "date": return LocalDate.parse((String) value);
            case "datetime": return ((String) value).length() > 26
                ? OffsetDateTime.parse((String) value) : LocalDateTime.parse((String) value);
            case "uuid": return UUID.fromString((String) value);
            case "tuple": return keys((List<?>) value);
            default: return value;
        }
    }

    private static double real(String value) {
        if (!SPECIAL.matcher(value).find()) {
            return Double.parseDouble(value);
        }
        return value.matches(".*(nan|NaN).*") ? Double.NaN : value.startsWith("-") ? -1 / 0.0 : 1 / 0.0;
    }

    /** Values of several classes that are one key, as their equals in Python. */
    private static void checkEqualKeys() {
        ZonedDateTime first = LocalDateTime.parse("2024-10-27T02:30:00").atZone(ZoneId.of("Europe/Zurich"));
        OffsetDateTime inUtc = OffsetDateTime.parse("2024-10-27T00:30:00Z");
        Object[][] equal = {
            {1, 1L, (short) 1, (byte) 1, 1.0, 1.0f, true, BigInteger.ONE, new BigDecimal("1.00")},
            {0, -0.0, -0.0f, false, new BigDecimal("0E+9")},
            {100, new BigDecimal("1E+2")},
            {1.5, 1.5f, new BigDecimal("1.50")},
            {1e300, new BigDecimal(1e300), new BigDecimal(1e300).toBigInteger()},
            {"a", 'a'},
            {inUtc, first, first.withLaterOffsetAtOverlap(), first.toInstant(), inUtc.plusNanos(999)},
            {List.of("a", 1), Arrays.asList("a", 1L)},
        };
        for (Object[] each : equal) {
            for (Object other : each) {
                check(other + "", of(each[0]), of(other));
            }
        }
        check("lone surrogate", "730300000000000000eda080", of("\ud800"));
        check("huge", "640c000000000000003145" + "32313437343833363437", of(BigDecimal.valueOf(1, -Integer.MAX_VALUE)));
    }

    private static String of(Object value) {
        return hex(KeyGroups.encoded(Arrays.asList(value)));
    }

    private static void checkRefused() {
        Object deep = 1;
        for (int i = 0; i < 33; i++) {
            deep = List.of(deep);
        }
        for (Object each : new Object[] {deep, Map.of(), new Object(), new java.util.concurrent.atomic.AtomicLong()}) {
            try {
                KeyGroups.encoded(List.of(each));
            } catch (IllegalArgumentException refused) {
                continue;
            }
            throw new AssertionError("a key: " + each);
        }
    }

    private static byte[] bytes(String hex) {
        byte[] bytes = new byte[hex.length() / 2];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
        }
        return bytes;
    }

    private static String hex(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (byte each : bytes) {
            text.append(String.format("%02x", each));
        }
        return text.toString();
    }

    private static void check(String name, String expected, String got) {
        if (!expected.equals(got)) {
            throw new AssertionError(name + ": expected " + expected + ", got " + got);
        }
    }
}
