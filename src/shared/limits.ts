/**
 * Every limit that Choir puts on a queue, loop, wait, buffer or size, with its unit in its name. What an operator may change
 * stands in config.json instead (docs/configuration.md).
 */

const KIB = 1024
const MIB = 1024 * KIB

/** A committed event's canonical bytes (R48). */
export const EVENT_BYTES_MAX = 512 * KIB
/** An RPC's body in either direction (R47). */
export const BODY_BYTES_MAX = MIB
/** A tool's result as it stands in an event; the rest goes to a file named by its hash (R48). */
export const TOOL_RESULT_BYTES_MAX = 256 * KIB
/** What is kept of one output stream of a process while it runs (R48). */
export const EXEC_OUTPUT_BYTES_MAX = MIB
/** A path of the workspace as a tool spells it: the kernel takes one byte less than PATH_MAX (D27). */
export const WORKSPACE_PATH_BYTES_MAX = 4095
/** Locks that one tool call may ask for (spec 9.3). */
export const LOCKSET_LOCKS_MAX = 64
/** Locksets that wait at once in one agent; the next one is refused as busy. */
export const LOCK_WAITERS_MAX = 1024
/** How long an edge tool waits for its locks, so that a chat never hangs behind a core job (R19). */
export const EDGE_LOCK_WAIT_MS = 2000
/** The longest wait for locks that a caller may ask for, the longest timeout of a tool (E12). */
export const LOCK_WAIT_MS_MAX = 3_600_000

/** A request's body to the offline model. */
export const OFFLINE_MODEL_BODY_BYTES_MAX = 8 * MIB
/** Messages of one request to the offline model. */
export const OFFLINE_MODEL_MESSAGES_MAX = 10_000
/** Tools offered to the offline model in one request. */
export const OFFLINE_MODEL_TOOLS_MAX = 512
/** UTF-16 units of a message that the offline model looks at. */
export const OFFLINE_MODEL_TURN_CHARS_MAX = 256 * KIB
/** Instructions that the offline model takes from one message. */
export const OFFLINE_MODEL_STEPS_MAX = 100
/** Tool calls that the offline model puts into one reply. */
export const OFFLINE_MODEL_PARALLEL_CALLS_MAX = 16
/** How often the offline model calls for one instruction: a refused write is read and tried again. */
export const OFFLINE_MODEL_CALLS_PER_STEP_MAX = 3
/** Lines of a tool's output that the offline model repeats. */
export const OFFLINE_MODEL_LINES_SHOWN_MAX = 12
/** UTF-16 units of one line, reason or report summary that the offline model repeats. */
export const OFFLINE_MODEL_SUMMARY_CHARS_MAX = 1000
/** UTF-16 units of a whole answer of the offline model. */
export const OFFLINE_MODEL_TEXT_CHARS_MAX = 32_000
/** How long the offline model waits for a request to arrive whole. */
export const OFFLINE_MODEL_REQUEST_TIMEOUT_MS = 30_000
/** Open connections to the offline model. */
export const OFFLINE_MODEL_CONNECTIONS_MAX = 256
/** A file of the workspace that a file tool reads or writes whole. */
export const WORKSPACE_FILE_BYTES_MAX = 16 * MIB
/** Entries of a folder that a file tool lists. */
export const FOLDER_ENTRIES_MAX = 1000
/** Tries to find a free name for the temporary file of an atomic write. */
export const TEMPORARY_NAME_TRIES_MAX = 5
/** A file tool's deadline; a read or write of the largest file takes far less (E12). */
export const FILE_TOOL_TIMEOUT_MS = 10_000
/** Of a refused write's diff, what the model is shown. */
export const WRITE_DIFF_BYTES_MAX = 4 * KIB
/** Edits that the diff of a refused write looks for before it settles for a coarser one. */
export const WRITE_DIFF_EDITS_MAX = 500
/** How long a search may take (E12). */
export const SEARCH_TIMEOUT_MS = 30_000
/** Matches that a search returns. */
export const SEARCH_MATCHES_MAX = 200
/** Characters of a matching line that a search returns. */
export const SEARCH_LINE_CHARS_MAX = 400
/** Characters of a search's pattern and of its glob. */
export const SEARCH_PATTERN_CHARS_MAX = 4096
/** How long a command of choir.exec runs when the model names no time (E12). */
export const EXEC_TIMEOUT_MS = 120_000
/** The longest time that the model may ask for a command of choir.exec (E12). */
export const EXEC_TIMEOUT_MS_MAX = 600_000
/** One argument of a process: the kernel refuses 128 KiB, its closing NUL included. */
export const EXEC_COMMAND_BYTES_MAX = 128 * KIB - 1
/** What a tool with a process gets beyond the process's own time, to kill what is left and to hand over its output. */
export const PROCESS_GRACE_MS = 2000
/** Rounds of looking for what is left of a call and killing it; with the waits between them about a second (R22). */
export const PROCESS_SWEEPS_MAX = 100
/** The pause between two such rounds, in which the kernel buries what was killed. */
export const PROCESS_SWEEP_PAUSE_MS = 5
/** Looks within one round that stop what a call forks while it is being found. */
export const PROCESS_FREEZES_MAX = 20
/** How long a finished process's output may take to arrive when something beyond reach keeps the pipe open. */
export const PROCESS_DRAIN_MS = 250
/** Characters of a failed tool's standard error that the model is shown. */
export const TOOL_STDERR_CHARS_MAX = 4000

/** From starting an agent's container until its first process is known. */
export const CONTAINER_START_MS_MAX = 10_000
/** From killing a container until each of its processes is gone; passing it leaves the agent stopped and says so (R8). */
export const CONTAINER_GONE_MS_MAX = 10_000
/** Between two looks at whether a killed process is gone. */
export const CONTAINER_GONE_POLL_MS = 5
/** How often a tree of processes is searched again for children that were forked during the search. */
export const PROCESS_SEARCHES_MAX = 20
/** One line of an agent's own output; the rest of the line is cut. */
export const CONTAINER_LINE_BYTES_MAX = 16 * KIB
/** Lines of an agent's own output that wait for their reader; more are dropped and counted. */
export const CONTAINER_LINES_MAX = 1000
/** What a sandbox's /tmp, /run and /dev/shm may hold, in bytes. */
export const SANDBOX_TMP_BYTES_MAX = 256 * MIB
export const SANDBOX_RUN_BYTES_MAX = 16 * MIB
export const SANDBOX_SHM_BYTES_MAX = 64 * MIB
/** Host uids that sandboxes run under when choird is root; a range that distributions and systemd leave unused. */
export const SANDBOX_UID_FIRST = 1_900_000_000
export const SANDBOX_UID_COUNT = 65_536
/** A helper program of a runtime (the ownership change of a workspace, a trial sandbox). */
export const RUNTIME_COMMAND_MS_MAX = 60_000
/** Revisions of a lane's window that the fold keeps; the prompt takes fewer (`memory.event_window`). */
export const WINDOW_REVS_MAX = 1000
/** Signals that the fold remembers to drop what comes twice; choird sends far fewer before they are acknowledged. */
export const SIGNALS_REMEMBERED_MAX = 1000
/** One call of the program git, after which its process group is ended (D42). */
export const GIT_TIMEOUT_MS = 30_000
/** What a call of git may print when it does not say otherwise. */
export const GIT_OUTPUT_BYTES_MAX = 64 * KIB
/** What an error repeats of git's own words. */
export const GIT_REASON_CHARS_MAX = 400
/** From this size on git streams a blob instead of holding it in memory. */
export const GIT_BIG_FILE_BYTES = 8 * MIB
/** A git url of config.json. */
export const REPO_URL_CHARS_MAX = 2048
/** A git ref of config.json. */
export const REPO_REF_CHARS_MAX = 200
/** Files in the tree of a global or agent repository (R75). */
export const REPO_FILES_MAX = 5000
/** One file of a global or agent repository (R75). */
export const REPO_FILE_BYTES_MAX = 20 * MIB
/** All files of a global or agent repository; they are held in memory while an image is built (R75). */
export const REPO_BYTES_MAX = 200 * MIB
/** The path of a file in a global or agent repository. */
export const REPO_PATH_BYTES_MAX = 512
/** Problems of a repository that are reported at once. */
export const REPO_PROBLEMS_MAX = 50
/** A tool manifest or a skill file. */
export const MANIFEST_BYTES_MAX = 256 * KIB
/** An identity file: it is part of every prompt. */
export const IDENTITY_BYTES_MAX = 64 * KIB
/** Images of one agent that are kept, the newest first. */
export const IMAGES_KEPT = 3

/** Connections to Postgres that choird keeps at most (R51). */
export const DATABASE_CONNECTIONS_MAX = 20
/** Connections to the embedded database, whose one backend serves them in turn. */
export const EMBEDDED_CONNECTIONS_MAX = 8
/** How long one SQL statement may run (R51). */
export const STATEMENT_MS_MAX = 10_000
/** How long a SQL statement waits for a lock (R51). */
export const DATABASE_LOCK_MS_MAX = 2000
/** How long a transaction may wait for its own program; afterwards it is rolled back (R51). */
export const IDLE_IN_TRANSACTION_MS_MAX = 15_000
/** How long one attempt to connect to Postgres may take. */
export const DATABASE_CONNECT_MS_MAX = 5000
/** How long choird keeps trying to reach Postgres before it gives up (D45). */
export const DATABASE_REACH_MS_MAX = 60_000
/** The longest pause between two attempts to reach Postgres. */
export const DATABASE_RETRY_MS_MAX = 5000
/** How long all pending migrations may take, waiting for another migrator included (R67). */
export const MIGRATION_MS_MAX = 60_000
/** One request to the embedded database: a statement with its parameters. */
export const EMBEDDED_REQUEST_BYTES_MAX = 16 * MIB
/** One answer of the embedded database. Longer results are read in pages. */
export const EMBEDDED_ANSWER_BYTES_MAX = 64 * MIB
/** How long the embedded database may take to open; making a folder without a template is the slow case. */
export const EMBEDDED_OPEN_MS_MAX = 60_000
/** How long the embedded database may take to close before its thread is ended. */
export const EMBEDDED_CLOSE_MS_MAX = 10_000
