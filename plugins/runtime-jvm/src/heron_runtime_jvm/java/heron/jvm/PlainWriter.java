package heron.jvm;

import java.util.List;

/**
 * The rows of a segment as columns of one scalar type each, which is the encoding `plain` of WIRE.md. Heron sends them
 * on as they are.
 */
final class PlainWriter {
    private static final int NONE = 0;
    private static final int BOOL = 1;
    private static final int INT = 2;
    private static final int FLOAT = 3;
    private static final int TEXT = 4;

    int rows;
    int bytes;
    private final Column[] columns;
    private final boolean exact;

    /** With `exact`, a small Long is refused: it would arrive as an Integer. */
    PlainWriter(int fields, boolean exact) {
        this.exact = exact;
        columns = new Column[fields];
        for (int i = 0; i < fields; i++) {
            columns[i] = new Column();
        }
    }

    /** Adds a row. False, and nothing has changed, if a value has no scalar type, or not that of its column. */
    boolean add(List<Object> row) {
        if (row.size() != columns.length || columns.length == 0) {
            return false;
        }
        int done = 0;
        try {
            while (done < columns.length && columns[done].add(row.get(done), rows)) {
                done++;
            }
        } finally { // the author's list may throw anything
            for (int i = 0; i < done && done < columns.length; i++) {
                columns[i].takeBack(rows);
            }
        }
        if (done < columns.length) {
            return false;
        }
        rows++;
        for (Column each : columns) {
            bytes += each.data.length - each.before;
        }
        return true;
    }

    /** Removes the row that was added last. */
    void takeBack() {
        rows--;
        for (Column each : columns) {
            bytes -= each.data.length - each.before;
            each.takeBack(rows);
        }
    }

    /** Writes the batch, little-endian, and begins the next one. */
    void end(MsgWriter out) {
        out.binaryHead(size());
        out.little(rows, 4);
        out.little(columns.length, 2);
        for (Column each : columns) {
            out.little(each.kind, 1);
            out.little(each.present == null ? 0 : 1, 1);
            out.little(each.data.length, 4);
            if (each.present != null) {
                out.raw(each.present.bytes, rows);
            }
            out.raw(each.data.bytes, each.data.length);
            each.clear();
        }
        rows = 0;
        bytes = 0;
    }

    private int size() {
        int size = 6;
        for (Column each : columns) {
            size += 6 + (each.present == null ? 0 : rows) + each.data.length;
        }
        return size;
    }

    private final class Column {
        private final MsgWriter data = new MsgWriter();
        private MsgWriter present;
        private int kind;
        private int count; // of values that are not null
        private int before;
        private boolean lastIsNull;

        boolean add(Object value, int row) {
            before = data.length;
            lastIsNull = value == null;
            int of = kindOf(value);
            if (of < 0 || of != NONE && count > 0 && of != kind) {
                return false;
            }
            if (value == null) {
                if (present == null) {
                    present = new MsgWriter();
                    for (int i = 0; i < row; i++) {
                        present.little(1, 1);
                    }
                }
                present.little(0, 1);
                return true;
            }
            if (of == TEXT) {
                if (count > 0) {
                    data.little(0, 1);
                }
                if (!isWritten((String) value)) {
                    data.length = before;
                    return false;
                }
            } else if (of == INT) {
                data.little(((Number) value).longValue(), 8);
            } else if (of == FLOAT) {
                data.little(Double.doubleToRawLongBits((Double) value), 8);
            } else {
                data.little((Boolean) value ? 1 : 0, 1);
            }
            kind = of;
            count++;
            if (present != null) {
                present.little(1, 1);
            }
            return true;
        }

        private boolean isWritten(String text) {
            try {
                return data.utf8(text);
            } catch (NotPlainException halfACharacter) { // the row says where, when it is written alone
                return false;
            }
        }

        private int kindOf(Object value) {
            if (value instanceof String) {
                return TEXT;
            }
            if (value instanceof Integer) {
                return INT;
            }
            if (value instanceof Long) {
                long number = (Long) value;
                return exact && number == (int) number ? -1 : INT;
            }
            return value == null ? NONE : value instanceof Double ? FLOAT : value instanceof Boolean ? BOOL : -1;
        }

        void takeBack(int left) {
            data.length = before;
            count -= lastIsNull ? 0 : 1;
            kind = count == 0 ? NONE : kind;
            if (present != null) {
                present.length = left;
                present = count == left ? null : present;
            }
        }

        void clear() {
            data.clear();
            present = null;
            kind = NONE;
            count = 0;
        }
    }
}
