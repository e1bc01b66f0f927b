package heron.jvm;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Reads batches in the encoding `plain` of WIRE.md, row by row. An int that fits is an Integer, any other a Long.
 *
 * <p>`decode` comes first; it throws a RuntimeException if the batch is not in this encoding.
 */
final class PlainReader {
    private final byte[] bytes;
    private final ByteBuffer in;
    private final Object[][] columns;
    private final int rows;
    private int row;

    PlainReader(byte[] bytes) {
        this.bytes = bytes;
        in = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        rows = in.getInt();
        columns = new Object[in.getShort() & 0xffff][];
    }

    void decode() {
        for (int i = 0; i < columns.length; i++) {
            columns[i] = column();
        }
    }

    int rows() {
        return rows;
    }

    List<Object> next() {
        List<Object> values = new ArrayList<>(columns.length);
        for (Object[] each : columns) {
            values.add(each[row]);
        }
        row++;
        return values;
    }

    private Object[] column() {
        int kind = in.get();
        boolean hasNulls = in.get() != 0;
        int length = in.getInt();
        int marks = in.position();
        int count = rows;
        if (hasNulls) {
            in.position(marks + rows);
            count = 0;
            for (int i = 0; i < rows; i++) {
                count += bytes[marks + i];
            }
        }
        int end = in.position() + length;
        Object[] values = kind == 0 ? new Object[0] : values(kind, count, end);
        in.position(end);
        if (!hasNulls && kind != 0) {
            return values;
        }
        Object[] all = new Object[rows];
        for (int i = 0, at = 0; at < values.length; i++) {
            if (bytes[marks + i] != 0) {
                all[i] = values[at++];
            }
        }
        return all;
    }

    private Object[] values(int kind, int count, int end) {
        Object[] values = new Object[count];
        int at = kind < 5 ? in.position() : in.position() + 4 * count;
        for (int i = 0; i < count; i++) {
            switch (kind) {
                case 1:
                    values[i] = in.get() != 0;
                    break;
                case 2:
                    long number = in.getLong();
                    values[i] = number == (int) number ? (Object) (int) number : (Object) number;
                    break;
                case 3:
                    values[i] = in.getDouble();
                    break;
                case 4:
                    int start = at;
                    while (at < end && bytes[at] != 0) {
                        at++;
                    }
                    values[i] = text(start, at++ - start);
                    break;
                case 5:
                case 6:
                    int size = in.getInt();
                    if (size < 0 || size > end - at) {
                        throw new IllegalArgumentException("a value of " + size + " bytes at byte " + at
                            + " of a column that ends at byte " + end);
                    }
                    values[i] = kind == 5 ? text(at, size) : Arrays.copyOfRange(bytes, at, at + size);
                    at += size;
                    break;
                default:
                    throw new IllegalStateException("a column of kind " + kind + " is unknown");
            }
        }
        int last = kind < 4 ? in.position() : kind == 4 && count > 0 ? at - 1 : at;
        if (last != end) {
            throw new IllegalArgumentException("the " + count + " values of a column of kind " + kind + " end at byte "
                + last + ", not " + end);
        }
        return values;
    }

    /** A text; other bytes than UTF-8 are refused, where String has U+FFFD. */
    private String text(int start, int size) {
        String text = new String(bytes, start, size, StandardCharsets.UTF_8);
        if (text.indexOf('\ufffd') >= 0
            && !Arrays.equals(text.getBytes(StandardCharsets.UTF_8), Arrays.copyOfRange(bytes, start, start + size))) {
            throw new IllegalArgumentException("the text at byte " + start + " is not UTF-8");
        }
        return text;
    }
}
