/**
 * The limits that parts without a common owner share. Each other limit on a queue, loop, wait, buffer or size is beside its use, with its
 * unit in its name; an operator changes those of config.json (docs/configuration.md).
 */

const KIB = 1024

/** Skills of one image, the built-in ones left out. */
export const IMAGE_SKILLS_MAX = 64

/** Between two comments that keep a quiet event stream open. */
export const SSE_KEEP_ALIVE_MS = 15_000
/** Characters of what a refusal says of a body that does not decode. */
export const API_PROBLEM_CHARS_MAX = 2000

/** How long a request may wait for the event that its signal ends in; a compaction asks a model. */
export const SIGNAL_WAIT_MS_MAX = 120_000
/** Audit rows that one listing returns. */
export const AUDIT_LISTED_MAX = 10_000
/** Manifests of one tools folder of an image. */
export const IMAGE_TOOLS_MAX = 128
/** From the request that choird stops until it has; after that it is ended. */
export const CHOIRD_STOP_MS_MAX = 20_000
/** The part of a child program's output that is kept for a message about its failure, in characters. */
export const PROGRAM_OUTPUT_CHARS_MAX = 20_000
/** The amount that `choirctl logs` reads at once. */
export const LOG_CHUNK_BYTES = 256 * KIB
