/** One epoch as its run sees it: its start, and the consequences if it does not come up. */
import { Clock, Deferred, Effect, Redacted, Result } from "effect"
import { ContainerError } from "#src/choird/runtime/ContainerRuntime.ts"
import { logFull } from "#src/choird/sessions/logLimit.ts"
import type { SessionRow } from "#src/choird/sessions/SessionStore.ts"
import type { EpochEnd } from "./decideRestart.ts"
import { runEpoch } from "./Epoch.ts"
import { retryDatabase } from "#src/choird/database/DatabaseAway.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Images } from "#src/choird/images/Images.ts"
import { Tokens } from "#src/choird/sessions/Tokens.ts"
import { AgentViews } from "./AgentViews.ts"
import type { RunContext } from "./RunContext.ts"
import type { SecretsFile } from "#schema/Secrets.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"

const LAST_WORDS_CHARS_MAX = 400
/** Shorter values are hardly secrets, and would match ordinary words. */
const SECRET_CHARS_MIN = 8

/** One line that is safe to print. Secrets go first, since what is left out of the line could hide half of one. */
export const shownWords = (words: string, secrets: SecretsFile): string => {
  const values = Object.values(secrets)
    .map(Redacted.value)
    .filter((value) => value.length >= SECRET_CHARS_MIN)
    .toSorted((one, other) => other.length - one.length)
  const clean = values.reduce((text, value) => text.replaceAll(value, "***"), words)
  const line = clean.replaceAll(/[\p{C}\p{Z}\s]+/gu, " ").trim()
  return line.length > LAST_WORDS_CHARS_MAX ? `${firstPart(line, LAST_WORDS_CHARS_MAX - 1)}…` : line
}

/** A crash with its cause, where the agent named one. */
export const withLastWords = (end: EpochEnd, secrets: SecretsFile): EpochEnd => {
  if (end.type !== "crashed" || end.last_words === undefined) return end
  const words = shownWords(end.last_words, secrets)
  return words === "" ? end : { ...end, reason: `${end.reason}: ${words}` }
}

const makeCameUp = Effect.fnUntraced(function* ({ agent_id, prepared, remark, started }: RunContext) {
  const images = yield* Images
  const views = yield* AgentViews
  return Effect.gen(function* () {
    const since_ms = yield* Clock.currentTimeMillis
    const view = yield* views.change(agent_id, { status: "running", since_ms, reason: remark })
    yield* images.worked(agent_id, prepared.image.image_version)
    yield* Deferred.succeed(started, view)
    yield* Effect.logInfo("the agent is running")
  })
})

/**
 * The silence that the running configuration allows the agent. A shorter one counts only once the agent has adopted it, since
 * until then the agent's heartbeats follow the previous configuration.
 */
const silenceLimit = Effect.fnUntraced(function* ({ agent_id, prepared }: RunContext) {
  const store = yield* ConfigStore
  const views = yield* AgentViews
  let agreed_ms = prepared.config.crash_detection_threshold_ms
  return Effect.map(store.current, ({ config, version }) => {
    const { crash_detection_threshold_ms: wanted_ms } = config
    agreed_ms = views.of(agent_id).config_version === version ? wanted_ms : Math.max(agreed_ms, wanted_ms)
    return agreed_ms
  })
})

const LINGERS = "its token is no longer valid, but its container is not gone yet"

/** One epoch from its token to its end; whatever keeps a container from starting is a crash of the agent. */
export const epochOfRun = Effect.fnUntraced(function* (
  context: RunContext,
  row: SessionRow,
  token: Redacted.Redacted | undefined
) {
  const store = yield* ConfigStore
  const tokens = yield* Tokens
  const views = yield* AgentViews
  const cameUp = yield* makeCameUp(context)
  const { agent_id, bindings, prepared, programs, stop } = context
  const { epoch, session_id } = row
  const { version } = yield* store.current
  // The view's bindings stay: the models in them may have been switched since the start.
  yield* views.change(agent_id, {
    status: "starting",
    session_id,
    epoch,
    image_version: prepared.image.image_version,
    manifests: prepared.image.manifests,
    since_ms: yield* Clock.currentTimeMillis,
    config_version: version,
    started_with: prepared.config
  })
  let ready = false
  const plan = {
    row,
    bindings,
    agent_number: prepared.agent_number,
    config: prepared.config,
    silence_ms_max: yield* silenceLimit(context),
    fullAt: (log_bytes: number) => Effect.map(store.current, ({ config }) => logFull(log_bytes, config.retention)),
    summary_ms_max: Effect.map(store.current, ({ config }) => config.memory.summary_timeout_ms),
    image: prepared.image,
    programs,
    token: token ?? (yield* retryDatabase(tokens.bootstrap(session_id, agent_id, epoch))),
    stop,
    onReady: Effect.andThen(
      Effect.sync(() => void (ready = true)),
      cameUp
    ),
    onWait: (reason: string) =>
      Effect.suspend(() =>
        views.of(agent_id).reason === reason ? Effect.void : Effect.asVoid(views.change(agent_id, { reason }))
      ),
    onStopping: Effect.asVoid(views.change(agent_id, { status: "stopping" })),
    onLingering: (crash: string | undefined) =>
      Effect.gen(function* () {
        const reason =
          crash === undefined ? LINGERS : `${crash}; ${LINGERS}. The agent starts again once the container is gone`
        yield* Effect.logWarning(reason)
        yield* views.change(agent_id, { status: crash === undefined ? "stopping" : "starting", reason })
      })
  }
  yield* Effect.logInfo(`epoch ${epoch} begins`)
  const ended = yield* Effect.result(Effect.scoped(runEpoch(plan)))
  if (Result.isSuccess(ended)) {
    const end = withLastWords(ended.success, yield* store.secrets)
    return { type: "ended", end, ready, tried: true } as const
  }
  const { failure } = ended
  // A container that cannot be ended still holds the agent's resources, so nothing new may start beside it.
  if (failure instanceof ContainerError && failure.reason === "stuck")
    return { type: "stuck", row, reason: failure.message } as const
  const end: EpochEnd = { type: "crashed", reason: failure.message, ready }
  // An engine that never answered says nothing about the image.
  const tried = !(failure instanceof ContainerError && failure.reason === "unavailable")
  return { type: "ended", end, ready, tried } as const
})
