/**
 * Runs the `git` program on repositories that may be hostile (D23): a fixed argument list without a shell, no configuration but
 * ours, no hook, filter, prompt or helper, one allowed transport a call, and a limit on time and output.
 */
import { Effect, PlatformError, Schema, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { type GitCredential, handedOver } from "./gitCredential.ts"
import { asArguments, SAFE_SETTINGS, safeVariables, type Transport } from "./safeGit.ts"

/** One call of the program git, after which its process group is ended (D42). */
export const GIT_TIMEOUT_MS = 30_000
/** The output limit of a call of git that sets none. */
const GIT_OUTPUT_BYTES_MAX = 64 * 1024
/** The part of git's own words that an error repeats. */
const GIT_REASON_CHARS_MAX = 400
/** From this size on git streams a blob instead of holding it in memory. */
const GIT_BIG_FILE_BYTES = 8 * 1024 * 1024
/** Bytes of the largest file that git may write while it talks to another side, such as the pack of a fetch with all its history. */
export const GIT_WRITTEN_BYTES_MAX = 400 * 1024 * 1024

export class GitMissing extends Schema.TaggedError<GitMissing>()("GitMissing", {}) {
  override get message() {
    return "the program git was not found: install git and see that it is in the PATH of choird"
  }
}

/** A call of git that ended badly. `exit_code` is null when git was ended by a signal or never got that far. */
export class GitFailed extends Schema.TaggedError<GitFailed>()("GitFailed", {
  command: Schema.String,
  kind: Schema.Literals(["exit", "timeout", "output", "process"]),
  exit_code: Schema.NullOr(Schema.Int),
  reason: Schema.String
}) {
  override get message() {
    return `git ${this.command} failed: ${this.reason}`
  }
}

export interface GitCall {
  /** The subcommand first, then its arguments. */
  readonly args: ReadonlyArray<string>
  /** The bare repository that the call works on; without it, `args` name the place. */
  readonly gitDir?: string
  /** The only transport the call may use, and with it every process it starts. Without it, none. */
  readonly transport?: Transport
  /** A file instead of the user's configuration. The one way to tell `git-upload-pack` which folder is safe. */
  readonly globalConfig?: string
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: Uint8Array
  /** The credential for the other side, where that asks. */
  readonly credential?: GitCredential
  /** A file with the `known_hosts` of that credential. */
  readonly knownHosts?: string
  /** Bytes of output that are accepted. */
  readonly outputBytesMax?: number
  /** Bytes of the largest file that a call with a transport may write, {@link GIT_WRITTEN_BYTES_MAX} unless said. */
  readonly writtenBytesMax?: number
  /** How long the call may take, {@link GIT_TIMEOUT_MS} unless said. */
  readonly timeoutMs?: number
}

const SETTINGS = asArguments([
  ...SAFE_SETTINGS,
  ["core.bigFileThreshold", String(GIT_BIG_FILE_BYTES)],
  ["fetch.fsckObjects", "true"],
  // All that is fetched becomes one file, whose size is limited.
  ["fetch.unpackLimit", "1"],
  ["transfer.fsckObjects", "true"]
])

/** The variables that an operator's host needs for keys, proxies and certificates; nothing else of the environment reaches git. */
const PASSED_ON = [
  "PATH",
  "SSH_AUTH_SOCK",
  "HTTPS_PROXY",
  "https_proxy",
  "NO_PROXY",
  "no_proxy",
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
  "GIT_SSL_CAINFO",
  "GIT_SSL_CAPATH"
] as const

/** The git of Debian is built with a library that does not know the common names. */
const trusted = ({ SSL_CERT_DIR, SSL_CERT_FILE }: NodeJS.ProcessEnv) => ({
  ...(SSL_CERT_FILE === undefined ? {} : { GIT_SSL_CAINFO: SSL_CERT_FILE }),
  ...(SSL_CERT_DIR === undefined ? {} : { GIT_SSL_CAPATH: SSL_CERT_DIR })
})

const environment = (call: GitCall) => ({
  ...trusted(process.env),
  ...Object.fromEntries(
    PASSED_ON.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]]))
  ),
  ...safeVariables(call),
  ...call.env
})

/** One line that is safe to print and holds no credentials: what git said of the failure, capped. */
const reasonOf = (stderr: string) => {
  const lines = stderr
    .split("\n")
    .filter((line) => /^(fatal|error|remote|ssh|ERROR|Error loading key|Host key|.*Permission denied)/u.test(line))
  return (lines.length > 0 ? lines : stderr.split("\n"))
    .join("; ")
    .replaceAll(/\/\/[^/@\s]*@/gu, "//")
    .replaceAll(/[\p{C}\s]+/gu, " ")
    .trim()
    .slice(0, GIT_REASON_CHARS_MAX)
}

const failed = (call: GitCall, kind: GitFailed["kind"], reason: string, exit_code: number | null = null) =>
  new GitFailed({ command: call.args[0] ?? "", kind, exit_code, reason })

/**
 * Git has no limit for what another side sends, and finds out how large it was when it is on the disk. A process has one for its files,
 * counted in blocks, which the programs that git starts have as well.
 */
const LIMITED = ["-c", 'ulimit -f "$0" && exec git "$@"'] as const
const BLOCK_BYTES = 512
/** A shell's exit code for a program that it does not find. */
const NOT_FOUND = 127

const commandOf = ({ transport, writtenBytesMax = GIT_WRITTEN_BYTES_MAX }: GitCall, args: ReadonlyArray<string>) =>
  transport === undefined
    ? { program: "git", args }
    : { program: "/bin/sh", args: [...LIMITED, String(Math.ceil(writtenBytesMax / BLOCK_BYTES)), ...args] }

type Output = Stream.Stream<Uint8Array, PlatformError.PlatformError>

const collect = (stream: Output, call: GitCall, bytesMax: number) =>
  Effect.suspend(() => {
    const parts: Array<Uint8Array> = []
    let bytes = 0
    return Stream.runForEach(stream, (part) => {
      bytes += part.length
      parts.push(part)
      return bytes > bytesMax
        ? Effect.fail(failed(call, "output", `more than ${bytesMax} bytes of output`))
        : Effect.void
    }).pipe(Effect.map((): Uint8Array => Buffer.concat(parts)))
  })

/** The beginning of a stream; the rest is read and dropped so that the process does not wait. */
const beginning = (stream: Output) =>
  Stream.runFold(
    stream,
    () => "",
    (text, part) => (text.length > GIT_OUTPUT_BYTES_MAX ? text : text + Buffer.from(part).toString("utf8"))
  )

/**
 * Runs git and lets `consume` read its standard output as it comes. A timeout, an interrupt or a failure of the reader ends its whole
 * process group.
 */
export const readGit = Effect.fn("readGit")(function* <A, E>(
  call: GitCall,
  consume: (output: Output) => Effect.Effect<A, E | PlatformError.PlatformError>
) {
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const { timeoutMs = GIT_TIMEOUT_MS } = call
  const run = Effect.gen(function* () {
    const place = call.gitDir === undefined ? [] : [`--git-dir=${call.gitDir}`]
    const given = call.credential === undefined ? undefined : handedOver(call.credential, call.knownHosts)
    const pipe =
      given === undefined ? {} : { additionalFds: { fd3: { type: "input", stream: Stream.make(given.pipe) } } as const }
    const { args, program } = commandOf(call, [...SETTINGS, ...(given?.settings ?? []), ...place, ...call.args])
    const child = yield* spawner.spawn(
      ChildProcess.make(program, args, {
        ...pipe,
        cwd: "/",
        env: { ...environment(call), ...given?.env },
        extendEnv: false,
        stdin: call.stdin === undefined ? "ignore" : Stream.make(call.stdin),
        // Nothing that git could still tidy up matters: what it was making is thrown away.
        killSignal: "SIGKILL"
      })
    )
    const { out, err, code } = yield* Effect.all(
      { out: consume(child.stdout), err: beginning(child.stderr), code: child.exitCode },
      { concurrency: 3 }
    )
    if (code === NOT_FOUND && program !== "git") return yield* new GitMissing()
    if (code !== 0) return yield* failed(call, "exit", reasonOf(err) || `exit code ${code}`, code)
    return out
  })
  return yield* run.pipe(
    Effect.scoped,
    Effect.catchIf(
      (error) => error instanceof PlatformError.PlatformError,
      (error) =>
        Effect.fail(
          error.reason._tag === "NotFound" ? new GitMissing() : failed(call, "process", reasonOf(error.message))
        )
    ),
    Effect.timeoutOrElse({
      duration: timeoutMs,
      orElse: () => Effect.fail(failed(call, "timeout", `it did not finish within ${timeoutMs / 1000} s`))
    })
  )
})

/** Runs git and gives its standard output, which is capped. */
export const runGit = (call: GitCall) =>
  readGit(call, (output) => collect(output, call, call.outputBytesMax ?? GIT_OUTPUT_BYTES_MAX))
