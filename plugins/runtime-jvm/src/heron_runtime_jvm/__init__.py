"""Spouts and bolts written in Java against the interfaces of Apache Storm, each task in a JVM that is its child.

Reading order: `jvm_settings`, `class_path`, `java_program`, `compiled_classes`, `java_values`, `frames`, `setup`,
`java_failure`, `jvm_protocol`, `jvm_spec`, `pending_tuples`, `frame_window`, `jvm_bolt_output`, `jvm_bolt`,
`jvm_spout`. The Java side is in the folder `java`; it begins with `Main`.
"""

from heron_runtime_jvm.class_path import expanded_class_path
from heron_runtime_jvm.compiled_classes import STORM_LOGGERS, compiled_classes
from heron_runtime_jvm.java_program import JavaError, JavaProgram, find_java
from heron_runtime_jvm.java_values import JavaLong, JavaObject
from heron_runtime_jvm.jvm_bolt import JvmBolt
from heron_runtime_jvm.jvm_settings import JvmArguments, direct_stream, heron_name
from heron_runtime_jvm.jvm_spout import JvmSpout

__all__ = [
    "STORM_LOGGERS",
    "JavaError",
    "JavaLong",
    "JavaObject",
    "JavaProgram",
    "JvmArguments",
    "JvmBolt",
    "JvmSpout",
    "compiled_classes",
    "direct_stream",
    "expanded_class_path",
    "find_java",
    "heron_name",
]
