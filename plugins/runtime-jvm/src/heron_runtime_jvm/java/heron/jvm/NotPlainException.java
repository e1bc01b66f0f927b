package heron.jvm;

/** A value cannot travel to where its stream leads. */
final class NotPlainException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    NotPlainException(String message) {
        super(message);
    }
}
