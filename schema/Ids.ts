/** The names and numbers that more than one program uses; docs/protocol.md, Ids, says how they are made. */
import { Schema } from "effect"

const NAME = /^[a-z][a-z0-9-]{0,39}$/u

/** An agent of config.json. `control` is refused, since its database schema would be the control plane's own (D36). */
export const AgentId = Schema.String.check(
  Schema.isPattern(NAME, { message: "an agent id is a-z, then up to 39 of a-z, 0-9 and -" }),
  Schema.makeFilter((id) => id !== "control" || { path: [], issue: "the id control is reserved" })
).pipe(Schema.brand("AgentId"))
export type AgentId = typeof AgentId.Type

/** A workspace, model, gateway, DM or other named resource of config.json. */
export const ResourceName = Schema.String.check(
  Schema.isPattern(NAME, { message: "a resource name is a-z, then up to 39 of a-z, 0-9 and -" })
).pipe(Schema.brand("ResourceName"))
export type ResourceName = typeof ResourceName.Type

/** The name of a value in secrets.json. */
export const SecretName = Schema.String.check(
  Schema.isPattern(/^[a-z0-9][a-z0-9._-]{0,63}$/u, {
    message: "a secret name is 1 to 64 characters of a-z, 0-9, '.', '_' and '-'"
  })
).pipe(Schema.brand("SecretName"))
export type SecretName = typeof SecretName.Type

/** 16 lowercase Crockford base32 characters, made by choird. */
export const SessionId = Schema.String.check(
  Schema.isPattern(/^[0-9a-hjkmnp-tv-z]{16}$/u, {
    message: "a session's id is 16 letters and digits, as choirctl session list shows it"
  })
).pipe(Schema.brand("SessionId"))
export type SessionId = typeof SessionId.Type

/** The name of a core job; free again once the job has stopped. */
export const JobName = Schema.String.check(
  Schema.isPattern(/^[a-z0-9][a-z0-9-]{0,39}$/u, {
    message: "a job name is 1 to 40 characters of a-z, 0-9 and -, and does not start with -"
  })
).pipe(Schema.brand("JobName"))
export type JobName = typeof JobName.Type

/** `edge`, or `core:<job-name>`. It owns locks and signs events. */
export const LaneId = Schema.String.check(
  Schema.isPattern(/^(edge|core:[a-z0-9][a-z0-9-]{0,39})$/u, {
    message: "a lane is edge, or core: with the name of a job"
  })
).pipe(Schema.brand("LaneId"))
export type LaneId = typeof LaneId.Type

export const EDGE = LaneId.make("edge")

export const coreLane = (job: JobName): LaneId => LaneId.make(`core:${job}`)

/** The job a core lane runs, or `undefined` for the edge lane. A lane's pattern has the job's in it: it is not checked again. */
export const jobOf = (lane: LaneId): JobName | undefined =>
  lane === EDGE ? undefined : (lane.slice("core:".length) as JobName)

/** `<session>-<epoch>-<rev>` for a model call, with `-<index>` for its tool calls. Also the idempotency key of an effect, and a
 * spawn's is the identity of the job it started. */
export const CallId = Schema.String.check(Schema.isPattern(/^[a-z0-9-]{1,40}$/u)).pipe(Schema.brand("CallId"))
export type CallId = typeof CallId.Type

/** At most 18 digits, so that each value is a bigint of the database. */
const BigintText = Schema.String.check(Schema.isPattern(/^[1-9][0-9]{0,17}$/u))

/** The row of a message in the inbox, a bigint as decimal text. */
export const InboxId = BigintText.pipe(Schema.brand("InboxId"))
export type InboxId = typeof InboxId.Type

/** The row of a signal in the push stream, a bigint as decimal text. */
export const SignalId = BigintText.pipe(Schema.brand("SignalId"))
export type SignalId = typeof SignalId.Type

/** A row that waits for a person's decision, a bigint as decimal text. */
export const ApprovalId = Schema.String.check(
  Schema.isPattern(/^[1-9][0-9]{0,17}$/u, {
    message: "an approval is named by its number, as choirctl approval list shows it"
  })
).pipe(Schema.brand("ApprovalId"))
export type ApprovalId = typeof ApprovalId.Type
/** The number of a standing grant, as text. */
export const GrantId = Schema.String.check(
  Schema.isPattern(/^[1-9]\d{0,17}$/u, { message: "a grant's id is a number, as choirctl grant list shows it" })
).pipe(Schema.brand("GrantId"))
export type GrantId = typeof GrantId.Type

/** The place of an event in its session, from 1. 0 is before the first. */
export const Rev = Schema.Natural
export type Rev = number

/** The largest revision that a column of the database holds. */
export const REV_MAX = 2 ** 31 - 1
/** A revision that a peer names to have it stored or looked for. */
export const NamedRev = Rev.check(Schema.isBetween({ minimum: 0, maximum: REV_MAX }))

/** A count of an agent's starts within a session; only the newest one may write (E13). */
export const Epoch = Schema.Natural

/** A SHA-256 digest in lowercase hex. */
export const Sha256 = Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/u))

const MONTH_AND_DAY = String.raw`(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|[12]\d)`
const TIME = String.raw`(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z`
const DAY_CHARS = "0001-01-01".length

/** Whether the calendar has the day. A date that it has not would be read as a later one. */
const isDay = (day: string): boolean => {
  const ms = Date.parse(day)
  return !day.startsWith("0000") && !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(day)
}

/**
 * An instant as the agent's ISO text in milliseconds, kept verbatim because the chain covers it. Any text that passes is a timestamp of
 * the database: the days are those of the calendar, and there is no year 0.
 */
export const IsoInstant = Schema.String.check(
  Schema.isPattern(new RegExp(`^\\d{4}-(?:${MONTH_AND_DAY})T${TIME}$`, "u")),
  Schema.makeFilter((text) => isDay(text.slice(0, DAY_CHARS)) || "there is no such day")
)

/** The idempotency key of a client: any text of 1 to 80 of these characters, usually a UUID. */
export const ClientId = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9._:-]{1,80}$/u))
