package heron.jvm;

import java.util.Arrays;

/** Writes MessagePack into a buffer that grows. Lengths of arrays may be set later: they always take four bytes. */
final class MsgWriter {
    private static final int FIRST_BYTES = 4096;
    private static final int MOST_KEPT_BYTES = 1 << 20;

    byte[] bytes = new byte[FIRST_BYTES];
    int length;

    /** Empties the buffer. One that a very large value has made large is not kept. */
    void clear() {
        length = 0;
        if (bytes.length > MOST_KEPT_BYTES) {
            bytes = new byte[FIRST_BYTES];
        }
    }

    void nil() {
        one(0xc0);
    }

    void bool(boolean value) {
        one(value ? 0xc3 : 0xc2);
    }

    void integer(long value) {
        if (value >= -32 && value <= 127) {
            one((int) value);
        } else if (value >= Short.MIN_VALUE && value <= Short.MAX_VALUE) {
            one(0xd1);
            fixed(value, 2);
        } else if (value >= Integer.MIN_VALUE && value <= Integer.MAX_VALUE) {
            one(0xd2);
            fixed(value, 4);
        } else {
            one(0xd3);
            fixed(value, 8);
        }
    }

    void real(double value) {
        one(0xcb);
        fixed(Double.doubleToRawLongBits(value), 8);
    }

    /** Writes text in UTF-8. */
    void text(String value) {
        int size = value.length();
        int head = size <= 10 ? 1 : size <= 85 ? 2 : size <= 21845 ? 3 : 5; // of the longest text of this length
        int start = length;
        room(head);
        length += head;
        utf8(value);
        int end = length;
        int count = end - start - head;
        length = start;
        if (head == 1) {
            bytes[length] = (byte) (0xa0 | count);
        } else {
            bytes[length++] = (byte) (head == 2 ? 0xd9 : head == 3 ? 0xda : 0xdb);
            fixed(count, head - 1);
        }
        length = end;
    }

    /**
     * Writes the UTF-8 of a text alone; returns whether it has no U+0000. A lone surrogate has no UTF-8, and no other text
     * may take its place.
     */
    boolean utf8(String value) {
        int size = value.length();
        room(3 * size);
        int at = length;
        boolean hasZero = false;
        for (int i = 0; i < size; i++) {
            char c = value.charAt(i);
            if (c < 0x80) {
                bytes[at++] = (byte) c;
                hasZero |= c == 0;
            } else if (c < 0x800) {
                bytes[at++] = (byte) (0xc0 | c >> 6);
                bytes[at++] = (byte) (0x80 | c & 0x3f);
            } else if (!Character.isSurrogate(c)) {
                bytes[at++] = (byte) (0xe0 | c >> 12);
                bytes[at++] = (byte) (0x80 | c >> 6 & 0x3f);
                bytes[at++] = (byte) (0x80 | c & 0x3f);
            } else {
                if (Character.isLowSurrogate(c) || i + 1 == size || !Character.isLowSurrogate(value.charAt(i + 1))) {
                    throw new NotPlainException("a text with half a character (a lone surrogate) at position " + i);
                }
                int point = Character.toCodePoint(c, value.charAt(++i));
                bytes[at++] = (byte) (0xf0 | point >> 18);
                bytes[at++] = (byte) (0x80 | point >> 12 & 0x3f);
                bytes[at++] = (byte) (0x80 | point >> 6 & 0x3f);
                bytes[at++] = (byte) (0x80 | point & 0x3f);
            }
        }
        length = at;
        return !hasZero;
    }

    void binaryHead(int size) {
        one(0xc6);
        fixed(size, 4);
    }

    void binary(byte[] value) {
        binaryHead(value.length);
        raw(value, value.length);
    }

    void extension(int type, byte[] value) {
        one(0xc9);
        fixed(value.length, 4);
        one(type);
        raw(value, value.length);
    }

    void longExtension(int type, long value) {
        one(0xd7);
        one(type);
        fixed(value, 8);
    }

    void array(int count) {
        if (count < 16) {
            one(0x90 | count);
        } else {
            one(0xdd);
            fixed(count, 4);
        }
    }

    void map(int count) {
        one(0xdf);
        fixed(count, 4);
    }

    void raw(byte[] value, int count) {
        room(count);
        System.arraycopy(value, 0, bytes, length, count);
        length += count;
    }

    /** Writes the low bytes of a number, the most significant one first. */
    void fixed(long value, int count) {
        room(count);
        for (int shift = 8 * (count - 1); shift >= 0; shift -= 8) {
            bytes[length++] = (byte) (value >> shift);
        }
    }

    /** Writes the low bytes of a number, the least significant one first. */
    void little(long value, int count) {
        room(count);
        for (int shift = 0; shift < 8 * count; shift += 8) {
            bytes[length++] = (byte) (value >> shift);
        }
    }

    private void one(int value) {
        room(1);
        bytes[length++] = (byte) value;
    }

    private void room(int count) {
        if (bytes.length - length < count) {
            bytes = Arrays.copyOf(bytes, Math.max(2 * bytes.length, length + count));
        }
    }
}
