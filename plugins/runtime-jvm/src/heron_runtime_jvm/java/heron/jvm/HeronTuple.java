package heron.jvm;

import java.util.List;
import org.apache.storm.task.GeneralTopologyContext;
import org.apache.storm.tuple.MessageId;
import org.apache.storm.tuple.TupleImpl;

/**
 * A received tuple. `id` is its number, 0 for a tick.
 *
 * <p>Python has one kind of int and one of float: the getters of a kind convert.
 */
final class HeronTuple extends TupleImpl {
    final long id;

    HeronTuple(GeneralTopologyContext context, long id, List<Object> values, String component, int task, String stream) {
        super(context, values, component, task, stream, MessageId.makeUnanchored());
        this.id = id;
    }

    private Long integer(int i, long least, long most, String kind) {
        Object value = getValue(i);
        if (value == null) {
            return null;
        }
        boolean whole = value instanceof Integer || value instanceof Long || value instanceof Short
            || value instanceof Byte;
        long number = whole ? ((Number) value).longValue() : 0;
        if (!whole || number < least || number > most) {
            throw new ClassCastException("field '" + getFields().get(i) + "' is " + value + " of "
                + value.getClass().getName() + ", which is no " + kind);
        }
        return number;
    }

    @Override
    public Integer getInteger(int i) {
        Long number = integer(i, Integer.MIN_VALUE, Integer.MAX_VALUE, "Integer");
        return number == null ? null : (Integer) number.intValue();
    }

    @Override
    public Long getLong(int i) {
        return integer(i, Long.MIN_VALUE, Long.MAX_VALUE, "Long");
    }

    @Override
    public Short getShort(int i) {
        Long number = integer(i, Short.MIN_VALUE, Short.MAX_VALUE, "Short");
        return number == null ? null : (Short) number.shortValue();
    }

    @Override
    public Byte getByte(int i) {
        Long number = integer(i, Byte.MIN_VALUE, Byte.MAX_VALUE, "Byte");
        return number == null ? null : (Byte) number.byteValue();
    }

    @Override
    public Double getDouble(int i) {
        Number number = (Number) getValue(i);
        return number == null ? null : (Double) number.doubleValue();
    }

    @Override
    public Float getFloat(int i) {
        Number number = (Number) getValue(i);
        return number == null ? null : (Float) number.floatValue();
    }

    @Override
    public Integer getIntegerByField(String field) {
        return getInteger(fieldIndex(field));
    }

    @Override
    public Long getLongByField(String field) {
        return getLong(fieldIndex(field));
    }

    @Override
    public Short getShortByField(String field) {
        return getShort(fieldIndex(field));
    }

    @Override
    public Byte getByteByField(String field) {
        return getByte(fieldIndex(field));
    }

    @Override
    public Double getDoubleByField(String field) {
        return getDouble(fieldIndex(field));
    }

    @Override
    public Float getFloatByField(String field) {
        return getFloat(fieldIndex(field));
    }
}
