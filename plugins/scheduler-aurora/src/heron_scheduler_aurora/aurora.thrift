// The part of Aurora's interface that the driver uses. Other fields of the same structures are skipped.
// Enumerations are i32 here, and have their names in `aurora_words`.

struct Identity { 2: string user }
struct JobKey { 1: string role, 2: string environment, 3: string name }
struct InstanceKey { 1: JobKey jobKey, 2: i32 instanceId }
struct Metadata { 1: string key, 2: string value }
struct Range { 1: i32 first, 2: i32 last }

union Resource { 1: double numCpus, 2: i64 ramMb, 3: i64 diskMb, 4: string namedPort, 5: i64 numGpus }

struct ValueConstraint { 1: bool negated, 2: set<string> values }
struct LimitConstraint { 1: i32 limit }
union TaskConstraint { 1: ValueConstraint value, 2: LimitConstraint limit }
struct Constraint { 1: string name, 2: TaskConstraint constraint }

struct Volume { 1: string containerPath, 2: string hostPath, 3: i32 mode }
struct DockerImage { 1: string name, 2: string tag }
union Image { 1: DockerImage docker }
struct MesosContainer { 1: optional Image image, 2: optional list<Volume> volumes }
struct DockerParameter { 1: string name, 2: string value }
struct DockerContainer { 1: string image, 2: optional list<DockerParameter> parameters }
union Container { 1: MesosContainer mesos, 2: DockerContainer docker }

struct ExecutorConfig { 1: string name, 2: string data }
struct PartitionPolicy { 1: bool reschedule, 2: optional i64 delaySecs }

struct TaskConfig {
  7: bool isService
  11: i32 priority
  13: i32 maxTaskFailures
  17: Identity owner
  20: set<Constraint> constraints
  23: optional string contactEmail
  25: optional ExecutorConfig executorConfig
  27: optional set<Metadata> metadata
  28: JobKey job
  29: Container container
  30: optional string tier
  32: set<Resource> resources
  34: optional PartitionPolicy partitionPolicy
}

struct JobConfiguration {
  5: i32 cronCollisionPolicy
  6: TaskConfig taskConfig
  7: Identity owner
  8: i32 instanceCount
  9: JobKey key
}

struct TaskQuery { 7: set<i32> instanceIds, 11: set<JobKey> jobKeys }
struct TaskEvent { 1: i64 timestamp, 2: i32 status, 3: optional string message }
struct AssignedTask { 1: string taskId, 2: string slaveId, 3: string slaveHost, 4: TaskConfig task, 6: i32 instanceId }
struct ScheduledTask { 1: AssignedTask assignedTask, 2: i32 status, 4: list<TaskEvent> taskEvents }
struct ScheduleStatusResult { 1: list<ScheduledTask> tasks }

struct PendingReason { 1: string taskId, 2: string reason }
struct GetPendingReasonResult { 1: set<PendingReason> reasons }

struct TierConfig { 1: string name }
struct GetTierConfigResult { 1: string defaultTierName, 2: set<TierConfig> tiers }

struct JobUpdateKey { 1: JobKey job, 2: string id }
struct JobUpdateSettings {
  1: i32 updateGroupSize
  2: i32 maxPerInstanceFailures
  3: i32 maxFailedInstances
  5: i32 minWaitInInstanceRunningMs
  6: bool rollbackOnFailure
  7: set<Range> updateOnlyTheseInstances
  8: bool waitForBatchCompletion
}
struct JobUpdateRequest {
  1: TaskConfig taskConfig
  2: i32 instanceCount
  3: JobUpdateSettings settings
  4: optional set<Metadata> metadata
}
struct JobUpdateQuery { 3: JobKey jobKey, 7: i32 limit }
struct JobUpdateState { 1: i32 status, 2: i64 createdTimestampMs }
struct JobUpdateSummary { 3: string user, 4: JobUpdateState state, 5: JobUpdateKey key, 6: optional set<Metadata> metadata }
struct StartJobUpdateResult { 1: JobUpdateKey key }
struct GetJobUpdateSummariesResult { 1: list<JobUpdateSummary> updateSummaries }

union Result {
  3: ScheduleStatusResult scheduleStatusResult
  21: GetPendingReasonResult getPendingReasonResult
  22: StartJobUpdateResult startJobUpdateResult
  23: GetJobUpdateSummariesResult getJobUpdateSummariesResult
  27: GetTierConfigResult getTierConfigResult
}
struct ServerInfo { 1: string clusterName }
struct ResponseDetail { 1: string message }
struct Response {
  1: i32 responseCode
  3: optional Result result
  5: ServerInfo serverInfo
  6: list<ResponseDetail> details
}

service Scheduler {
  Response getTasksStatus(1: TaskQuery query)
  Response getTasksWithoutConfigs(1: TaskQuery query)
  Response getPendingReason(1: TaskQuery query)
  Response getTierConfigs()
  Response getJobUpdateSummaries(1: JobUpdateQuery jobUpdateQuery)
  Response createJob(1: JobConfiguration description)
  Response addInstances(3: InstanceKey key, 4: i32 count)
  Response killTasks(4: JobKey job, 5: set<i32> instances, 6: string message)
  Response restartShards(5: JobKey job, 3: set<i32> shardIds)
  Response startJobUpdate(1: JobUpdateRequest request, 3: string message)
  Response abortJobUpdate(1: JobUpdateKey key, 3: string message)
}
