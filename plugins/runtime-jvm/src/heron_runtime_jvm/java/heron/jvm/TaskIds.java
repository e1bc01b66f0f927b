package heron.jvm;

import java.util.AbstractList;
import java.util.ArrayList;
import java.util.List;

/**
 * The ids of the tasks that receive a tuple. Few programs read them, so Heron is asked when one does, which has to be
 * before the next emit.
 */
final class TaskIds extends AbstractList<Integer> {
    private final TaskOutput output;
    private final long number;
    private List<Integer> ids;

    TaskIds(TaskOutput output, long number) {
        this.output = output;
        this.number = number;
    }

    @Override
    public Integer get(int i) {
        return known().get(i);
    }

    @Override
    public int size() {
        return known().size();
    }

    private List<Integer> known() {
        if (ids == null) {
            ids = new ArrayList<>(output.askTasks(number));
        }
        return ids;
    }
}
