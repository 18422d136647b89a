/** The agent's programs, command line and environment, the same for every runtime of the host (docs/protocol.md, Starting an agent). */
import { dirname, join } from "node:path"
import { Effect, Redacted, Schema } from "effect"
import { TRIAL_FLAG } from "#schema/ContainedTrial.ts"
import { isTimeZone } from "#schema/TimeZone.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"
import { CgroupName } from "./Cgroups.ts"
import { type AgentEndpoint, CA_FILE, ContainerError, type ContainerSpec } from "./ContainerRuntime.ts"
import { accessSync, constants, existsSync, realpathSync } from "node:fs"
import { packageFolder } from "#src/shared/files/packageFolder.ts"
import { APART, CACHE, CODE, MAIL, MAIL_READER } from "#src/shared/program/compiledProgram.ts"

/** The time zone that agents live in: choird's, which is its host's unless config.json or TZ says otherwise. Asked at each start, since a host may move. */
export const hostTimeZone = (): string | undefined => {
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions()
  // An agent without a name lives in the time zone of its sandbox.
  return isTimeZone(timeZone) ? timeZone : undefined
}

/**
 * `cache` is the code as V8 compiled it, `vocabulary` what counts tokens, `mail` the clients of mail servers, `mailReader` the program that reads
 * one mail, and `apart` runs commands apart from each other and without a network; an agent can run without any of them.
 */
const SUFFIXES = {
  code: CODE,
  cache: CACHE,
  vocabulary: ".o200k",
  mail: MAIL,
  mailReader: MAIL_READER,
  apart: APART
} as const

export type ProgramPart = keyof typeof SUFFIXES

export const PROGRAM_PARTS = Object.keys(SUFFIXES) as ReadonlyArray<ProgramPart>

export const partOf = (program: string, part: ProgramPart): string => program.replace(/\.js$/u, SUFFIXES[part])

/** The parts that exist, by their names. */
export const partsOf = (program: string): Readonly<Partial<Record<ProgramPart, string>>> =>
  Object.fromEntries(
    PROGRAM_PARTS.map((part) => [part, partOf(program, part)] as const).filter(([, path]) => existsSync(path))
  )

/** Real paths of this host. */
export interface AgentPrograms {
  readonly node: string
  readonly program: string
  readonly rg: string
}

/** A program that this installation lacks. */
export class ProgramMissing extends Schema.TaggedError<ProgramMissing>()("ProgramMissing", {
  program: Schema.String,
  hint: Schema.String
}) {
  override get message() {
    return `${this.program} is missing: ${this.hint}`
  }
}

const BUNDLE = join(packageFolder, "dist", "choir-agent.js")

const readable = (path: string, hint: string) =>
  Effect.try({
    try: () => {
      accessSync(path, constants.R_OK)
      return realpathSync(path)
    },
    catch: () => new ProgramMissing({ program: path, hint })
  })

/** The programs of this installation, looked up at each start of an agent, since a build may come between. */
export const agentPrograms: Effect.Effect<AgentPrograms, ProgramMissing> = Effect.gen(function* () {
  const { rgPath } = yield* Effect.tryPromise({
    try: () => import("@vscode/ripgrep"),
    catch: () => new ProgramMissing({ program: "ripgrep", hint: "install Choir again, with its optional dependencies" })
  })
  return {
    node: realpathSync(process.execPath),
    program: yield* readable(BUNDLE, "npm run build"),
    rg: yield* readable(rgPath, "install Choir again, with its optional dependencies")
  }
})

/** Whether commands of agents can be kept from every network here, which takes a program of this installation. */
export const cutsNetwork = (): boolean => existsSync(partOf(BUNDLE, "apart"))

/** The old generation of an agent's heap, in MiB: several times what the largest session keeps alive (R66). */
const AGENT_HEAP_MIB_MAX = 512
/** Half of the young generation of an agent's heap, in MiB. */
const AGENT_SEMI_SPACE_MIB_MAX = 16
/** Freed memory at the end of an agent's C heap that is not given back to the system at once, in bytes. */
const AGENT_FREED_BYTES_MAX = 128 * 1024

/** The paths that an agent is given: host paths, or those of a sandbox. */
export interface AgentPaths {
  readonly node: string
  readonly program: string
  readonly socket: string
  readonly workspace: string
  readonly choir: string
  readonly rg: string
}

/** The flags by which the agent reaches choird. */
const controlPlane = (socket: string, endpoint: AgentEndpoint | undefined): ReadonlyArray<string> => {
  if (endpoint === undefined) return ["--control-plane=uds", `--socket=${socket}`]
  const trusted = endpoint.pinned ? [`--ca=${dirname(socket)}/${CA_FILE}`] : []
  return ["--control-plane=http", `--endpoint=${endpoint.url}`, ...trusted]
}

/** Node, its flags, the bundle and the agent's flags. Nothing in it is secret: every user of the host can read it. */
export const agentCommand = (
  paths: AgentPaths,
  endpoint: AgentEndpoint | undefined,
  flags: ReadonlyArray<string>
): ReadonlyArray<string> => [
  paths.node,
  // SIGUSR1 would open an inspector to any process that can signal the agent (D13).
  "--disable-sigusr1",
  // V8 lets garbage grow with the room it is given; an agent lives on far less (R66).
  `--max-old-space-size=${AGENT_HEAP_MIB_MAX}`,
  `--max-semi-space-size=${AGENT_SEMI_SPACE_MIB_MAX}`,
  paths.program,
  ...controlPlane(paths.socket, endpoint),
  `--workspace=${paths.workspace}`,
  `--choir=${paths.choir}`,
  `--rg=${paths.rg}`,
  ...flags
]

/** The flags of the agent's program that say what it does. */
export const taskFlags = ({ trial = false }: Pick<ContainerSpec, "trial">): ReadonlyArray<string> =>
  trial ? [TRIAL_FLAG] : []

/** By this variable Node also trusts the authorities of the machine's store, such as an operator's own. */
const USE_SYSTEM_CA = "NODE_USE_SYSTEM_CA"

/** The whole environment of an agent. Of choird's own it has the one word that says which authorities are trusted. */
export const agentEnvironment = (
  spec: ContainerSpec,
  path: string,
  time_zone: string | undefined = hostTimeZone(),
  trust: string | undefined = process.env[USE_SYSTEM_CA]
): Readonly<Record<string, string>> => ({
  AGENT_ID: spec.agent_id,
  CHOIR_SESSION_ID: spec.session_id,
  CHOIR_BOOTSTRAP_TOKEN: Redacted.value(spec.bootstrap_token),
  PATH: path,
  HOME: "/tmp",
  LANG: "C.UTF-8",
  // A container has no clock settings of its host, and "today" would be another day for hours.
  ...(time_zone === undefined ? {} : { TZ: time_zone }),
  ...(trust === "1" ? { [USE_SYSTEM_CA]: trust } : {}),
  // What starting took is given back: glibc would keep a quarter of an idle agent's memory for later, in a pool for each thread.
  MALLOC_ARENA_MAX: "1",
  MALLOC_TRIM_THRESHOLD_: String(AGENT_FREED_BYTES_MAX)
})

/** The characters of the home's part in a group's name. */
const HOME_CHARS = 8

/**
 * The group of this start, the same for each runtime, so that either can reap the other's. A copy of a home has the same sessions and epochs, so that
 * the name has a part of the home, whose folder the socket is in.
 */
export const cgroupOf = ({ epoch, session_id, socket_dir }: ContainerSpec): CgroupName =>
  CgroupName.make(`choir-${session_id}${sha256(socket_dir).slice(0, HOME_CHARS)}-${epoch}`)

/**
 * Why a spec is refused, or `undefined`. A path with a NUL would end an argument early and begin another, and one that is not
 * absolute would mean something else after a change of folder.
 */
export const specError = (spec: ContainerSpec): ContainerError | undefined => {
  const paths = [spec.image, spec.program, spec.node, spec.rg, spec.socket_dir, spec.workspace]
  const odd = paths.find((path) => !path.startsWith("/") || path.includes("\0"))
  const token = Redacted.value(spec.bootstrap_token)
  const { cpus, memory_mb, pids } = spec.limits
  const limited = [cpus, memory_mb, pids].every((limit) => Number.isFinite(limit) && limit > 0)
  const problem =
    odd !== undefined
      ? `${JSON.stringify(odd)} is not an absolute path`
      : !/^[\x21-\x7e]+$/u.test(token)
        ? "the bootstrap token is not printable ASCII"
        : limited
          ? undefined
          : "cpus, memory_mb and pids must be positive numbers"
  return problem === undefined
    ? undefined
    : new ContainerError({ reason: "refused", problem, fix: "Correct config.json, then start the agent again" })
}
