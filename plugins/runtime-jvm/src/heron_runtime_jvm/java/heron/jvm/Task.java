package heron.jvm;

/** The component of this JVM. All calls come from one thread. */
interface Task {
    void open() throws Exception;

    /** Carries out a frame of a kind that only spouts or only bolts have. */
    void take(int kind, MsgReader frame) throws Exception;

    void close();
}
