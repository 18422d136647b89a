/**
 * The agent's program. It knows nothing but its socket, its folders and a bootstrap token; everything else choird tells it, and
 * what it commits counts once choird has acknowledged it.
 */
import { parseArgs } from "node:util"
import { NodeHttpClient, NodeRuntime, NodeServices } from "@effect/platform-node"
import { Cause, Effect, Exit, FileSystem, Layer, Logger, References, Runtime, Schema } from "effect"
import type { InitHelloReply } from "#schema/AgentApi.ts"
import type { ChoirEvent } from "#schema/Event.ts"
import { AgentId, type SecretName, SessionId } from "#schema/Ids.ts"
import { ImageVersionFile } from "#schema/Image.ts"
import { decodeFile } from "#src/shared/decode.ts"
import { MODEL_TOTAL_MS_MAX } from "#src/shared/limits.ts"
import { layerSocketClient } from "#src/shared/sockets.ts"
import { AgentSettings } from "./AgentSettings.ts"
import { Arbiter } from "./Arbiter.ts"
import { Budget } from "./Budget.ts"
import { ControlPlane } from "./ControlPlane.ts"
import { EventLog } from "./EventLog.ts"
import { ImageTexts } from "./ImageTexts.ts"
import { Llm } from "./Llm.ts"
import { LockManager } from "./LockManager.ts"
import { Mailbox } from "./Mailbox.ts"
import { ModelCalls } from "./ModelCalls.ts"
import { ProcessRunner } from "./ProcessRunner.ts"
import { Replication } from "./Replication.ts"
import { SecretStore } from "./SecretStore.ts"
import { runSession } from "./Session.ts"
import { ToolRegistry } from "./ToolRegistry.ts"
import { ToolRunner } from "./ToolRunner.ts"
import { Workspace } from "./Workspace.ts"

const AGENT_VERSION = "0.1.0"

/** The command line or the environment is not what a runtime gives. */
class BadInvocation extends Schema.TaggedError<BadInvocation>()("BadInvocation", { problem: Schema.String }) {
  override readonly [Runtime.errorExitCode] = 2
  override get message() {
    return `choir-agent is started by choird: ${this.problem}`
  }
}

const flags = Effect.try({
  try: () =>
    parseArgs({
      strict: true,
      options: {
        "control-plane": { type: "string", default: "uds" },
        socket: { type: "string", default: "/run/choir/choird.sock" },
        workspace: { type: "string", default: "/workspace" },
        choir: { type: "string", default: "/choir" },
        rg: { type: "string", default: "rg" },
        "own-pid-namespace": { type: "boolean", default: false }
      }
    }).values,
  catch: (error) => new BadInvocation({ problem: String(error) })
})

const Environment = Schema.Struct({
  AGENT_ID: AgentId,
  CHOIR_SESSION_ID: SessionId,
  CHOIR_BOOTSTRAP_TOKEN: Schema.RedactedFromValue(Schema.NonEmptyString)
})

/** Takes the environment's values and removes them, so that no child inherits them. */
const environment = Effect.suspend(() => {
  const { AGENT_ID, CHOIR_BOOTSTRAP_TOKEN, CHOIR_SESSION_ID } = process.env
  delete process.env["CHOIR_BOOTSTRAP_TOKEN"]
  return Schema.decodeUnknownEffect(Environment)({ AGENT_ID, CHOIR_BOOTSTRAP_TOKEN, CHOIR_SESSION_ID })
}).pipe(Effect.mapError(({ message }) => new BadInvocation({ problem: message })))

/** Introduces the agent and takes over the acknowledged history, page by page. */
const hello = Effect.fnUntraced(function* (agent_id: AgentId, session_id: SessionId, image: ImageVersionFile) {
  const plane = yield* ControlPlane
  const { image_version, skill_manifest_hash, tool_manifest_hash } = image
  const request = {
    agent_id,
    session_id,
    image_version,
    agent_version: AGENT_VERSION,
    tool_manifest_hash,
    skill_manifest_hash
  }
  const first = yield* plane.hello(request)
  const history: Array<ChoirEvent> = [...first.tail_events]
  let page: InitHelloReply = first
  while (page.tail_more) {
    page = yield* plane.hello({ ...request, tail_from: history.length + 1 })
    history.push(...page.tail_events)
  }
  return { first, history }
})

const secretNames = ({ config }: InitHelloReply): ReadonlyArray<SecretName> => [
  ...new Set(Object.values(config.models).flatMap(({ secret }) => secret ?? []))
]

/**
 * The models' own client: a slow model may think for minutes before its answer begins. Fresh, because clients share a memoized
 * layer whatever their options are, and this one must not speak to choird's socket.
 */
const modelHttp = Layer.fresh(
  NodeHttpClient.layerUndiciOptions({ headersTimeout: MODEL_TOTAL_MS_MAX, bodyTimeout: MODEL_TOTAL_MS_MAX })
)

const program = Effect.gen(function* () {
  const options = yield* flags
  const { AGENT_ID: agent_id, CHOIR_BOOTSTRAP_TOKEN: bootstrap, CHOIR_SESSION_ID: session_id } = yield* environment
  if (options["control-plane"] !== "uds")
    return yield* new BadInvocation({ problem: "--control-plane=uds is the only transport of this version" })
  const fs = yield* FileSystem.FileSystem
  const versionFile = `${options.choir}/version.json`
  const image = yield* decodeFile(ImageVersionFile)(versionFile, yield* fs.readFileString(versionFile))
  const plane = ControlPlane.layer(session_id, bootstrap).pipe(Layer.provide(layerSocketClient(options.socket)))

  return yield* Effect.gen(function* () {
    const { first, history } = yield* hello(agent_id, session_id, image)
    const { config, config_version, epoch, resource_bindings } = first
    const settings = AgentSettings.layer({ session_id, epoch, resource_bindings, config_version, config })
    yield* Effect.logInfo(`epoch ${epoch} ${first.status} at revision ${history.length}`)
    const control = yield* ControlPlane
    const values = yield* control.secrets(secretNames(first))

    const log = Layer.effectDiscard(Effect.flatMap(EventLog, (log) => Effect.sync(() => log.restore(history)))).pipe(
      Layer.provideMerge(EventLog.layer(session_id))
    )
    const secrets = Layer.effectDiscard(Effect.flatMap(SecretStore, (store) => store.replaceAll(values))).pipe(
      Layer.provideMerge(SecretStore.layer)
    )
    const base = Arbiter.layer.pipe(
      Layer.provideMerge(Layer.mergeAll(log, settings, secrets, LockManager.layer, Mailbox.layer))
    )
    const guards = Layer.mergeAll(
      Replication.layer,
      Budget.layer,
      Llm.layer.pipe(Layer.provide(modelHttp)),
      ImageTexts.layer(options.choir),
      Workspace.layer({ root: options.workspace }),
      ProcessRunner.layer({ ownsPidNamespace: options["own-pid-namespace"] })
    ).pipe(Layer.provideMerge(base))
    const tools = ToolRegistry.layer({ choir: options.choir, rg: options.rg }).pipe(Layer.provideMerge(guards))
    const runners = Layer.mergeAll(ToolRunner.layer, ModelCalls.layer).pipe(Layer.provideMerge(tools))
    return yield* Effect.provide(runSession, runners)
  }).pipe(Effect.annotateLogs({ session_id }), Effect.provide(plane))
})

/** One JSON object a line on stdout; the runtime that started the agent writes them to its log. */
const jsonLines = Logger.layer([Logger.withConsoleLog(Logger.formatJson)])

NodeRuntime.runMain(
  program.pipe(
    Effect.tap((reason) => Effect.logInfo(`ended: ${reason}`)),
    Effect.tapCause((cause) => (Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logError(Cause.pretty(cause)))),
    Effect.provide(Layer.mergeAll(NodeServices.layer, jsonLines, Layer.succeed(References.MinimumLogLevel, "Info")))
  ),
  {
    disableErrorReporting: true,
    // choird reads the exit code: 0 is a goodbye that was accepted, everything else a crash.
    teardown: (exit, done) => done(Exit.isSuccess(exit) ? 0 : 1)
  }
)
