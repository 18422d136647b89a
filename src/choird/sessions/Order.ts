/** A person's order to a running session: the signal that it becomes, whether a stored one is the same, and its row in the audit. */
import { Effect, Schema } from "effect"
import { type InboxId, jobOf, JobName, type LaneId, Rev } from "#schema/Ids.ts"
import type { SkillName } from "#schema/Skill.ts"
import type { SignalBody } from "#src/choird/queues/Signals.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { turnToStop } from "#src/shared/session/turns.ts"
import { canonicalJson, storableJson } from "#src/shared/text/canonicalJson.ts"
import { CHAT_TEXT_LIMIT, isTooLong } from "#src/choird/queues/chatTextLimit.ts"

/** A refused order with its reason and a way out. `kind` is also the API's error type. */
export class SteeringRefused extends Schema.TaggedError<SteeringRefused>()("SteeringRefused", {
  kind: Schema.Literals([
    "EMPTY",
    "TOO_LARGE",
    "NO_SUCH_JOB",
    "NO_QUESTION",
    "JOB_AMBIGUOUS",
    "NOTHING_RUNS",
    "JOBS_RUN",
    "ALREADY_NEW",
    "OTHER_TEXT",
    "NOT_RUNNING",
    "NEWER_EVENTS",
    "SIGNALS_FULL",
    "REQUEST_ID_REUSED"
  ]),
  reason: Schema.String,
  hint: Schema.String
}) {
  override get message() {
    return this.reason
  }
}

/** A person's order. A job that is not named is the only one that runs. `Cancel` ends that job, or the turn when no job runs. */
export type Order =
  | { readonly type: "Inject"; readonly content: string }
  /** The answer to a job's question. The job is named, by the first word of the content where it asks one, or the only one that asks. */
  | { readonly type: "Answer"; readonly content: string; readonly job_name?: JobName }
  | { readonly type: "CancelCore"; readonly job_name?: JobName }
  /** Runs a skill in a job of its own. `trigger` is what began it, where no person did. */
  | {
      readonly type: "StartSkill"
      readonly skill: SkillName
      readonly input?: Schema.Json
      readonly trigger?: string
    }
  /** Ends the job that runs a skill, or edge's turn where edge does. */
  | { readonly type: "CancelSkill"; readonly skill: SkillName }
  | { readonly type: "StopTurn" }
  | { readonly type: "Cancel" }
  | { readonly type: "Compact"; readonly lane?: LaneId }
  /** Takes the text from outside in edge's window for trusted, up to the event that brought the newest of what the person was shown. */
  | { readonly type: "Trust"; readonly rev: number }
  /** A new conversation. Jobs that run are ended only if the person says so. */
  | { readonly type: "NewSession"; readonly end_jobs?: boolean }

export const refused = (kind: SteeringRefused["kind"], reason: string, hint: string) =>
  Effect.fail(new SteeringRefused({ kind, reason, hint }))

/** The one job that is meant: the named one, or the only one. */
const chosenJob = ({ cores }: SessionState, named: JobName | undefined) => {
  const running = [...cores.keys()]
  const names = running.join(", ") || "none"
  if (named !== undefined)
    return running.includes(named)
      ? Effect.succeed(named)
      : refused("NO_SUCH_JOB", `there is no job ${named}`, `running jobs: ${names}`)
  const [only, ...others] = running
  if (only === undefined)
    return refused("NO_SUCH_JOB", "no job is running in this session", "choirctl session jobs lists those that ended")
  return others.length === 0
    ? Effect.succeed(only)
    : refused("JOB_AMBIGUOUS", "several jobs are running", `name one of: ${names}`)
}

/** An answer with the job that it is for: jobs that ask at once are told apart by name. */
const chosenAnswer = (
  { cores }: SessionState,
  { content, job_name }: Extract<Order, { type: "Answer" }>
): Effect.Effect<{ readonly job_name: JobName; readonly content: string }, SteeringRefused> => {
  const asking = [...cores.values()].flatMap((core) => (core.question === undefined ? [] : [core.job_name]))
  const hint =
    asking.length === 0
      ? `running jobs: ${[...cores.keys()].join(", ") || "none"}`
      : `jobs with a question: ${asking.join(", ")}`
  const [, word = "", rest = ""] = /^(\S+)\s*([^]*)$/u.exec(content.trim()) ?? []
  const named = job_name ?? asking.find((name) => name === word)
  const text = job_name === undefined && named !== undefined ? rest : content.trim()
  const [only, ...others] = asking
  const chosen = named ?? (others.length === 0 ? only : undefined)
  if (chosen === undefined && others.length > 0) return refused("JOB_AMBIGUOUS", "several jobs have a question", hint)
  const unasked = job_name ?? [...cores.keys()].find((name) => name === word)
  if (unasked !== undefined && !asking.includes(unasked))
    return refused("NO_QUESTION", `the job ${unasked} is not waiting for an answer`, hint)
  if (chosen === undefined) return refused("NO_QUESTION", "no job is waiting for an answer", hint)
  return text === ""
    ? refused("EMPTY", "the answer is empty", `say what ${chosen} should know`)
    : Effect.succeed({ job_name: chosen, content: text })
}

const sized = (content: string) =>
  isTooLong(content)
    ? refused(
        "TOO_LARGE",
        `an instruction may have ${CHAT_TEXT_LIMIT}`,
        "put the rest into a file of the workspace and name it"
      )
    : Effect.succeed(content)

const chosenTurn = (state: SessionState, next: InboxId | undefined) => {
  const turn = turnToStop(state, next)
  return turn === undefined
    ? refused("NOTHING_RUNS", "no turn is running in this session", "choirctl session cores shows its jobs")
    : Effect.succeed<SignalBody>({ type: "StopTurn", turn })
}

/** Bytes of the input that a person gives a skill. */
const SKILL_INPUT_BYTES_MAX = 64 * 1024
const JOB_NAME_CHARS_MAX = 40

/** The job in which a person's order runs a skill. */
const skillJob = (skill: SkillName): JobName =>
  JobName.make(`run-${skill.replaceAll(/[^a-z0-9]+/gu, "-")}`.slice(0, JOB_NAME_CHARS_MAX))

/** The order for a new conversation, which would end jobs that nobody meant, and means nothing where nothing was said yet. */
const newSession = (
  { cores, rev }: SessionState,
  { end_jobs = false }: Extract<Order, { type: "NewSession" }>,
  next: InboxId | undefined
): Effect.Effect<SignalBody, SteeringRefused> => {
  const jobs = [...cores.keys()]
  if (jobs.length > 0 && !end_jobs)
    return refused(
      "JOBS_RUN",
      jobs.length === 1
        ? `the job ${jobs.join()} is running and would end with the conversation`
        : `the jobs ${jobs.join(", ")} are running and would end with the conversation`,
      "wait for the report, or add --end-jobs to end them"
    )
  return rev === 0 && next === undefined
    ? refused("ALREADY_NEW", "nothing was said in this conversation yet", "send a message: it begins with that")
    : Effect.succeed({ type: "NewSession", ...(end_jobs ? { end_jobs } : {}) })
}

/** The signal that an order becomes in this state. `next` is the oldest message that was not taken shortly before. */
export const signalBodyOf = Effect.fnUntraced(function* (state: SessionState, order: Order, next: InboxId | undefined) {
  switch (order.type) {
    case "StopTurn":
      return yield* chosenTurn(state, next)
    case "Cancel":
      return state.cores.size === 0
        ? yield* chosenTurn(state, next)
        : ({ type: "CancelCore", job_name: yield* chosenJob(state, undefined) } satisfies SignalBody)
    case "Inject": {
      const { content } = order
      if (content.trim() === "") return yield* refused("EMPTY", "the instruction is empty", "say what edge should know")
      return { type: "Inject", content: yield* sized(content) } satisfies SignalBody
    }
    case "Answer": {
      const { content, job_name } = yield* chosenAnswer(state, order)
      return { type: "Inject", content: yield* sized(content), job_name } satisfies SignalBody
    }
    case "CancelCore":
      return { type: "CancelCore", job_name: yield* chosenJob(state, order.job_name) } satisfies SignalBody
    case "StartSkill": {
      const { input, skill, trigger } = order
      if (Buffer.byteLength(JSON.stringify(input ?? null)) > SKILL_INPUT_BYTES_MAX)
        return yield* refused(
          "TOO_LARGE",
          `a skill's input may have ${SKILL_INPUT_BYTES_MAX} bytes`,
          "put the rest into a file of the workspace and name it"
        )
      const job_name = skillJob(skill)
      return {
        type: "StartSkill",
        skill,
        job_name,
        ...(input === undefined ? {} : { input }),
        ...(trigger === undefined ? {} : { trigger })
      } satisfies SignalBody
    }
    case "CancelSkill": {
      const job = [...state.cores.values()].find((core) => core.skill?.name === order.skill)
      if (job !== undefined) return { type: "CancelCore", job_name: job.job_name } satisfies SignalBody
      if (state.edge.skill?.name === order.skill) return yield* chosenTurn(state, next)
      return yield* refused(
        "NOTHING_RUNS",
        `the skill ${order.skill} is not running`,
        "choirctl skill runs lists what ran"
      )
    }
    case "NewSession":
      return yield* newSession(state, order, next)
    case "Trust":
      return state.edge.label?.rev === order.rev
        ? ({ type: "Trust", rev: Rev.make(order.rev) } satisfies SignalBody)
        : yield* state.edge.label === undefined
            ? refused(
                "OTHER_TEXT",
                "no text from outside is in this conversation",
                "there is nothing to take for trusted"
              )
            : refused("OTHER_TEXT", "that is not the text which is in this conversation now", "send /trust to see it")
    case "Compact": {
      const job_name = order.lane === undefined ? undefined : jobOf(order.lane)
      if (job_name !== undefined) yield* chosenJob(state, job_name)
      return (
        order.lane === undefined ? { type: "Compact" } : { type: "Compact", lane: order.lane }
      ) satisfies SignalBody
    }
  }
})

/** Whether an order is the one that a stored signal came from. */
export const isSame = (order: Order, body: SignalBody): boolean => {
  switch (order.type) {
    case "Inject":
      return body.type === "Inject" && body.job_name === undefined && body.content === storableJson(order.content)
    case "Answer":
      return (
        body.type === "Inject" &&
        body.job_name !== undefined &&
        (order.job_name === undefined || order.job_name === body.job_name) &&
        storableJson(order.content).trim().endsWith(body.content)
      )
    case "CancelCore":
      return body.type === "CancelCore" && (order.job_name === undefined || body.job_name === order.job_name)
    case "StopTurn":
      return body.type === "StopTurn"
    case "StartSkill":
      return (
        body.type === "StartSkill" &&
        body.skill === order.skill &&
        body.trigger === order.trigger &&
        canonicalJson(body.input ?? null) === canonicalJson(order.input ?? null)
      )
    case "CancelSkill":
    case "Cancel":
      return body.type === "CancelCore" || body.type === "StopTurn"
    case "Compact":
      return body.type === "Compact" && body.lane === order.lane
    case "Trust":
      return body.type === "Trust" && body.rev === order.rev
    case "NewSession":
      return body.type === "NewSession" && (body.end_jobs ?? false) === (order.end_jobs ?? false)
  }
}

/** The action in the audit, by the type of the order. */
export const ORDER_ACTIONS = {
  Inject: "session.inject",
  Answer: "session.answer",
  CancelCore: "session.cancel",
  StartSkill: "skill.start",
  CancelSkill: "skill.cancel",
  Cancel: "session.cancel",
  StopTurn: "session.stop",
  Compact: "session.compact",
  NewSession: "session.new",
  Trust: "session.trust"
} as const

/** The detail of an order in its audit row: never the words of an instruction. */
export const auditDetail = (order: Order): Readonly<Record<string, string | number | null>> => {
  switch (order.type) {
    case "Inject":
      return { chars: order.content.length }
    case "Answer":
      return { chars: order.content.length, job_name: order.job_name ?? null }
    case "StartSkill":
      return { skill: order.skill, ...(order.trigger === undefined ? {} : { trigger: order.trigger }) }
    case "CancelSkill":
      return { skill: order.skill }
    case "CancelCore":
      return { job_name: order.job_name ?? null }
    case "Compact":
      return { lane: order.lane ?? null }
    case "Trust":
      return { rev: order.rev }
    case "NewSession":
      return { end_jobs: String(order.end_jobs ?? false) }
    case "StopTurn":
    case "Cancel":
      return {}
  }
}
