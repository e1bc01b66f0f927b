package heron.jvm;

import java.lang.reflect.Method;

/** The loggers of Storm's own classes: a start and a submission are worth no line, a warning is. */
public final class StormLoggers {
    private static final String STORM = "org.apache.storm";

    /** Loggers below Storm's that tell of the author's program. */
    private static final String[] AUTHORS = {
        STORM + ".starter", STORM + ".task.ShellBolt", STORM + ".spout.ShellSpout",
    };

    private StormLoggers() { }

    /** Sets the level of Storm's loggers to WARN, unless the user has given a configuration of Log4j. */
    public static void warnOnly() {
        if (System.getProperty("log4j2.configurationFile", System.getProperty("log4j.configurationFile")) != null) {
            return;
        }
        try {
            Class<?> level = Class.forName("org.apache.logging.log4j.Level");
            Class<?> manager = Class.forName("org.apache.logging.log4j.LogManager");
            Object logger = manager.getMethod("getLogger", String.class).invoke(null, STORM);
            Object usual = Class.forName("org.apache.logging.log4j.Logger").getMethod("getLevel").invoke(logger);
            Method set = Class.forName("org.apache.logging.log4j.core.config.Configurator")
                .getMethod("setLevel", String.class, level);
            set.invoke(null, STORM, level.getField("WARN").get(null));
            for (String each : AUTHORS) {
                set.invoke(null, each, usual);
            }
        } catch (ReflectiveOperationException | LinkageError other) {
            return; // the jars have another library for logs, whose own configuration holds
        }
    }
}
