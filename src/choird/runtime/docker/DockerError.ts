/** What the Docker engine refused or did not answer. */
import { Schema } from "effect"

/** Words of the engine that an error repeats. */
const DETAIL_CHARS_MAX = 1000

const Reason = Schema.Literals(["unreachable", "denied", "late", "unchanged", "missing", "conflict", "failed"])
type Reason = typeof Reason.Type

export class DockerError extends Schema.TaggedError<DockerError>()("DockerError", {
  /** What was asked, as a sentence's beginning: `the container choir-a could not be created`. */
  what: Schema.String,
  /**
   * `unreachable`, `denied`, `late`: the engine did not answer. `unchanged` (304), `missing` (404), `conflict` (409): what was asked
   * is so already, is not there, or collides. `failed`: anything else.
   */
  reason: Reason,
  status: Schema.optionalKey(Schema.Int),
  detail: Schema.String,
  fix: Schema.String
}) {
  override get message() {
    return `${this.what}: ${this.detail}. ${this.fix}`
  }
}

/** Whether nothing is known of what the engine did. */
export const engineIsAway = ({ reason }: DockerError): boolean => AWAY.has(reason)

const AWAY: ReadonlySet<Reason> = new Set(["unreachable", "denied", "late"])

const BY_STATUS: Readonly<Record<number, Reason>> = { 304: "unchanged", 404: "missing", 409: "conflict" }

/** Codes of a connection that did not come to be or broke. */
const BROKEN = new Set(["ECONNREFUSED", "ECONNRESET", "ENOENT", "EPIPE", "ENOTSOCK", "UND_ERR_SOCKET"])

const FIXES: Readonly<Record<Reason, string>> = {
  unreachable: "Start the engine: systemctl start docker",
  denied: "Let choird's user reach the socket: usermod -aG docker USER, then start choird again",
  late: "Look at the engine's log: journalctl -u docker",
  unchanged: "Nothing needs to be done",
  missing: "Look at docker ps --all and docker images",
  conflict: "Try again in a moment",
  failed: "Look at the engine's log: journalctl -u docker"
}

/** One line that is safe to print: the engine repeats names and output of others. */
const plain = (text: string) =>
  text
    .replaceAll(/[\p{C}\p{Zl}\p{Zp}]+/gu, " ")
    .trim()
    .slice(0, DETAIL_CHARS_MAX)

const failed = (what: string, reason: Reason, detail: string, status?: number) =>
  new DockerError({
    what,
    reason,
    detail: plain(detail),
    fix: FIXES[reason],
    ...(status === undefined ? {} : { status })
  })

export const engineLate = (what: string, ms: number) =>
  failed(what, "late", `the engine did not answer within ${ms} ms`)

export const noSocket = (what: string, paths: ReadonlyArray<string>) =>
  failed(what, "unreachable", `there is no Docker engine at ${paths.join(" or ")}`)

/** What a rejection of the client means. */
export const dockerError = (what: string, cause: unknown): DockerError => {
  const { code, json, message, statusCode } = Object(cause) as Readonly<Record<string, unknown>>
  if (typeof statusCode === "number") {
    const said = Object(json) as Readonly<Record<string, unknown>>
    const detail = String(said["message"] ?? message ?? cause)
    return failed(what, BY_STATUS[statusCode] ?? "failed", detail, statusCode)
  }
  const detail = String(message ?? cause)
  if (code === "EACCES" || code === "EPERM") return failed(what, "denied", detail)
  const broken = BROKEN.has(String(code)) || /socket hang up|aborted/u.test(detail)
  return failed(what, broken ? "unreachable" : "failed", detail)
}
