// The part of Storm's storm.thrift that describes a topology; numbers and types are those of Apache Storm 2.x.

union JavaObjectArg {
  1: i32 int_arg; 2: i64 long_arg; 3: string string_arg; 4: bool bool_arg; 5: binary binary_arg; 6: double double_arg;
}
struct JavaObject { 1: required string full_class_name; 2: required list<JavaObjectArg> args_list; }
struct NullStruct { }
struct GlobalStreamId { 1: required string componentId; 2: required string streamId; }
union Grouping {
  1: list<string> fields; 2: NullStruct shuffle; 3: NullStruct all; 4: NullStruct none; 5: NullStruct direct;
  6: JavaObject custom_object; 7: binary custom_serialized; 8: NullStruct local_or_shuffle;
}
struct StreamInfo { 1: required list<string> output_fields; 2: required bool direct; }
struct ShellComponent { 1: string execution_command; 2: string script; }
union ComponentObject { 1: binary serialized_java; 2: ShellComponent shell; 3: JavaObject java_object; }
struct ComponentCommon {
  1: required map<GlobalStreamId, Grouping> inputs;
  2: required map<string, StreamInfo> streams;
  3: optional i32 parallelism_hint;
  4: optional string json_conf;
}
struct SpoutSpec { 1: required ComponentObject spout_object; 2: required ComponentCommon common; }
struct Bolt { 1: required ComponentObject bolt_object; 2: required ComponentCommon common; }
struct StormTopology {
  1: required map<string, SpoutSpec> spouts;
  2: required map<string, Bolt> bolts;
  4: optional list<binary> worker_hooks;
}
