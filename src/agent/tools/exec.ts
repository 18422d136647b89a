/** choir.exec: a shell command in the workspace, of which no process is left when it returns (R22). */
import { existsSync } from "node:fs"
import { constants } from "node:os"
import { Effect, Schema } from "effect"
import { SEND_FOLDER } from "#schema/SentFile.ts"
import { Source } from "#schema/Source.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { GitAccess } from "#src/agent/git/GitAccess.ts"
import { Worktrees } from "#src/agent/git/Worktrees.ts"
import { ProcessRunner, type ProcessResult } from "#src/agent/process/ProcessRunner.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { changedPaths, TREE_TICK_MS } from "#src/agent/workspace/treeVersions.ts"
import { Workspace } from "#src/agent/workspace/Workspace.ts"
import { changedFile, commandFiles } from "./commandFiles.ts"
import { execFolders, folderFields } from "./execFolders.ts"
import { decodeInput, refusal, type Tool, type ToolOutcome, type UsedFiles } from "./Tool.ts"
import { llmView } from "#src/agent/model/llmView.ts"
import { watchSendFolder } from "./sendFolder.ts"
import { keepWholeOutput } from "./wholeOutput.ts"
import { PROCESS_GRACE_MS } from "./external.ts"

/** How long a command of choir.exec runs when the model names no time (E12). */
const EXEC_TIMEOUT_MS = 120_000
/** The longest time that the model may ask for a command of choir.exec (E12). */
const EXEC_TIMEOUT_MS_MAX = 600_000
/** One argument of a process: the kernel refuses 128 KiB, its closing NUL included. */
const EXEC_COMMAND_BYTES_MAX = 128 * 1024 - 1

const Input = Schema.Struct({
  command: Schema.NonEmptyString.annotate({
    description: "No standard input"
  }).check(
    Schema.makeFilter((command) => !command.includes("\0") || "a command holds no NUL byte"),
    Schema.makeFilter(
      (command) =>
        Buffer.byteLength(command) <= EXEC_COMMAND_BYTES_MAX ||
        `a command has at most ${EXEC_COMMAND_BYTES_MAX} bytes; write a script to a file and run that`
    )
  ),
  ...folderFields,
  network: Schema.optionalKey(Schema.Boolean.annotate({ description: "It needs the network" })),
  timeout_ms: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: EXEC_TIMEOUT_MS_MAX })).annotate({
      description: `Milliseconds until it is killed. Default ${EXEC_TIMEOUT_MS}`
    })
  )
})

/** The shell's convention: a signal's number plus 128. */
const exitCodeOf = ({ exit_code, signal }: ProcessResult): number =>
  exit_code ?? 128 + (signal === undefined ? constants.signals.SIGKILL : constants.signals[signal])

/** The words of a command that may not write where it wanted to. */
const DENIED = /permission denied|EACCES|read-only file system/iu

const outcomeOf = (
  result: ProcessResult,
  timeout_ms: number,
  words: string | undefined,
  scrub: (text: string) => string
): ToolOutcome => {
  const exit_code = exitCodeOf(result)
  const output = { exit_code, stdout: scrub(result.stdout.text), stderr: scrub(result.stderr.text) }
  if (result.timed_out) {
    const summary = `the command was killed after ${timeout_ms} ms`
    return { status: "timeout", summary, output }
  }
  // Without its duration, or no result would ever be the same as the one before (E11).
  const limit = words !== undefined && exit_code !== 0 && DENIED.test(result.stderr.text) ? `; ${words}` : ""
  const summary = `exit code ${exit_code}${limit}`
  return { status: exit_code === 0 ? "success" : "error", summary, output }
}

/** Looks at the files before a command runs. The answer tells what it changed, unless a process of it is left that may go on. */
const watchTree = Effect.fnUntraced(function* (workspace: Workspace["Service"]) {
  const before = yield* workspace.tree
  if (before !== undefined) yield* Effect.sleep(TREE_TICK_MS)
  return Effect.fnUntraced(function* ({ survivors }: ProcessResult) {
    const after = before === undefined || survivors > 0 ? undefined : yield* workspace.tree
    return before === undefined || after === undefined ? {} : { changed: changedPaths(before, after) }
  })
})

const COMMAND: ReadonlyArray<Source> = ["command"]

/**
 * The outcome of a command with a network: what it printed may come from there, and what it did there its exit code tells alone, where
 * it ended by itself.
 */
const fromNetwork = (outcome: ToolOutcome, online: boolean): ToolOutcome =>
  online ? { ...outcome, sources: COMMAND, acted: outcome.status === "success" ? "accepted" : "unknown" } : outcome

const changed = (path: string): string =>
  `${path} was changed after this call asked for approval, so nothing ran. Call again, and a person is asked about the file as it is now`

const NOT_ASKED = "this lane has since read text from outside: call again, and a person will be asked about the network"

export const exec: Effect.Effect<Tool, never, AgentSettings | ProcessRunner | SecretStore | Workspace | GitAccess> =
  Effect.gen(function* () {
    const settings = yield* AgentSettings
    const git = yield* GitAccess
    const processes = yield* ProcessRunner
    const secrets = yield* SecretStore
    const workspace = yield* Workspace
    const worktrees = yield* Worktrees
    const shell = yield* Effect.sync(() => (existsSync("/bin/bash") ? "/bin/bash" : "/bin/sh"))
    const decode = decodeInput(Input)
    return {
      llm: llmView(
        "choir.exec",
        "Run a shell command in the workspace. Each call is a new shell; all its processes end with it. After a crash a command may run twice.",
        Input
      ),
      effect: "workspace",
      lanes: "both",
      prepare: Effect.fn("exec.prepare")(function* (raw, lane) {
        // Where people are asked, a command without a network is free, and one with it acts outside.
        const asks = settings.current().config.approvals.confirm_external !== "never"
        const input = yield* decode(raw)
        const { command, network = !asks, timeout_ms = EXEC_TIMEOUT_MS } = input
        const online = network || !processes.cutsNetwork
        const tree = lane === undefined ? undefined : worktrees.of(lane)
        const folders = execFolders(workspace, { ...input, tree }, processes.limitsWrites)
        const named = commandFiles(workspace, command, input.cwd ?? tree ?? "")
        let shown: UsedFiles | undefined
        return {
          ...(asks && processes.endsAll ? { compares: { foreign: online } } : {}),
          effect: asks && online ? "external" : "workspace",
          // Taken once a person is asked, and compared under the lock of the run.
          files: Effect.map(named, (now) => {
            shown = now
            return now
          }),
          locks: folders.locks,
          besideJobs: folders.besideJobs && !online,
          timeout_ms: timeout_ms + PROCESS_GRACE_MS + processes.turnMs,
          run: Effect.fnUntraced(
            function* ({ call_id, compares = false, network: mayReachNetwork }) {
              if (online && !mayReachNetwork) return refusal({ message: NOT_ASKED })
              const other = shown === undefined ? undefined : changedFile(shown, yield* named)
              if (other !== undefined) return refusal({ message: changed(other) })
              const { env, scrub } = yield* git.forCall(call_id)
              const started = {
                command: shell,
                args: ["-c", command],
                ...(yield* folders.open),
                timeout_ms,
                env,
                offline: !online
              }
              const leave = yield* watchSendFolder(workspace, command.includes(SEND_FOLDER))
              const look = compares ? yield* watchTree(workspace) : undefined
              const result = yield* processes.run(call_id, started)
              const files = look === undefined ? {} : yield* look(result)
              const outcome = yield* leave(
                outcomeOf(result, timeout_ms, folders.words, (text) => secrets.scrub(scrub(text)))
              )
              return yield* keepWholeOutput(workspace, { ...fromNetwork(outcome, online), files })
            },
            Effect.scoped,
            Effect.catch((error) => Effect.succeed(refusal(error)))
          )
        }
      })
    }
  })
