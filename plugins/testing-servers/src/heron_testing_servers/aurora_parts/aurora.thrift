// The part of Aurora's interface (0.22) that clients of jobs use. Names and field ids are those of the published api.thrift.

enum ResponseCode {
  INVALID_REQUEST = 0, OK = 1, ERROR = 2, WARNING = 3, AUTH_FAILED = 4, JOB_UPDATING_ERROR = 5, ERROR_TRANSIENT = 6
}
enum CronCollisionPolicy { KILL_EXISTING = 0, CANCEL_NEW = 1, RUN_OVERLAP = 2 }
enum Mode { RW = 1, RO = 2 }
enum ScheduleStatus {
  PENDING = 0, STARTING = 1, RUNNING = 2, FINISHED = 3, FAILED = 4, KILLED = 5, KILLING = 6, LOST = 7, ASSIGNED = 9,
  INIT = 11, RESTARTING = 12, PREEMPTING = 13, THROTTLED = 16, DRAINING = 17, PARTITIONED = 18
}
enum JobUpdateStatus {
  ROLLING_FORWARD = 0, ROLLING_BACK = 1, ROLL_FORWARD_PAUSED = 2, ROLL_BACK_PAUSED = 3, ROLLED_FORWARD = 4,
  ROLLED_BACK = 5, ABORTED = 6, ERROR = 7, FAILED = 8, ROLL_FORWARD_AWAITING_PULSE = 9, ROLL_BACK_AWAITING_PULSE = 10
}
enum JobUpdateAction {
  INSTANCE_UPDATED = 1, INSTANCE_ROLLED_BACK = 2, INSTANCE_UPDATING = 3, INSTANCE_ROLLING_BACK = 4,
  INSTANCE_UPDATE_FAILED = 5, INSTANCE_ROLLBACK_FAILED = 6
}
enum JobUpdatePulseStatus { OK = 1, FINISHED = 2 }

struct Identity { 2: string user }
struct ValueConstraint { 1: bool negated, 2: set<string> values }
struct LimitConstraint { 1: i32 limit }
union TaskConstraint { 1: ValueConstraint value, 2: LimitConstraint limit }
struct Constraint { 1: string name, 2: TaskConstraint constraint }
struct Metadata { 1: string key, 2: string value }
struct JobKey { 1: string role, 2: string environment, 3: string name }
struct InstanceKey { 1: JobKey jobKey, 2: i32 instanceId }
struct MesosFetcherURI { 1: string value, 2: optional bool extract, 3: optional bool cache }
struct ExecutorConfig { 1: string name, 2: string data }
struct Volume { 1: string containerPath, 2: string hostPath, 3: Mode mode }
struct DockerImage { 1: string name, 2: string tag }
struct AppcImage { 1: string name, 2: string imageId }
union Image { 1: DockerImage docker, 2: AppcImage appc }
struct MesosContainer { 1: optional Image image, 2: optional list<Volume> volumes }
struct DockerParameter { 1: string name, 2: string value }
struct DockerContainer { 1: string image, 2: optional list<DockerParameter> parameters }
union Container { 1: MesosContainer mesos, 2: DockerContainer docker }
union Resource { 1: double numCpus, 2: i64 ramMb, 3: i64 diskMb, 4: string namedPort, 5: i64 numGpus }
struct PartitionPolicy { 1: bool reschedule, 2: optional i64 delaySecs }
struct TaskConfig {
  28: JobKey job,
  17: Identity owner,
  7: bool isService,
  11: i32 priority,
  13: i32 maxTaskFailures,
  18: optional bool production,
  30: optional string tier,
  32: set<Resource> resources,
  20: set<Constraint> constraints,
  33: optional set<MesosFetcherURI> mesosFetcherUris,
  22: optional map<string, string> taskLinks,
  23: optional string contactEmail,
  25: optional ExecutorConfig executorConfig,
  27: optional set<Metadata> metadata,
  34: optional PartitionPolicy partitionPolicy,
  29: Container container
}
struct ResourceAggregate { 1: double numCpus, 2: i64 ramMb, 3: i64 diskMb, 4: set<Resource> resources }
struct JobConfiguration {
  9: JobKey key,
  7: Identity owner,
  4: optional string cronSchedule,
  5: CronCollisionPolicy cronCollisionPolicy,
  6: TaskConfig taskConfig,
  8: i32 instanceCount
}
struct JobStats { 1: i32 activeTaskCount, 2: i32 finishedTaskCount, 3: i32 failedTaskCount, 4: i32 pendingTaskCount }
struct JobSummary { 1: JobConfiguration job, 2: JobStats stats, 3: optional i64 nextCronRunMs }
struct Range { 1: i32 first, 2: i32 last }
struct ConfigGroup { 1: TaskConfig config, 3: set<Range> instances }
struct ConfigSummary { 1: JobKey key, 2: set<ConfigGroup> groups }
struct PopulateJobResult { 2: TaskConfig taskConfig }
struct GetQuotaResult {
  1: ResourceAggregate quota,
  2: optional ResourceAggregate prodSharedConsumption,
  3: optional ResourceAggregate nonProdSharedConsumption,
  4: optional ResourceAggregate prodDedicatedConsumption,
  5: optional ResourceAggregate nonProdDedicatedConsumption
}
struct TaskEvent { 1: i64 timestamp, 2: ScheduleStatus status, 3: optional string message, 4: optional string scheduler }
struct AssignedTask {
  1: string taskId, 2: string slaveId, 3: string slaveHost, 4: TaskConfig task, 5: map<string, i32> assignedPorts,
  6: i32 instanceId
}
struct ScheduledTask {
  1: AssignedTask assignedTask, 2: ScheduleStatus status, 3: i32 failureCount, 6: i32 timesPartitioned,
  4: list<TaskEvent> taskEvents, 5: string ancestorId
}
struct ScheduleStatusResult { 1: list<ScheduledTask> tasks }
struct GetJobsResult { 1: set<JobConfiguration> configs }
struct TaskQuery {
  14: string role, 9: string environment, 2: string jobName, 4: set<string> taskIds, 5: set<ScheduleStatus> statuses,
  7: set<i32> instanceIds, 10: set<string> slaveHosts, 11: set<JobKey> jobKeys, 12: i32 offset, 13: i32 limit
}
struct RoleSummary { 1: string role, 2: i32 jobCount, 3: i32 cronJobCount }
struct PendingReason { 1: string taskId, 2: string reason }
struct JobUpdateKey { 1: JobKey job, 2: string id }
struct QueueJobUpdateStrategy { 1: i32 groupSize }
struct BatchJobUpdateStrategy { 1: i32 groupSize }
struct VariableBatchJobUpdateStrategy { 1: list<i32> groupSizes }
union JobUpdateStrategy {
  1: QueueJobUpdateStrategy queueStrategy, 2: BatchJobUpdateStrategy batchStrategy,
  3: VariableBatchJobUpdateStrategy varBatchStrategy
}
struct JobUpdateSettings {
  1: i32 updateGroupSize,
  2: i32 maxPerInstanceFailures,
  3: i32 maxFailedInstances,
  5: i32 minWaitInInstanceRunningMs,
  6: bool rollbackOnFailure,
  7: set<Range> updateOnlyTheseInstances,
  8: bool waitForBatchCompletion,
  9: optional i32 blockIfNoPulsesAfterMs,
  10: optional bool slaAware,
  11: optional JobUpdateStrategy updateStrategy
}
struct JobUpdateEvent { 1: JobUpdateStatus status, 2: i64 timestampMs, 3: optional string user, 4: optional string message }
struct JobInstanceUpdateEvent {
  1: i32 instanceId, 2: i64 timestampMs, 3: JobUpdateAction action, 4: optional string message
}
struct InstanceTaskConfig { 1: TaskConfig task, 2: set<Range> instances }
struct JobUpdateState { 1: JobUpdateStatus status, 2: i64 createdTimestampMs, 3: i64 lastModifiedTimestampMs }
struct JobUpdateSummary { 5: JobUpdateKey key, 3: string user, 4: JobUpdateState state, 6: optional set<Metadata> metadata }
struct JobUpdateInstructions {
  1: set<InstanceTaskConfig> initialState, 2: InstanceTaskConfig desiredState, 3: JobUpdateSettings settings
}
struct JobUpdate { 1: JobUpdateSummary summary, 2: JobUpdateInstructions instructions }
struct JobUpdateDetails {
  1: JobUpdate update, 2: list<JobUpdateEvent> updateEvents, 3: list<JobInstanceUpdateEvent> instanceEvents
}
struct JobUpdateRequest {
  1: TaskConfig taskConfig, 2: i32 instanceCount, 3: JobUpdateSettings settings, 4: optional set<Metadata> metadata
}
struct JobUpdateQuery {
  2: string role, 8: JobUpdateKey key, 3: JobKey jobKey, 4: string user, 5: set<JobUpdateStatus> updateStatuses,
  6: i32 offset, 7: i32 limit
}
struct RoleSummaryResult { 1: set<RoleSummary> summaries }
struct JobSummaryResult { 1: set<JobSummary> summaries }
struct ConfigSummaryResult { 1: ConfigSummary summary }
struct GetPendingReasonResult { 1: set<PendingReason> reasons }
struct StartJobUpdateResult { 1: JobUpdateKey key, 2: optional JobUpdateSummary updateSummary }
struct GetJobUpdateSummariesResult { 1: list<JobUpdateSummary> updateSummaries }
struct GetJobUpdateDetailsResult { 1: JobUpdateDetails details, 2: list<JobUpdateDetails> detailsList }
struct PulseJobUpdateResult { 1: JobUpdatePulseStatus status }
struct GetJobUpdateDiffResult {
  1: set<ConfigGroup> add, 2: set<ConfigGroup> remove, 3: set<ConfigGroup> update, 4: set<ConfigGroup> unchanged
}
struct TierConfig { 1: string name, 2: map<string, string> settings }
struct GetTierConfigResult { 1: string defaultTierName, 2: set<TierConfig> tiers }
struct ServerInfo { 1: string clusterName, 3: string statsUrlPrefix }
union Result {
  1: PopulateJobResult populateJobResult,
  3: ScheduleStatusResult scheduleStatusResult,
  4: GetJobsResult getJobsResult,
  5: GetQuotaResult getQuotaResult,
  17: RoleSummaryResult roleSummaryResult,
  18: JobSummaryResult jobSummaryResult,
  20: ConfigSummaryResult configSummaryResult,
  21: GetPendingReasonResult getPendingReasonResult,
  22: StartJobUpdateResult startJobUpdateResult,
  23: GetJobUpdateSummariesResult getJobUpdateSummariesResult,
  24: GetJobUpdateDetailsResult getJobUpdateDetailsResult,
  25: PulseJobUpdateResult pulseJobUpdateResult,
  26: GetJobUpdateDiffResult getJobUpdateDiffResult,
  27: GetTierConfigResult getTierConfigResult
}
struct ResponseDetail { 1: string message }
struct Response { 1: ResponseCode responseCode, 5: ServerInfo serverInfo, 3: optional Result result, 6: list<ResponseDetail> details }

service ReadOnlyScheduler {
  Response getRoleSummary(),
  Response getJobSummary(1: string role),
  Response getTasksStatus(1: TaskQuery query),
  Response getTasksWithoutConfigs(1: TaskQuery query),
  Response getPendingReason(1: TaskQuery query),
  Response getConfigSummary(1: JobKey job),
  Response getJobs(1: string ownerRole),
  Response getQuota(1: string ownerRole),
  Response populateJobConfig(1: JobConfiguration description),
  Response getJobUpdateSummaries(1: JobUpdateQuery jobUpdateQuery),
  Response getJobUpdateDetails(1: JobUpdateKey key, 2: JobUpdateQuery query),
  Response getJobUpdateDiff(1: JobUpdateRequest request),
  Response getTierConfigs()
}

service AuroraSchedulerManager extends ReadOnlyScheduler {
  Response createJob(1: JobConfiguration description),
  Response restartShards(5: JobKey job, 3: set<i32> shardIds),
  Response killTasks(4: JobKey job, 5: set<i32> instances, 6: string message),
  Response addInstances(3: InstanceKey key, 4: i32 count),
  Response startJobUpdate(1: JobUpdateRequest request, 3: string message),
  Response pauseJobUpdate(1: JobUpdateKey key, 3: string message),
  Response resumeJobUpdate(1: JobUpdateKey key, 3: string message),
  Response abortJobUpdate(1: JobUpdateKey key, 3: string message),
  Response rollbackJobUpdate(1: JobUpdateKey key, 2: string message),
  Response pulseJobUpdate(1: JobUpdateKey key)
}

service AuroraAdmin extends AuroraSchedulerManager {
  Response setQuota(1: string ownerRole, 2: ResourceAggregate quota)
}
