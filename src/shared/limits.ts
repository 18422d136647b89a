/**
 * Every limit that Choir puts on a queue, loop, wait, buffer or size, with its unit in its name. What an operator may change
 * stands in config.json instead (docs/configuration.md).
 */

const KIB = 1024
const MIB = 1024 * KIB

/** A committed event's canonical bytes (R48). */
export const EVENT_BYTES_MAX = 512 * KIB
/** Canonical bytes of the events of one commit, which one request carries whole. */
export const COMMIT_BYTES_MAX = 768 * KIB
/** An RPC's body in either direction (R47). */
export const BODY_BYTES_MAX = MIB
/** A tool's result as it stands in an event; of a longer one each text keeps its beginning and its end (R48). */
export const TOOL_RESULT_BYTES_MAX = 256 * KIB
/** What is kept of one output stream of a process while it runs (R48). */
export const EXEC_OUTPUT_BYTES_MAX = MIB
/** A path of the workspace as a tool spells it: the kernel takes one byte less than PATH_MAX (D27). */
export const WORKSPACE_PATH_BYTES_MAX = 4095
/** Locks that one tool call may ask for (spec 9.3). */
export const LOCKSET_LOCKS_MAX = 64
/** What an error quotes of a resource key that cannot be locked. */
export const INVALID_LOCK_CHARS_MAX = 200
/** Locksets that wait at once in one agent; the next one is refused as busy. */
export const LOCK_WAITERS_MAX = 1024
/** How long an edge tool waits for its locks, so that a chat never hangs behind a core job (R19). */
export const EDGE_LOCK_WAIT_MS = 2000
/** The longest wait for locks that a caller may ask for, the longest timeout of a tool (E12). */
export const LOCK_WAIT_MS_MAX = 3_600_000

/** A request's body to the offline model. */
export const OFFLINE_MODEL_BODY_BYTES_MAX = 8 * MIB
/** Tokens of the offline model's prompt and answer together, as those of the models that it stands in for. */
export const OFFLINE_MODEL_CONTEXT_TOKENS = 128_000
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
/** What git sends its credential helper (D14). */
export const CREDENTIAL_REQUEST_BYTES_MAX = 8 * KIB
/** Helpers that ask the agent at once (D14). */
export const CREDENTIAL_CONNECTIONS_MAX = 8
/** How long ssh-agent and ssh-add may take for a key (E12). */
export const GIT_KEY_MS_MAX = 10_000
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
/** Looks in a row that must find nothing where forks of others leave room for doubt. */
export const PROCESS_CLEAN_LOOKS = 10
/** How long a finished process's output may take to arrive when something beyond reach keeps the pipe open. */
export const PROCESS_DRAIN_MS = 250
/** Characters of a failed tool's standard error that the model is shown. */
export const TOOL_STDERR_CHARS_MAX = 4000

/** From starting an agent's container until its first process is known. */
export const CONTAINER_START_MS_MAX = 10_000
/** For bubblewrap's last word on an exit, which may arrive after the exit itself. */
export const CONTAINER_STATUS_MS_MAX = 200
/** How long a container may take to go before the agent's status says so, in ms. */
export const CONTAINER_LINGERS_MS = 1000
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
/** One request to the Docker engine, until it answers; those that take longer say so. */
export const DOCKER_CALL_MS_MAX = 30_000
/** How long the start of an agent waits for an engine that is away, and the end of one for an engine that has its container. */
export const DOCKER_AWAY_MS_MAX = 600_000
/** Between two attempts to hear the Docker engine again. */
export const DOCKER_RECONNECT_MS = 500
/** Between two looks at all containers while the engine is there, should it have kept an event to itself. */
export const DOCKER_RECONCILE_MS = 5000
/** How long a starting choird waits for the Docker engine that config.json asks for. */
export const DOCKER_START_MS_MAX = 20_000
/** How long `status` and `auto` wait for the Docker engine. */
export const DOCKER_STATUS_MS_MAX = 2000
/** Images whose `version.json` choird remembers; of more the one that was read first is read again. */
export const BAKED_VERSIONS_MAX = 256
/** One piece of a container's output, as the engine sends it: parts of long lines have 16 KiB. */
export const DOCKER_FRAME_BYTES_MAX = 256 * KIB
/** What the engine keeps of a container's output on disk: this many files of this size. */
export const CONTAINER_LOG_FILES_MAX = 2
export const CONTAINER_LOG_MIB_MAX = 5
/** Between two looks at whether the Docker engine has done, or can do again, what it was asked. */
export const DOCKER_LOOK_MS = 50
/** How long the look-up of a name in `runtime.allow` may take. */
export const EGRESS_LOOKUP_MS_MAX = 5000
/** Names that are asked for at once. */
export const EGRESS_LOOKUPS_IN_FLIGHT_MAX = 8
/** Addresses of one listed name that stay open while choird runs; the oldest close first. */
export const EGRESS_ADDRESSES_MAX = 64
/** How long emptying a workspace may take, in a container or without one. */
export const WORKSPACE_RESET_MS_MAX = 600_000
/** How often both sides of a workspace are emptied in turn: the depth of foreign folders within foreign folders. */
export const RESET_PASSES_MAX = 4
/** Names that are shown of what could not be deleted. */
export const RESET_LEFT_SHOWN_MAX = 5
/** Memory of the container that empties a workspace: a folder of a million names is sorted in it. */
export const RESET_MEMORY_MIB = 512
/** Processes of that container. */
export const RESET_PIDS_MAX = 16
/** Revisions of a lane's window that the fold keeps; the prompt takes fewer (`memory.event_window`). */
export const WINDOW_REVS_MAX = 1000
/** Signals that the fold remembers to drop what comes twice; choird sends far fewer before they are acknowledged. */
export const SIGNALS_REMEMBERED_MAX = 1000
/** Files whose versions a lane remembers, and the characters of their paths together; the longest unused go first. */
export const SEEN_FILES_MAX = 256
export const SEEN_PATHS_CHARS_MAX = 16 * KIB
/** Different calls of a lane whose repetitions are counted. */
export const REPETITIONS_REMEMBERED_MAX = 16
/** Calls that one output may propose in a stored history; models may make fewer (MODEL_TOOL_CALLS_MAX). */
export const OUTPUT_CALLS_MAX = 128
/** Reports and questions of jobs that the user is still to be told. No job starts or asks where there may be no room for its end. */
export const REPORTS_OWED_MAX = 1000
/** One call of the program git, after which its process group is ended (D42). */
export const GIT_TIMEOUT_MS = 30_000
/** Reading a whole repository out of git, as large as one may be, on a busy machine. */
export const GIT_READ_TIMEOUT_MS = 120_000
/** What a call of git may print when it does not say otherwise. */
export const GIT_OUTPUT_BYTES_MAX = 64 * KIB
/** What an error repeats of git's own words. */
export const GIT_REASON_CHARS_MAX = 400
/** From this size on git streams a blob instead of holding it in memory. */
export const GIT_BIG_FILE_BYTES = 8 * MIB
/** Bytes of the largest file that git may write while it talks to another side, such as the pack of a fetch with all its history. */
export const GIT_WRITTEN_BYTES_MAX = 400 * MIB
/** A git url of config.json. */
export const REPO_URL_CHARS_MAX = 2048
/** A git ref of config.json. */
export const REPO_REF_CHARS_MAX = 200
/** Files in the tree of a global or agent repository (R75). */
export const REPO_FILES_MAX = 5000
/** One file of a global or agent repository (R75). */
export const REPO_FILE_BYTES_MAX = 20 * MIB
/** All files of a global or agent repository (R75). They are streamed; the next three limits say what is in memory. */
export const REPO_BYTES_MAX = 200 * MIB
/** Manifests, skills, identity and Dockerfiles of one repository, which choird reads itself. */
export const REPO_READ_BYTES_MAX = 8 * MIB
/** Other files of one repository that are in memory while an image is built or a change is shown. */
export const REPO_HELD_BYTES_MAX = 8 * MIB
/** A file up to this size is held while an image is built, as long as there is room; larger ones are written to a folder. */
export const REPO_SMALL_FILE_BYTES_MAX = 16 * KIB
/** The path of a file in a global or agent repository. */
export const REPO_PATH_BYTES_MAX = 512
/** Problems of a repository that are reported at once. */
export const REPO_PROBLEMS_MAX = 50
/** UTF-16 units of a skill's name or a transition's event as a model writes them. */
export const SKILL_NAME_CHARS_MAX = 128
/** States of one skill. */
export const SKILL_STATES_MAX = 32
/** Skills of one image, the built-in ones left out. */
export const IMAGE_SKILLS_MAX = 64
/** States whose results a running skill keeps for its later steps, the newest first kept. */
export const SKILL_RESULTS_MAX = 32
/** A tool manifest or a skill file. */
export const MANIFEST_BYTES_MAX = 256 * KIB
/** A Dockerfile, shorter than the longest line that a builder reads. */
export const DOCKERFILE_BYTES_MAX = 32 * KIB
/** Instructions of a Dockerfile; an image has at most 125 layers, and the base has some of them. */
export const DOCKERFILE_INSTRUCTIONS_MAX = 80
/** An identity file: it is part of every prompt. */
export const IDENTITY_BYTES_MAX = 64 * KIB
/** Files and folders of an image: two whole repositories, and the folders their paths make. */
export const IMAGE_ENTRIES_MAX = 4 * REPO_FILES_MAX
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
/** How long a choird waits for the database to be free of one that has just died, and how often it looks. */
export const DATABASE_FREED_MS_MAX = 3000
export const DATABASE_LOCK_LOOK_MS = 100
/** The longest pause between two attempts to reach Postgres. */
export const DATABASE_RETRY_MS_MAX = 5000
/** How long all pending migrations may take, waiting for another migrator included (R67). */
export const MIGRATION_MS_MAX = 60_000
/** One request to the embedded database: a statement with its parameters. */
export const EMBEDDED_REQUEST_BYTES_MAX = 16 * MIB
/** One answer of the embedded database. Longer results are read in pages. */
export const EMBEDDED_ANSWER_BYTES_MAX = 64 * MIB
/** How long the embedded database may be deaf before it counts as stuck; an index build is the longest thing that it does. */
export const EMBEDDED_STUCK_MS_MAX = 300_000
/** How long the embedded database may take to open; making a folder without a template is the slow case. */
export const EMBEDDED_OPEN_MS_MAX = 60_000
/** How long the embedded database may take to close before its thread is ended. */
export const EMBEDDED_CLOSE_MS_MAX = 10_000
/** Identical calls with identical results after which the next is refused (E11, R25). */
export const REPETITIONS_REFUSED_MIN = 5
/** Identical calls, refused ones included, after which the lane is stuck and ends its turn or job (E11, R25). */
export const REPETITIONS_STUCK_MIN = 8
/** One RPC of an agent, answer included. A chunk of 1 MiB over a local socket takes milliseconds. */
export const RPC_TIMEOUT_MS = 15_000
/** The pause before an RPC that got no answer is asked again. */
export const RPC_RETRY_MS = 200
/** Repeats of a one-time RPC; with its pauses about a minute, in which choird can restart. */
export const RPC_ATTEMPTS_MAX = 300
/** Patches of one heartbeat; the body around them stays below BODY_BYTES_MAX unless a single batch is larger. */
export const HEARTBEAT_PATCH_BYTES_MAX = 768 * KIB
/** How long events that nobody waits for at that moment gather before they are sent (D7). */
export const REPLICATION_GATHER_MS = 20
/** How long an event that somebody waits for gathers company before it is sent (D7). */
export const REPLICATION_DEBOUNCE_MS = 2
/** Unacknowledged events beyond which no new model call starts (R14). */
export const REPLICATION_EVENTS_MAX = 50_000
/** Unacknowledged canonical bytes beyond which no new model call starts (R14). */
export const REPLICATION_BYTES_MAX = 12 * MIB
/** A model's answer in bytes (threat model, LLM endpoint). */
export const MODEL_REPLY_BYTES_MAX = 8 * MIB
/** A model's answer that is read in one piece when it says its length. */
export const MODEL_WHOLE_REPLY_BYTES_MAX = MIB
/** Tool calls in one answer of a model. */
export const MODEL_TOOL_CALLS_MAX = 32
/** The arguments of one tool call, as the model sent them. */
export const MODEL_TOOL_ARGUMENT_BYTES_MAX = 64 * KIB
/** How deep the arguments of a tool call may nest, far below what an event may (EVENT_DEPTH_MAX). */
export const MODEL_TOOL_ARGUMENT_DEPTH_MAX = 100
/** Tokens that a provider may report for one call; a higher count is taken for this one, so that sums stay exact. */
export const MODEL_USAGE_TOKENS_MAX = 1_000_000_000
/** How long a model may send nothing once its answer began. */
export const MODEL_IDLE_MS_MAX = 60_000
/** How long a whole answer may take. */
export const MODEL_TOTAL_MS_MAX = 600_000
/**
 * Output tokens that a model is taken to write in a second where nobody knows how many it wrote: above what models that think reach, so
 * that a call that ended early is rather counted too high (D28).
 */
export const OUTPUT_TOKENS_PER_SECOND_MAX = 300
/** The longest Retry-After that is obeyed (R26). */
export const MODEL_RETRY_AFTER_MS_MAX = 60_000
/** Characters of a prompt that are taken for one token where no provider counted yet; low, so that prompts rather come out short. */
export const PROMPT_CHARS_PER_TOKEN = 3
/** What is left of a tool's result where a prompt has no room for it. */
export const PROMPT_RESULT_CHARS_MIN = 500

/** The path of a Unix socket: 108 bytes of the kernel's address, of which one ends it. */
export const SOCKET_PATH_BYTES_MAX = 107
/** The head of an HTTP request (R47). */
export const HTTP_HEADER_BYTES_MAX = 16 * KIB
/** How long the head of an HTTP request may take to arrive. */
export const HTTP_HEADERS_MS_MAX = 5000
/** How long a whole HTTP request may take to arrive. */
export const HTTP_REQUEST_MS_MAX = 10_000
/** Characters of a failed request's address that the log repeats. */
export const LOGGED_URL_CHARS_MAX = 200
/** How often a listener looks for requests that take too long. */
export const HTTP_CHECK_INTERVAL_MS = 1000
/** How long an HTTP connection may lie idle between two requests. */
export const HTTP_IDLE_MS_MAX = 30_000
/** Open connections to a session's socket (R47). */
export const AGENT_CONNECTIONS_MAX = 8
/** Connections that a client opens to a socket of choird; what one is still closing counts as well, so it is below AGENT_CONNECTIONS_MAX. */
export const CLIENT_CONNECTIONS_MAX = 6
/** Requests of an agent at once beside its push stream and its heartbeat, for each of which a connection stays free (R62). */
export const AGENT_CALLS_MAX = CLIENT_CONNECTIONS_MAX - 2
/** Of these, host tools that may take longer than RPC_TIMEOUT_MS, so that a quick one never waits for slow ones (R62). */
export const SLOW_HOST_CALLS_MAX = AGENT_CALLS_MAX - 1
/** Open connections to the operator's socket. */
export const OPERATOR_CONNECTIONS_MAX = 64
/** Requests that a session may send per second in the long run (R47). */
export const AGENT_REQUESTS_PER_SECOND = 100
/** Requests that a session may send at once after a pause (R47). */
export const AGENT_REQUESTS_BURST = 200
/** Bytes of bodies that a session may send per second in the long run: decoding, hashing and storing them takes choird's one thread. */
export const AGENT_BYTES_PER_SECOND = MIB
/** Bytes of bodies that a session may send at once after a pause; more than an agent holds back while choird is away. */
export const AGENT_BYTES_BURST = 16 * MIB
/** Request ids that are remembered per session (R28). */
export const REQUEST_IDS_MAX = 10_000
/** How long a request id is remembered (R28). */
export const REQUEST_ID_MS_MAX = 600_000
/** Remembered replies of one session; the oldest go first. */
export const REPLIES_BYTES_MAX = 4 * MIB
/** Between two comments that keep a quiet event stream open. */
export const SSE_KEEP_ALIVE_MS = 15_000
/** How long an agent's push stream may bring not even a comment before it is opened again. */
export const PUSH_IDLE_MS_MAX = 3 * SSE_KEEP_ALIVE_MS
/** The longest Retry-After of choird that an agent obeys. */
export const RPC_RETRY_AFTER_MS_MAX = 60_000
/** Open connections to the agents' TCP listener, of all sessions and strangers together. */
export const AGENT_TCP_CONNECTIONS_MAX = 512
/** Of these, connections that have proved no session yet; the next one takes the place of the oldest. */
export const STRANGER_CONNECTIONS_MAX = 64
/** Requests without a valid token that an address may send per second in the long run. */
export const STRANGER_REQUESTS_PER_SECOND = 10
/** Requests without a valid token that an address may send at once after a pause. */
export const STRANGER_REQUESTS_BURST = 50
/** Addresses whose requests without a valid token are counted apart; all further ones share one count. */
export const STRANGER_ADDRESSES_MAX = 1024
/** A file that holds a certificate with its chain, or a key. */
export const TLS_FILE_BYTES_MAX = 256 * KIB
/** Characters of what a refusal says of a body that does not decode. */
export const API_PROBLEM_CHARS_MAX = 2000
/** Characters of an agent's own words that an audit row or a reason repeats. */
export const AGENT_WORDS_CHARS_MAX = 200
/** UTF-16 units of a message to an agent, and its bytes as JSON, so that its UserMsg stays far below EVENT_BYTES_MAX. */
export const CHAT_TEXT_CHARS_MAX = 100_000
export const CHAT_TEXT_BYTES_MAX = 384 * KIB
/** Messages that a console client may be shown before it acknowledges one. */
export const CHAT_UNACKED_MAX = 1000
/** Messages whose end a console stream waits for; the oldest are forgotten. */
export const CHAT_WATCHED_MAX = 1000

/** config.json and secrets.json, each. */
export const CONFIG_BYTES_MAX = MIB
/** How deep the values of a stored event may nest; Postgres and the recursive parsers beside it bear far more. */
export const EVENT_DEPTH_MAX = 200
/** Memory in which the digests of events are put together, kept for good: enough for all but a few of them. */
export const LINK_ROOM_BYTES = 64 * KIB
/** Events of a page when a session's log is read. */
export const LOG_PAGE_EVENTS_MAX = 500
/** Canonical bytes of a page when a session's log is read; a single event may be larger than its share. */
export const LOG_PAGE_BYTES_MAX = 4 * MIB
/** Canonical bytes of a page of the tail that INIT_HELLO answers, so that the whole reply stays below BODY_BYTES_MAX. */
export const TAIL_PAGE_BYTES_MAX = 896 * KIB
/** Events and time of a live session after which choird writes its state down again (R5). */
export const SNAPSHOT_EVENTS = 500
export const SNAPSHOT_MS = 60_000
/** A state as it is stored; a larger one is not, and a recovery folds from the last that was. */
export const SNAPSHOT_BYTES_MAX = MIB
/** A state within INIT_HELLO's reply, so that the first page of the tail has room for the largest event beside it. */
export const SNAPSHOT_REPLY_BYTES_MAX = TAIL_PAGE_BYTES_MAX - EVENT_BYTES_MAX
/** States that wait to be written; of more the oldest are left out, since a newer one follows. */
export const SNAPSHOTS_QUEUED_MAX = 32
/** Sessions whose folded state choird keeps in memory; more agents than that never run at once on one host. */
export const SESSION_STATES_MAX = 128
/** Appends that a slow reader of the EventStore may be behind before it loses the oldest. */
export const APPENDS_BUFFERED_MAX = 256
/** How long an agent waits before it sends again what the database could not take. */
export const APPEND_RETRY_MS = 1000
/** Characters of the reason for which a session is frozen. */
export const FROZEN_REASON_CHARS_MAX = 500
/** Sessions that one listing returns. */
export const SESSIONS_LISTED_MAX = 1000
/** Messages of an agent that wait at once; the next one is refused politely (R45). */
export const INBOX_PENDING_MAX = 500
/** Outbox rows of one read. */
export const OUTBOX_PAGE_MAX = 100
/** For how long `status` tells of messages that were given up. Retention keeps their rows at least as long. */
export const OUTBOX_FAILED_TOLD_DAYS = 7
/** What people asked of one session and no event carries yet; the next is refused politely. */
export const SIGNALS_PENDING_MAX = 100
/** What is said to wait when so much was asked of a session. */
export const SIGNALS_FULL_RETRY_MS = 5000
/** How long a request may wait for the event that its signal ends in; a compaction asks a model (spec 11.3). */
export const SIGNAL_WAIT_MS_MAX = 120_000
/** Signals of one read. */
export const SIGNALS_PAGE_MAX = 100
/** Canonical bytes of what a person is asked to approve; a call's arguments are MODEL_TOOL_ARGUMENT_BYTES_MAX at most. */
export const APPROVAL_PAYLOAD_BYTES_MAX = 128 * KIB
/** Approvals of one session that wait for a person; the next request is refused. */
export const APPROVALS_PENDING_MAX = 8
/** Proposals of one agent that choird looks at in a row, which starts programs of git; beyond it, one each PROPOSAL_LOOK_MS. */
export const PROPOSAL_LOOKS_BURST = 10
export const PROPOSAL_LOOK_MS = 10_000
/** Rows that `approval list` shows. */
export const APPROVALS_LISTED_MAX = 500
/** The one line that a list shows of an approval. */
export const APPROVAL_SUMMARY_CHARS_MAX = 200
/** What the message to a person shows of a payload; `choirctl approval show` prints all of it. */
export const APPROVAL_SHOWN_CHARS_MAX = 7500
/** What a person may give as the reason of a rejection. */
export const APPROVAL_REASON_CHARS_MAX = 500
/** Approvals that are ended at once when their time is up. */
export const APPROVALS_EXPIRED_MAX = 100
/** The longest sleep before choird looks again for approvals whose time is up, so that a clock that jumps is noticed. */
export const APPROVAL_LOOK_MS_MAX = 60_000
/** The pause after a look that the database did not answer. */
export const APPROVAL_RETRY_MS = 1000
/** How often a call that waits for a person asks choird without being told of a decision. */
export const APPROVAL_POLL_MS = 10_000
/** How long such a call waits beyond the time that a person has, for choird to come back and say so. */
export const APPROVAL_GRACE_MS = 60_000
/** All that a person is shown of a proposal; a longer one is refused, since nobody would read it. */
export const PROPOSAL_SHOWN_CHARS_MAX = 64_000
/**
 * What choird reads to find the difference that is shown: all changed files, before and after. The multiple leaves room for a small edit
 * in a large file, and keeps the work on choird's one thread below half a second.
 */
export const PROPOSAL_READ_BYTES_MAX = 8 * PROPOSAL_SHOWN_CHARS_MAX
/** Paths that a proposal's text names of what the repository has and the agent's image has not. */
export const UNBUILT_PATHS_SHOWN_MAX = 10
/** One file that a proposal of a tool brings along. */
export const PROPOSED_FILE_BYTES_MAX = 48 * KIB
/** Commits of a proposed branch that are not in the configured ref yet. */
export const PROPOSAL_COMMITS_MAX = 50
/** Agents whose approved proposals are carried out at once; of one agent it is one after the other. */
export const PROPOSALS_EXECUTED_MAX = 4
/** The longest sleep before choird looks again for approved proposals. */
export const PROPOSAL_LOOK_MS_MAX = 30_000
/** Tries of a step that another load of the configuration, or a silent remote, keeps from its turn, and the pause between two. */
export const PROPOSAL_TRIES_MAX = 5
export const PROPOSAL_RETRY_MS = 1000
/** How long an agent that is coming up anyway is waited for before it is started anew with its new image. */
export const PROPOSAL_AGENT_MS_MAX = 90_000
/** Between two looks at it. */
export const PROPOSAL_AGENT_LOOK_MS = 100
/** What is kept of why a proposal failed. */
export const PROPOSAL_OUTCOME_CHARS_MAX = 2000
/** One request with a proposal: two repositories are looked at before the answer. */
export const PROPOSAL_ASK_MS_MAX = 60_000
/** How long a proposal may take to reach choird, which looks into the agent's repository before it answers. */
export const PROPOSAL_TIMEOUT_MS = 120_000
/** Decisions that came before the call knew that it waits for them. */
export const APPROVALS_REMEMBERED_MAX = 256
/** UTF-16 units of a Telegram message (R43). */
export const TELEGRAM_TEXT_CHARS_MAX = 4096
/** How long a lost reply to INIT_HELLO may be asked for again with the bootstrap token (D12). */
export const HELLO_GRACE_MS_MAX = 60_000
/** Tokens of older epochs that a session's agent is told about as fenced; older ones are unknown. */
export const SUPERSEDED_TOKENS_MAX = 16
/** Canonical bytes of an audit row's detail; a larger one is left out. */
export const AUDIT_DETAIL_BYTES_MAX = 8 * KIB
/** How long refusals that are equal but for their detail are counted before they get a row together (R77). */
export const AUDIT_WINDOW_MS = 60_000
/** Kinds of refusals that are told apart at once; those beyond are counted together. */
export const AUDIT_SUMS_MAX = 1000
/** Audit rows that are kept; the oldest go first. */
export const AUDIT_ROWS_MAX = 200_000
/** Audit rows that one listing returns. */
export const AUDIT_LISTED_MAX = 10_000
/** Characters of a refusal's message that its audit row keeps. */
export const AUDIT_REASON_CHARS_MAX = 300
/** How long an audit row may take before what is audited goes on without it. */
export const AUDIT_MS_MAX = 2000
/** Audit rows that wait for a database that is away, and how often it is asked for them. */
export const AUDIT_KEPT_MAX = 1000
export const AUDIT_RETRY_MS = 5000
/** Characters of a core job's task or of an instruction to it. */
export const CORE_TASK_CHARS_MAX = 100_000
/** A tool that only asks the control plane or the fold. */
export const CONTROL_TIMEOUT_MS = 20_000
/** Tools of one agent that run at once (D1); further ones wait under their locks. */
export const TOOLS_IN_FLIGHT_MAX = 8
/** Of these, the ones that jobs leave to edge, so that it talks while they work. */
export const TOOLS_RESERVED_FOR_EDGE = 2
/** Host tools that one agent waits for at once, a connection or an answer; its tools in flight (D1) are fewer. */
export const HOST_CALLS_MAX = 2 * TOOLS_IN_FLIGHT_MAX
/** What a host tool gets beyond its own time, so that its own words on a late answer reach the model. */
export const HOST_CALL_GRACE_MS = 1000
/** Host tools that choird runs at once for one session, those included whose agent hung up and gave no result yet. */
export const HOST_TOOLS_RUNNING_MAX = 16
/** What an agent is told to wait when that many run. */
export const HOST_TOOL_RETRY_MS = 1000
/** A host tool's output as JSON, so that its answer stays below BODY_BYTES_MAX. */
export const HOST_OUTPUT_BYTES_MAX = 768 * KIB
/** Hits of one search of a session's log, and how many a model gets that does not say (spec 11.7). */
export const LOG_SEARCH_HITS_MAX = 50
export const LOG_SEARCH_HITS = 10
/** Characters of a search of a session's log, and words in it. */
export const LOG_SEARCH_QUERY_CHARS_MAX = 500
export const LOG_SEARCH_WORDS_MAX = 16
/** Characters of an event that are shown around the word that was found. */
export const LOG_SEARCH_EXCERPT_CHARS_MAX = 400
/** Characters of an event that are shown when it is asked for by its hash. */
export const LOG_SEARCH_EVENT_CHARS_MAX = 4000
/** Canonical bytes of events that an agent looks through before it lets its other lanes go on; a few milliseconds of work. */
export const LOG_SEARCH_SLICE_BYTES = 256 * KIB
/** Revisions and canonical bytes that choird looks through for one request by words; what is older takes another request. */
export const LOG_SEARCH_REVS_MAX = 5000
export const LOG_SEARCH_BYTES_MAX = 16 * MIB
/** Revisions that choird looks through for one request by hash, for which the events are not read. */
export const LOG_SEARCH_HASHES_MAX = 100_000
/** One search of a session's log in choird; its pages take milliseconds each. */
export const LOG_SEARCH_TIMEOUT_MS = 10_000
/** Requests that one call of choir.memory.query makes to choird, and the time after which it makes no further one. */
export const LOG_SEARCH_REQUESTS_MAX = 20
export const LOG_SEARCH_MS_MAX = 3000
/** Tools of edge, and tools of jobs, that wait behind those; the next one is refused. */
export const TOOLS_QUEUED_MAX = 64
/** Manifests of one tools folder of an image. */
export const IMAGE_TOOLS_MAX = 128
/** A secret, or a form of one, that is shorter cannot be told from other text and is not scrubbed. */
export const SECRET_FORM_CHARS_MIN = 4
/** Shorter secrets are scrubbed from what their own users print, and not from every text: they may be common words. */
export const SECRET_ANYWHERE_CHARS_MIN = 8
/** A line of a secret of several lines is scrubbed by itself from this length on. */
export const SECRET_LINE_CHARS_MIN = 16
/** Values that an agent held and still takes out of texts after they were replaced. */
export const SECRETS_REMEMBERED_MAX = 32
/** Long results that are kept in files of the workspace; the oldest go first (R48). */
export const RESULT_FILES_MAX = 64
/** What these files may hold together, in bytes. */
export const RESULT_FILES_BYTES_MAX = 64 * MIB
/** A core job's summary, shown to edge and the user. */
export const CORE_SUMMARY_CHARS_MAX = 4000
/** Messages that an agent holds until edge is idle; more than choird lets wait for one agent. */
export const MAILBOX_MAX = 1000
/** Of the time that a graceful stop has, what is kept back for the last flush. */
export const STOP_RESERVE_MS = 5000
/** The last flush and the goodbye of an agent that ends by itself. */
export const FAREWELL_MS_MAX = 30_000
/** What a sender is told to wait when an agent's inbox is full (R45). */
export const QUEUE_FULL_RETRY_MS = 10_000
/** A build of an image in the Docker engine, packages fetched and programs compiled. */
export const IMAGE_BUILD_MS_MAX = 30 * 60_000
/** Processes and threads of one step of a build; a compiler's or a package manager's need far fewer. */
export const BUILD_PROCESSES_MAX = 2048
/** One line of what the engine tells of a build, as JSON. */
export const BUILD_LINE_BYTES_MAX = 256 * KIB
/** All that the engine tells of a build. */
export const BUILD_OUTPUT_BYTES_MAX = 64 * MIB
/** A line of a build as it is shown. */
export const BUILD_LINE_CHARS_MAX = 400
/** Lines of a build that are shown; after them its steps alone. */
export const BUILD_LINES_SHOWN_MAX = 5000
/** Lines that a failed build repeats of what its last step printed. */
export const BUILD_TAIL_LINES = 15
/** Steps of a build that wait for a slow reader. */
export const BUILD_STEPS_MAX = 16
/** From starting an agent's container until it says hello. */
export const AGENT_START_MS_MAX = 30_000
/** A graceful stop, from the signal to the goodbye, beside `memory.summary_timeout_ms` for the session's summary (D18). */
export const AGENT_STOP_MS_MAX = 30_000
/** How long a container that outlived choird may take to send what choird lacks (D15). */
export const ADOPTED_FLUSH_MS_MAX = 10_000
/** Between two looks at what it sent. */
export const ADOPTED_LOOK_MS = 100
/** Looks without news after which it has sent all. */
export const ADOPTED_QUIET_LOOKS = 3
/** From an agent's accepted goodbye to its exit; afterwards it is killed. */
export const AGENT_EXIT_MS_MAX = 5000
/** How long the last lines of an ended agent may take to reach its log. */
export const AGENT_OUTPUT_MS_MAX = 500
/** How long the host or the engine may take to tell the condition of a silent agent's container. */
export const AGENT_INSPECT_MS_MAX = 1000
/** Between two looks at an agent's heartbeats. */
export const LIVENESS_LOOK_MS = 500
/** A look that comes this much too late means that choird itself stood still, so that every clock starts anew (D8). */
export const CHOIRD_PAUSE_MS = 2000
/** Between two looks at whether a session was frozen while its agent goes on. */
export const FROZEN_LOOK_MS = 5000
/** Crashes within BREAKER_WINDOW_MS that stop an agent (R9). */
export const BREAKER_CRASHES_MAX = 3
export const BREAKER_WINDOW_MS = 300_000
/** Crashes within an hour that stop an agent, so that it never starts more than twelve times (R9). */
export const BREAKER_HOURLY_CRASHES_MAX = 12
export const BREAKER_HOUR_MS = 3_600_000
/** Between two looks for a message that starts the session after one at its budget. */
export const SUCCESSOR_LOOK_MS = 500
/** Containers of an earlier choird that are ended at once. */
export const REAPS_IN_FLIGHT_MAX = 4
/** Changes of agents that a slow listener may be behind before it loses the oldest. */
export const AGENT_CHANGES_BUFFERED_MAX = 256
/** A line of a log file (R77). */
export const LOG_LINE_BYTES_MAX = 16 * KIB
/** A log file that reaches this is archived, whatever its lines: choird's, and an agent's (R50). */
export const LOG_FILE_BYTES_MAX = 64 * MIB
export const AGENT_LOG_BYTES_MAX = 4 * MIB
/** All logs of a home, the archived ones included, until config.json is read (`retention.logs_mb`), and the number of archives (R50). */
export const LOGS_BYTES_MAX = 1024 * MIB
export const LOG_ARCHIVES_MAX = 10_000
/** Names of models, and of tools, that metrics tell apart; the rest is one. */
export const TELEMETRY_NAMES_MAX = 200
/** Open tool calls of a session whose times telemetry remembers; of more the oldest are forgotten. */
export const TELEMETRY_CALLS_MAX = 1024
/** Requests to a telemetry collector that run at once; what comes beyond is dropped. */
export const OTLP_REQUESTS_MAX = 6
/** One request to a telemetry collector, answer included. */
export const OTLP_MS_MAX = 5000
/** Records of one request to a telemetry collector. */
export const OTLP_BATCH_MAX = 1000
/** Pieces of a collector's answer that are read before it is thrown away. */
export const OTLP_ANSWER_CHUNKS_MAX = 16
/** What choird's stop waits for the last records of each kind to be sent. */
export const OTLP_STOP_MS_MAX = 1000
/** Connections to the page for Prometheus. */
export const PROMETHEUS_CONNECTIONS_MAX = 8
/** Characters of one text within a log line; the rest is cut. */
export const LOG_TEXT_CHARS_MAX = 4000
/** The pause after each batch of an agent's output, which bounds what a flood of it costs choird. */
export const AGENT_OUTPUT_PAUSE_MS = 100
/** Versions that `config history` shows. */
export const CONFIG_VERSIONS_SHOWN_MAX = 100
/** Repositories that `config load` fetches at once; each holds its files in memory meanwhile. */
export const REPO_LOADS_IN_FLIGHT_MAX = 4
/** Problems that a refused `config load` tells; of more the first ones. */
export const CONFIG_PROBLEMS_MAX = 200
/** Steps of a load that an operator who reads slowly may be behind. */
export const LOAD_STEPS_MAX = 16
/** How long a change of config.json or secrets.json waits for an earlier one. */
export const HOME_FILES_MS_MAX = 10_000
/** From the wish that choird stops until it has; afterwards it ends as it is. */
export const CHOIRD_STOP_MS_MAX = 20_000
/** How long Telegram may hold a poll open, in seconds. */
export const TELEGRAM_POLL_SECONDS = 30
/** A poll without an answer for this long is given up and started anew (R44). */
export const TELEGRAM_STALL_MS_MAX = 90_000
/** The first and the longest pause after a failed call (R44). */
export const TELEGRAM_RETRY_MS = 1000
export const TELEGRAM_RETRY_MS_MAX = 60_000
/** The longest retry_after of Telegram that is obeyed in one piece. */
export const TELEGRAM_RETRY_AFTER_MS_MAX = 600_000
/** A message or a menu sent to Telegram, answer included. */
export const TELEGRAM_CALL_MS_MAX = 30_000
/** Between two messages to one chat, and between any two of one bot (R43). */
export const TELEGRAM_CHAT_INTERVAL_MS = 1000
export const TELEGRAM_BOT_INTERVAL_MS = 40
/** An answer of the Bot API: a hundred updates of the longest messages are far below it. */
export const TELEGRAM_REPLY_BYTES_MAX = 8 * MIB
/** What is kept of a child program's output for a message about its failure, in characters. */
export const PROGRAM_OUTPUT_CHARS_MAX = 20_000
/** The pause between two looks at whether a child program is ready. */
export const PROGRAM_READY_MS = 50
/** Looks at whether a child program is ready; with their pauses about a minute. */
export const PROGRAM_READY_ATTEMPTS_MAX = 1200
/** How long a child program may take to stop before it is killed. */
export const PROGRAM_STOP_MS_MAX = 15_000
/** An answer of choird that choirctl reads whole. */
export const OPERATOR_ANSWER_BYTES_MAX = 64 * MIB
/** What choirctl waits before it shows that something is still going on. */
export const PROGRESS_DELAY_MS = 500
/** Between two pictures of that sign. */
export const PROGRESS_FRAME_MS = 100
/** The value of a secret as it is typed or piped in. */
export const SECRET_BYTES_MAX = 64 * KIB
/** Standard input of `choirctl chat`, in one line. */
export const CHAT_LINE_BYTES_MAX = 512 * KIB
/** Lines that are typed ahead in `choirctl chat`. */
export const CHAT_LINES_MAX = 64
/** Messages that `choirctl chat` remembers to have shown, so that none is shown twice. */
export const CHAT_SHOWN_MAX = 10_000
/** The pause before `choirctl chat` connects again. */
export const CHAT_RECONNECT_MS = 250
/** How long `choirctl chat` tries to reach a choird that was there before. */
export const CHAT_RECONNECT_MS_MAX = 120_000
/** How long `choirctl chat` waits for the first sign of the agent before it sends. */
export const CHAT_GREETING_MS_MAX = 5000
/** How long an agent may be gone before `choirctl chat --message` stops waiting for its answer. */
export const CHAT_GONE_MS_MAX = 15_000
/** How long `choirctl chat --message` waits for a message to be done with, unless told otherwise. */
export const CHAT_SETTLED_MS_MAX = 3_600_000
/** How often `choirctl logs` looks for new lines. */
export const LOG_POLL_MS = 200
/** What `choirctl logs` reads at once. */
export const LOG_CHUNK_BYTES = 256 * KIB
/** Tries to open a log between two of its rotations. */
export const LOG_OPEN_TRIES_MAX = 5
/** An archived log that `choirctl logs` reads whole, when it missed a rotation: several times what one may hold. */
export const LOG_ARCHIVE_READ_BYTES_MAX = 256 * MIB
/** One trial of `choirctl doctor`. */
export const DOCTOR_TRIAL_MS_MAX = 10_000
/** How long `status` waits for the database before it says that it does not answer. */
export const STATUS_DATABASE_MS_MAX = 2000
/** A lane's reference summary as text; of a longer one the newest part stays (spec 11.3). */
export const SUMMARY_CHARS_MAX = 8000
/** Facts of a lane's reference summary; of more the newest stay. */
export const SUMMARY_FACTS_MAX = 64
/** The key of a fact, and its value. */
export const SUMMARY_FACT_CHARS_MAX = 500
/** References of a lane's reference summary, of each kind; of more the newest stay. */
export const SUMMARY_REFERENCES_MAX = 64
/** How long a job waits for the answer to what it asked the user; then it goes on without (E12). */
export const QUESTION_WAIT_MS_MAX = 600_000
/** The old generation of an agent's heap, in MiB: several times what the largest session keeps alive (R66). */
export const AGENT_HEAP_MIB_MAX = 512
/** Half of the young generation of an agent's heap, in MiB. */
export const AGENT_SEMI_SPACE_MIB_MAX = 8
/** Freed memory at the end of an agent's C heap that is not given back to the system at once, in bytes. */
export const AGENT_FREED_BYTES_MAX = 128 * 1024
/** Canonical bytes of a session's log that the agent keeps in memory; a log above it loses what choird acknowledged (D9). */
export const RESIDENT_LOG_BYTES_MAX = 12 * MIB
/** Canonical bytes of a lane's window that stay in memory however old they are; no prompt holds more. */
export const RESIDENT_WINDOW_BYTES_MAX = 4 * MIB
/** Characters of a job's newest report that edge's prompts repeat. */
export const PROJECTED_REPORT_CHARS_MAX = 500
/** Of one event, what the model of a compaction is shown. */
export const COMPACTION_EVENT_CHARS_MAX = 8000
/** Orders to compact one lane that wait for the compaction under way; more than that are one (the oldest are sent again by choird). */
export const COMPACTION_ORDERS_MAX = 100
/** Characters of an event's hash that models are shown and may refer to it by. */
export const MEMORY_HASH_CHARS = 12
/** Bytes of a text without any place to split it that are merged into tokens as one; the work grows with their square. */
export const TOKEN_PIECE_BYTES_MAX = 256
/** UTF-16 units that are counted into tokens before other lanes may go on; a few milliseconds of work. */
export const TOKEN_SLICE_CHARS = 4096
/** Tokens of the vocabulary that are read before other lanes may go on. */
export const TOKEN_VOCABULARY_SLICE = 20_000
/** Texts whose count is remembered, and the UTF-16 units from which that is worth it; the longest unused go first. */
export const TOKEN_COUNTS_MAX = 4096
export const TOKEN_COUNTED_CHARS_MIN = 200
/** How far a provider's count of a prompt may be from ours before it is taken for nonsense, as a factor of it. */
export const TOKEN_FACTOR_MIN = 0.5
export const TOKEN_FACTOR_MAX = 4
/** Models whose factor is remembered; the longest unused go first. */
export const TOKEN_FACTORS_MAX = 64
/** What the offline model quotes of one event when it keeps a memory, and of all of them. */
export const OFFLINE_MODEL_MEMORY_LINE_CHARS_MAX = 200
export const OFFLINE_MODEL_MEMORY_CHARS_MAX = 1500
/** One line of what choird reports of a task to choirctl. */
export const CHOIRD_REPORT_BYTES_MAX = MIB
/** How long a choird that does a task may take to end when choirctl is interrupted. */
export const CHOIRD_TASK_STOP_MS_MAX = 10_000
/** One line of a backup: a row, or a record of the file. */
export const BACKUP_LINE_BYTES_MAX = 12 * MIB
/** What a backup is read and compressed by at a time. */
export const BACKUP_READ_BYTES = 256 * KIB
export const BACKUP_PIECE_BYTES = MIB
/** Compressed pieces of a backup that wait for their reader. */
export const BACKUP_PIECES_MAX = 4
/** Bytes and rows of one page that a backup reads and a restore writes; a single row may be larger. */
export const BACKUP_PAGE_BYTES = 4 * MIB
export const BACKUP_PAGE_ROWS_MAX = 2000
/** One statement of a restore: the largest is the look at all tables at its end. */
export const RESTORE_STATEMENT_MS_MAX = 600_000
/** How long `choirctl daemon start` waits: longer than choird tries to reach Postgres. */
export const DAEMON_START_MS_MAX = 90_000
/** Between two looks of `choirctl daemon` at whether choird is there or gone. */
export const DAEMON_LOOK_MS = 50
/** What `choirctl daemon stop` waits beyond choird's own limit. */
export const DAEMON_STOP_GRACE_MS = 5000
/** Characters of choird's last words that `choirctl daemon start` repeats. */
export const DAEMON_WORDS_CHARS_MAX = 4000
