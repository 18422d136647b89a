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
