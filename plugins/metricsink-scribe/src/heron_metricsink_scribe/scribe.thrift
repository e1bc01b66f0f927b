/* The part of the interface of Scribe that the client uses. */

enum ResultCode {
  OK = 0,
  TRY_LATER = 1
}

struct LogEntry {
  1: string category,
  2: string message
}

service scribe {
  ResultCode Log(1: list<LogEntry> messages)
}
