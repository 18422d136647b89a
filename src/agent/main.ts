/**
 * The agent's program. It knows nothing but its way to choird, its folders and a bootstrap token; everything else choird tells it, and
 * what it commits counts once choird has acknowledged it.
 */
import { existsSync, lstatSync } from "node:fs"
import { dirname, join } from "node:path"
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Effect, Exit, FileSystem, Layer, Logger, Option, References, Runtime, Schema } from "effect"
import type { InitHello } from "#schema/AgentApi.ts"
import { AgentId, SessionId } from "#schema/Ids.ts"
import { ImageVersionFile } from "#schema/Image.ts"
import { TRIAL_FLAG } from "#schema/ContainedTrial.ts"
import { TRIAL_COMMAND } from "#schema/Trial.ts"
import { RECEIVED_MARK } from "#src/shared/files/receivedMark.ts"
import { VERSION } from "#src/shared/program/version.ts"
import { APART, MAIL_READER } from "#src/shared/program/compiledProgram.ts"
import { GIT_CRED_HELPER } from "#src/shared/git/gitCredential.ts"
import { decodeFile } from "#src/shared/config/decode.ts"
import { layerEndpointClient } from "#src/shared/wire/endpoints.ts"
import { layerSocketClient } from "#src/shared/wire/sockets.ts"
import { takeWayOut } from "#src/shared/wire/wayOut.ts"
import { layerOutsideClient } from "#src/shared/wire/undiciClient.ts"
import { ReceivedMark } from "#src/agent/settings/ReceivedMark.ts"
import { Budget } from "#src/agent/model/Budget.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { Environment } from "#src/agent/model/prompt/Environment.ts"
import { fetchSecrets } from "#src/agent/control/fetchSecrets.ts"
import { credentialHelper, gitHelper } from "#src/agent/git/credentials.ts"
import { GitAccess } from "#src/agent/git/GitAccess.ts"
import { layerWorktrees } from "#src/agent/git/Worktrees.ts"
import { ImageTexts } from "#src/agent/image/ImageTexts.ts"
import { ImageTools } from "#src/agent/image/ImageTools.ts"
import { Llm, MODEL_TOTAL_MS_MAX } from "#src/agent/model/Llm.ts"
import { OutsideApi } from "#src/agent/outside/OutsideApi.ts"
import { type Apart, probeApart } from "#src/shared/program/callsApart.ts"
import { ProcessRunner } from "#src/agent/process/ProcessRunner.ts"
import { Replication } from "#src/agent/control/Replication.ts"
import { AnswerVoice } from "#src/agent/session/AnswerVoice.ts"
import { runSession } from "#src/agent/session/Session.ts"
import { layerModels, layerRecovered } from "#src/agent/session/sessionLayers.ts"
import { layerProfiles, ProfileRegistry } from "#src/agent/image/ProfileRegistry.ts"
import { layerSkills, SkillRegistry } from "#src/agent/image/SkillRegistry.ts"
import { layerSkillFiles } from "#src/agent/workspace/SkillFiles.ts"
import { CONTAINER_SOCKET, linkSocket } from "#src/agent/control/choirdConnections.ts"
import { ToolRegistry } from "#src/agent/calls/ToolRegistry.ts"
import { ToolRunner } from "#src/agent/calls/ToolRunner.ts"
import { TokenCount } from "#src/agent/model/TokenCount.ts"
import { containedTrial } from "#src/agent/trial/containedTrial.ts"
import { trialProgram } from "#src/agent/trial/Trial.ts"
import { Pictures } from "#src/agent/workspace/Pictures.ts"
import { Workspace } from "#src/agent/workspace/Workspace.ts"
import { SSE_KEEP_ALIVE_MS } from "#src/shared/limits.ts"

/** How long an agent's push stream may bring not even a comment before it is opened again. */
const PUSH_IDLE_MS_MAX = 3 * SSE_KEEP_ALIVE_MS

/** The command line or the environment is not what a runtime gives. */
class BadInvocation extends Schema.TaggedError<BadInvocation>()("BadInvocation", { problem: Schema.String }) {
  override readonly [Runtime.errorExitCode] = 2
  override get message() {
    return `choir-agent is started by choird, not by hand: ${this.problem}`
  }
}

const flags = Effect.try({
  try: () =>
    parseArgs({
      strict: true,
      options: {
        "control-plane": { type: "string", default: "uds" },
        socket: { type: "string", default: CONTAINER_SOCKET },
        endpoint: { type: "string" },
        ca: { type: "string" },
        workspace: { type: "string", default: "/workspace" },
        choir: { type: "string", default: "/choir" },
        rg: { type: "string", default: "rg" },
        "own-pid-namespace": { type: "boolean", default: false },
        trial: { type: "boolean", default: false }
      }
    }).values,
  catch: (error) => new BadInvocation({ problem: String(error) })
})

const Variables = Schema.Struct({
  AGENT_ID: AgentId,
  CHOIR_SESSION_ID: SessionId,
  CHOIR_BOOTSTRAP_TOKEN: Schema.RedactedFromValue(Schema.NonEmptyString)
})

/** Takes the environment's values and removes them, so that no child inherits them. */
const environment = Effect.suspend(() => {
  const { AGENT_ID, CHOIR_BOOTSTRAP_TOKEN, CHOIR_SESSION_ID } = process.env
  delete process.env["CHOIR_BOOTSTRAP_TOKEN"]
  return Schema.decodeUnknownEffect(Variables)({ AGENT_ID, CHOIR_BOOTSTRAP_TOKEN, CHOIR_SESSION_ID })
}).pipe(Effect.mapError(({ message }) => new BadInvocation({ problem: message })))

const introduction = (
  agent_id: AgentId,
  session_id: SessionId,
  image: ImageVersionFile,
  { level: calls_apart }: Apart
): InitHello => {
  const { image_version, skill_manifest_hash, tool_manifest_hash } = image
  const manifests = { tool_manifest_hash, skill_manifest_hash }
  return { agent_id, session_id, image_version, agent_version: VERSION, ...manifests, calls_apart }
}

/** The models' own client: a slow model may think for minutes, and this one must not speak to choird's socket. HTTP/2 is not in the agent's bundle. */
const modelHttp = layerOutsideClient({ idle_ms: MODEL_TOTAL_MS_MAX })

/** The client for services of the agent's resources: their answers come soon, or not at all. */
const outsideHttp = layerOutsideClient({})

/** The one place that knows by which transport choird is reached. */
const wayToChoird = (options: Effect.Success<typeof flags>) => {
  const { ca, endpoint, socket } = options
  const idle_ms = PUSH_IDLE_MS_MAX
  switch (options["control-plane"]) {
    case "uds":
      return Effect.succeed(layerSocketClient(socket, idle_ms))
    case "http":
      return endpoint === undefined
        ? Effect.fail(new BadInvocation({ problem: "--control-plane=http needs --endpoint" }))
        : Effect.succeed(layerEndpointClient({ url: endpoint, ca, idle_ms }))
    default:
      return Effect.fail(new BadInvocation({ problem: "--control-plane is uds or http" }))
  }
}

/** All that the image brings along. It is read before the first word to choird, so that an image that cannot run never says hello. */
const layerImage = (choir: string) =>
  Layer.merge(ImageTools.layer(choir), ImageTexts.layer(choir)).pipe(
    Layer.provideMerge(Layer.mergeAll(layerSkills(choir), layerProfiles(choir), layerSkillFiles(choir)))
  )

/** The path of a file beside the agent's program, under the program's name. */
const besideProgram = (suffix: string): string => (process.argv[1] ?? "").replace(/\.js$/u, suffix)

const program = Effect.gen(function* () {
  const options = yield* flags
  const { AGENT_ID: agent_id, CHOIR_BOOTSTRAP_TOKEN: bootstrap, CHOIR_SESSION_ID: session_id } = yield* environment
  const choird = yield* wayToChoird(options)
  const mark = join(dirname(options.socket), RECEIVED_MARK)
  if (options["control-plane"] === "uds" && options.socket === CONTAINER_SOCKET) yield* linkSocket(options.socket)
  const fs = yield* FileSystem.FileSystem
  const versionFile = `${options.choir}/version.json`
  const image = yield* decodeFile(ImageVersionFile)(versionFile, yield* fs.readFileString(versionFile))
  const plane = ControlPlane.layer(session_id, bootstrap).pipe(Layer.provide(choird))

  return yield* Effect.gen(function* () {
    const control = yield* ControlPlane
    const apart = probeApart(besideProgram(APART))
    const introduced = introduction(agent_id, session_id, image, apart)
    const first = yield* control.hello(introduced)
    takeWayOut(first.config.way_out ?? {})
    const values = yield* fetchSecrets(first.config, new Set())
    const books = Layer.merge(
      Layer.succeed(SkillRegistry, yield* SkillRegistry),
      Layer.succeed(ProfileRegistry, yield* ProfileRegistry)
    )
    const recovered = layerRecovered(introduced, first, values, books)
    const guards = Layer.mergeAll(
      Replication.layer,
      Budget.layer,
      Llm.layer.pipe(Layer.provide(modelHttp)),
      TokenCount.layer,
      Environment.layer({ workspace: options.workspace, shell: existsSync("/bin/bash") ? "bash" : "sh" }),
      Pictures.layer.pipe(Layer.provideMerge(Workspace.layer({ root: options.workspace }))),
      ProcessRunner.layer({ ownsPidNamespace: options["own-pid-namespace"], apart })
    ).pipe(Layer.provideMerge(recovered), (guarded) => Layer.provideMerge(layerWorktrees, guarded))
    const tools = Layer.merge(
      ToolRegistry.layer({ rg: options.rg, mailReader: besideProgram(MAIL_READER) }),
      AnswerVoice.layer
    ).pipe(
      Layer.provideMerge(OutsideApi.layer.pipe(Layer.provide(outsideHttp))),
      Layer.provideMerge(GitAccess.layer({ helper: gitHelper(options.choir) })),
      Layer.provideMerge(layerModels(guards))
    )
    const runners = ToolRunner.layer.pipe(Layer.provideMerge(tools))
    return yield* Effect.provide(runSession, runners)
  }).pipe(
    Effect.provideService(ReceivedMark, () => lstatSync(mark, { throwIfNoEntry: false }) !== undefined),
    Effect.annotateLogs({ session_id }),
    Effect.provide(Layer.merge(plane, layerImage(options.choir)))
  )
})

/** One JSON object a line on stdout; the runtime that started the agent writes them to its log. */
const jsonLines = Logger.layer([Logger.withConsoleLog(Logger.formatJson)])

/**
 * The cause of the agent's death, as its last line: choird makes the message of level FATAL the reason that people read. A failure names
 * its fix, so its stack is of no use; a defect is a fault of Choir, whose stack somebody has to see.
 */
const sayWhy = Effect.fnUntraced(function* (cause: Cause.Cause<unknown>) {
  const failure = Cause.findErrorOption(cause)
  if (Option.isNone(failure)) yield* Effect.logError(Cause.pretty(cause))
  const error = Option.getOrElse(failure, () => Cause.squash(cause))
  const words = error instanceof Error ? error.message : String(error)
  yield* Effect.logFatal(Option.isSome(failure) ? words : `a bug in Choir: ${words}`)
})

/** A trial in a container: one task instead of an agent. */
const trial = Effect.flatMap(flags, (options) =>
  containedTrial({
    socket: options.socket,
    workspace: options.workspace,
    choir: options.choir,
    rg: options.rg,
    mailReader: besideProgram(MAIL_READER),
    apart: probeApart(besideProgram(APART)),
    ownsPidNamespace: options["own-pid-namespace"],
    modelHttp,
    outsideHttp
  }).pipe(Effect.as("trial"))
)

/** Spans of an agent are not recorded, and no request carries the id of one. */
const untraced = Layer.merge(
  Layer.succeed(References.TracerEnabled, false),
  Layer.succeed(References.DisablePropagation, true)
)

const asAgent = () =>
  NodeRuntime.runMain(
    (process.argv.includes(TRIAL_FLAG) ? trial : program).pipe(
      Effect.tap((reason) => Effect.logInfo(`ended: ${reason}`)),
      Effect.tapCause((cause) => (Cause.hasInterruptsOnly(cause) ? Effect.void : sayWhy(cause))),
      Effect.provide(
        Layer.mergeAll(NodeServices.layer, jsonLines, Layer.succeed(References.MinimumLogLevel, "Info"), untraced)
      )
    ),
    {
      disableErrorReporting: true,
      // choird reads the exit code: 0 is a goodbye that was accepted, everything else a crash.
      teardown: (exit, done) => done(Exit.isSuccess(exit) ? 0 : 1)
    }
  )

/** A trial logs nothing: standard output is its outcome, and standard error says why there is none. */
const asTrial = (root: string) =>
  NodeRuntime.runMain(
    trialProgram(root, modelHttp).pipe(
      Effect.provide(Layer.mergeAll(NodeServices.layer, Layer.succeed(References.MinimumLogLevel, "None"), untraced)),
      Effect.tapCause((cause) => Effect.sync(() => process.stderr.write(`${Cause.pretty(cause)}\n`)))
    ),
    { disableErrorReporting: true }
  )

const [first, ...rest] = process.argv.slice(2)
if (first === GIT_CRED_HELPER) NodeRuntime.runMain(Effect.provide(credentialHelper(rest), NodeServices.layer))
else if (first === TRIAL_COMMAND) asTrial(rest[0] ?? "/workspace")
else asAgent()
