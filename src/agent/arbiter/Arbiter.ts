/**
 * The one writer of a session. A commit is decide, fold and append in one synchronous turn: commits are serial by
 * construction and there is no queue to overflow. Tools run elsewhere, under their locks (D1).
 */
import { randomFillSync } from "node:crypto"
import { Clock, Context, Deferred, Effect, Layer, Result, Schema } from "effect"
import { Capabilities } from "#schema/Capability.ts"
import { type ChoirEvent, EVENT_VERSION, type EventDraft } from "#schema/Event.ts"
import { EVENT_DEPTH_MAX, isDeeperThan, storableJson } from "#src/shared/text/canonicalJson.ts"
import { foldAll, initialState } from "#src/shared/session/fold.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { SALT_BYTES } from "#src/shared/events/hashChain.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { ProfileRegistry } from "#src/agent/image/ProfileRegistry.ts"
import { SkillRegistry } from "#src/agent/image/SkillRegistry.ts"
import { decide } from "./decide.ts"
import { type ChainPlace, EventLog, residentRevs } from "./EventLog.ts"
import type { Command } from "./Command.ts"

/**
 * The command was refused; nothing happened. `exhausted` names the session limit that was reached. `unfit` means that
 * no event can hold the content, so that less of it may be accepted. The other fields are those of `Rejected` in Command.ts.
 */
export class Refused extends Schema.TaggedError<Refused>()("Refused", {
  reason: Schema.String,
  exhausted: Schema.optionalKey(Schema.String),
  ends_job: Schema.optionalKey(Schema.Boolean),
  awaits_jobs: Schema.optionalKey(Schema.Boolean),
  awaits_verdict: Schema.optionalKey(Schema.Boolean),
  denied: Schema.optionalKey(Schema.Struct({ skill: Schema.String, capabilities: Capabilities })),
  unfit: Schema.optionalKey(Schema.Boolean),
  allowed: Schema.optionalKey(
    Schema.Struct({ tools: Schema.Array(Schema.String), transitions: Schema.Array(Schema.String) })
  )
}) {
  override get message() {
    return this.reason
  }
}

/** The history that choird sent for recovery is inconsistent; only the whole log can tell more. */
export class Unfit extends Schema.TaggedError<Unfit>()("Unfit", { rev: Schema.Natural, reason: Schema.String }) {
  override get message() {
    return `the history does not fit at revision ${this.rev}: ${this.reason}`
  }
}

/** A state that choird folded, the place of its newest event, and the place after which the log is sent. */
export interface Beginning {
  readonly state: SessionState
  readonly at: ChainPlace
  readonly after: ChainPlace
}

/** Decides on commands and commits what it accepts. */
export class Arbiter extends Context.Service<
  Arbiter,
  {
    /** Commits the events of a command as one batch, or refuses it. */
    commit(command: Command): Effect.Effect<ReadonlyArray<ChoirEvent>, Refused>
    /** Continues from a state, or from nothing, whatever was restored before; nothing is committed yet. */
    begin(beginning: Beginning): Effect.Effect<void, Unfit>
    /**
     * Takes over events that choird acknowledged in an earlier epoch, before anything is committed in this one. Those that the state
     * has are kept and not folded; they have to lead to the digest that it was made at.
     */
    restore(events: ReadonlyArray<ChoirEvent>): Effect.Effect<void, Unfit>
    /** The fold of everything committed. */
    state(): SessionState
    /** Waits until a state holds, looking at each commit. The answer is the state of a moment later. */
    until(holds: (state: SessionState) => boolean): Effect.Effect<SessionState>
    /** Committed events for one listener that reads them in time: replication. */
    onCommit(listener: (events: ReadonlyArray<ChoirEvent>) => void): Effect.Effect<void>
  }
>()("choir/agent/Arbiter") {
  static readonly layer = Layer.effect(
    Arbiter,
    Effect.gen(function* () {
      const log = yield* EventLog
      const settings = yield* AgentSettings
      const profiles = yield* ProfileRegistry
      const skills = yield* SkillRegistry
      const salt = yield* Salts
      const listeners: Array<(events: ReadonlyArray<ChoirEvent>) => void> = []
      let state = initialState
      const { look, until } = makeWaiters(() => state)
      // The end of what the state has of the events that are still to come.
      let awaited: ChainPlace | undefined

      const arrived = Effect.suspend(() => {
        if (awaited === undefined || log.head() < awaited.rev) return Effect.void
        const { hash, rev } = awaited
        awaited = undefined
        return log.hashAt(rev) === hash
          ? Effect.void
          : Effect.fail(new Unfit({ rev, reason: "its digest is not the snapshot's" }))
      })

      const begin = ({ after, at, state: begun }: Beginning) =>
        Effect.suspend(() => {
          log.begin(after)
          state = begun
          awaited = at
          return arrived
        })

      const restore = Effect.fnUntraced(function* (events: ReadonlyArray<ChoirEvent>) {
        const misplaced = events.find(({ rev }, index) => rev !== log.head() + 1 + index)
        if (misplaced !== undefined)
          return yield* new Unfit({ rev: misplaced.rev, reason: `${log.head()} is the newest` })
        const fresh = events.filter(({ rev }) => rev > state.rev)
        const folded = foldAll(state, fresh)
        if (Result.isFailure(folded)) return yield* new Unfit(folded.failure)
        log.restore(events)
        state = folded.success
        yield* arrived
        if (log.isFull()) log.trim(log.head(), residentRevs(state, log))
      })

      const commit = Effect.fnUntraced(function* (command: Command) {
        const now = yield* Clock.currentTimeMillis
        const situation = Object.assign(settings.situation(), { profiles, skills, find: log.find })
        const drafts = yield* Effect.fromResult(draftsOf(state, command, situation))
        const events = stamp(drafts, state.rev, new Date(now).toISOString(), salt)
        const folded = foldAll(state, events)
        if (Result.isFailure(folded)) return yield* new Refused({ reason: folded.failure.reason })
        const tooLarge = log.append(events)
        if (tooLarge !== undefined) return yield* new Refused({ reason: tooLarge, unfit: true })
        state = folded.success
        for (const listener of listeners) listener(events)
        look()
        return events
      })

      return Arbiter.of({
        commit,
        begin,
        restore,
        state: () => state,
        until,
        onCommit: (listener) => Effect.sync(() => void listeners.push(listener))
      })
    })
  )
}

/** The drafts of a command, in a form that an event can have. */
const draftsOf = (...of: Parameters<typeof decide>): Result.Result<ReadonlyArray<EventDraft>, Refused> => {
  const decided = decide(...of)
  if (Result.isFailure(decided)) return Result.fail(new Refused(decided.failure))
  return decided.success.some((draft) => isDeeperThan(draft, EVENT_DEPTH_MAX))
    ? Result.fail(new Refused({ reason: `an event may nest ${EVENT_DEPTH_MAX} levels at most`, unfit: true }))
    : Result.succeed(decided.success)
}

/** The waits for a state that holds. */
const makeWaiters = (current: () => SessionState) => {
  const waiters = new Set<() => void>()
  return {
    /** Tells those whose state holds now. */
    look: () => {
      for (const look of waiters) look()
    },
    until: (holds: (state: SessionState) => boolean): Effect.Effect<SessionState> =>
      Effect.suspend(() => {
        if (holds(current())) return Effect.succeed(current())
        const reached = Deferred.makeUnsafe<SessionState>()
        const look = () => {
          if (holds(current())) Deferred.doneUnsafe(reached, Effect.succeed(current()))
        }
        waiters.add(look)
        return Deferred.await(reached).pipe(
          Effect.andThen(Effect.yieldNow),
          Effect.andThen(Effect.sync(current)),
          Effect.ensuring(Effect.sync(() => waiters.delete(look)))
        )
      })
  }
}

/** Gives drafts their places, their time and their salts, in a form that every store keeps unchanged. */
const stamp = (
  drafts: ReadonlyArray<EventDraft>,
  head: number,
  created_at: string,
  salt: () => string
): ReadonlyArray<ChoirEvent> =>
  drafts.map((draft, index) => ({
    v: EVENT_VERSION,
    rev: head + 1 + index,
    ...storableJson(draft),
    created_at,
    salt: salt()
  }))

/** Salts that are drawn at once: one by one they would cost as much as the digest. */
const SALTS_DRAWN = 256

const bySystem = (): (() => string) => {
  const drawn = Buffer.alloc(SALT_BYTES * SALTS_DRAWN)
  let next = drawn.length
  return () => {
    if (next === drawn.length) {
      randomFillSync(drawn)
      next = 0
    }
    next += SALT_BYTES
    return drawn.toString("hex", next - SALT_BYTES, next)
  }
}

/** Answers another salt at each call. A simulation gives its own, so that a seed decides every digest. */
export const Salts = Context.Reference<() => string>("choir/agent/Salts", { defaultValue: bySystem })

// A lane derives its next step from the state, so ignoring a refusal could make it propose the same step forever. Hence two ways to commit
// what nobody waits for.
type Committer = Pick<Arbiter["Service"], "commit" | "state">

const broken = ({ type }: Command, { reason }: Refused) => Effect.die(new Error(`${type} was refused: ${reason}`))

/** Commits what may have been settled meanwhile. A refusal is fine, unless no event can hold the command. */
export const commitIfDue = (arbiter: Committer, command: Command): Effect.Effect<void> =>
  arbiter.commit(command).pipe(
    Effect.asVoid,
    Effect.catch((refused) => (refused.unfit === true ? broken(command, refused) : Effect.void))
  )

/**
 * Commits what has to end. Content that no event can hold gives way to `smaller`. A refusal is fine where somebody else ended it; where
 * `isOpen` still holds after it, it is a defect.
 */
export const commitEnd = (
  arbiter: Committer,
  command: Command,
  isOpen: (state: SessionState) => boolean,
  smaller?: (reason: string) => Command
): Effect.Effect<void> =>
  arbiter.commit(command).pipe(
    Effect.asVoid,
    Effect.catch((refused) => {
      if (refused.unfit === true && smaller !== undefined) return commitEnd(arbiter, smaller(refused.reason), isOpen)
      return isOpen(arbiter.state()) ? broken(command, refused) : Effect.void
    })
  )
