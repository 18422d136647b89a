/**
 * The problems of a tool's manifest, reported all at once by path and with what to do. One rule for the agent, which refuses
 * to start with such a tool, and for the build of an image, the check of a configuration and a proposal.
 */
import { Option, Result, Schema } from "effect"
import { SecretName } from "#schema/Ids.ts"
import { PROPOSE, ToolLlmView, ToolManifest, ToolRuntimeView } from "#schema/Tool.ts"
import { decoderProblems, type Problem, problemText } from "#src/shared/config/configProblems.ts"
import { plainReason } from "#src/shared/config/plainReason.ts"
import { syntaxProblem } from "#src/shared/text/jsonSyntax.ts"
import { nearestWord } from "#src/shared/text/nearestWord.ts"
import { repeatedKeys } from "#src/shared/config/jsonKeys.ts"
import { decodeBounded, depthProblem } from "./boundedJson.ts"
import { BUILT_IN_TOOLS } from "./builtInTools.ts"
import { grantProblems } from "./freeArguments.ts"
import { lockKey, LOCKSET_LOCKS_MAX } from "./lockKey.ts"
import { toolSchemaProblems } from "./toolSchema.ts"

/** The folders below `tools/` of an image; an agent's own tool overrides a global one of its name. */
export type ToolScope = "global" | "agent"

/**
 * The path of a tool's executable inside its folder `tools/<scope>`, or `undefined` when `exec_path` leaves that folder. It may be
 * written as in the image (`/choir/tools/<scope>/x`) or relative to the folder (`x`). One rule for choird, which bakes it, and for the agent,
 * which runs it.
 */
export const toolExecutable = (scope: ToolScope, exec_path: string): string | undefined => {
  const root = `/choir/tools/${scope}/`
  const path = exec_path.startsWith(root) ? exec_path.slice(root.length) : exec_path
  const clean = path.split("/").every((part) => part !== "" && part !== "." && part !== "..")
  return clean && !/\p{C}/u.test(path) ? path : undefined
}

/** A tool manifest or a skill file. */
export const MANIFEST_BYTES_MAX = 256 * 1024

/** A manifest without a mistake. */
export interface CheckedManifest {
  readonly manifest: ToolManifest
  /** The executable's path inside its folder `tools/<scope>`. */
  readonly executable: string
}

/** More than these of one file help nobody. */
const MANIFEST_PROBLEMS_MAX = 20
const PROBLEM_CHARS_MAX = 400

/** A problem quotes the file, which may hold what moves a cursor or hides. */
const printable = (problem: Problem): string =>
  problemText(problem)
    .replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, "?")
    .slice(0, PROBLEM_CHARS_MAX)
    .toWellFormed()

const decode = decodeBounded(ToolManifest)

/** The keys that the object at a dotted path may have. */
const keysAt = (path: string): ReadonlyArray<string> => {
  if (path === "") return ["llm", "runtime"]
  if (path === "llm") return Object.keys(ToolLlmView.fields)
  return path === "runtime" ? Object.keys(ToolRuntimeView.fields) : ["resource", "mode"]
}

const unknownKey = (path: string): string => {
  const dot = path.lastIndexOf(".")
  const key = path.slice(dot + 1)
  const meant = nearestWord(key, keysAt(path.slice(0, Math.max(dot, 0))))
  return `${JSON.stringify(key)} is not a known key${meant === undefined ? "" : `; did you mean ${meant}?`}`
}

/** A decoder's message as a person would say it. */
const plain = ({ path, reason }: Problem): Problem => ({
  path,
  reason: reason === "an unknown key" || reason.startsWith("an unknown key, ") ? unknownKey(path) : plainReason(reason)
})

/** The value of a JSON text, or the line on which a parser stopped. */
const parse = (text: string): Result.Result<unknown, string> => {
  if (text.trim() === "") return Result.fail("the file is empty: it must be JSON")
  return Result.try({
    try: () => JSON.parse(text) as unknown,
    catch: () => syntaxProblem(text)
  })
}

type Json = Readonly<Record<string, unknown>>

const objectAt = (value: unknown, key: string): Json => {
  const found = isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
  return isObject(found) ? found : {}
}

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)

const lockProblems = (locks: unknown): ReadonlyArray<Problem> => {
  if (!Array.isArray(locks)) return []
  if (locks.length > LOCKSET_LOCKS_MAX)
    return [{ path: "runtime.locks", reason: `a tool may take at most ${LOCKSET_LOCKS_MAX} locks` }]
  return locks.flatMap((lock: unknown, index) => {
    const resource = isObject(lock) ? lock["resource"] : undefined
    if (typeof resource !== "string" || resource === "") return []
    const key = lockKey(resource)
    return Result.isFailure(key) ? [{ path: `runtime.locks.${index}.resource`, reason: key.failure.message }] : []
  })
}

/** The problems that no decoder finds, in the parts of a manifest that are there: a mistake elsewhere in the file hides none of these. */
const meaningProblems = (scope: ToolScope, value: unknown): ReadonlyArray<Problem> => {
  const { input_schema, name } = objectAt(value, "llm")
  const { exec_path, locks } = objectAt(value, "runtime")
  return [
    ...(typeof name === "string" && (name === PROPOSE || BUILT_IN_TOOLS.includes(name))
      ? [{ path: "llm.name", reason: `a built-in tool has the name ${name}: choose another` }]
      : []),
    ...(isObject(input_schema) ? [...toolSchemaProblems(input_schema), ...grantProblems(input_schema)] : []).map(
      ({ path, reason }) => ({
        path: path === "" ? "llm.input_schema" : `llm.input_schema.${path}`,
        reason
      })
    ),
    ...lockProblems(locks),
    ...(typeof exec_path === "string" && exec_path !== "" && toolExecutable(scope, exec_path) === undefined
      ? [
          {
            path: "runtime.exec_path",
            reason: `it leaves the folder tools/${scope}: write <file>, or /choir/tools/${scope}/<file>`
          }
        ]
      : [])
  ]
}

/** The parts that other files have to fit, as far as they can be read: a mistake elsewhere in the manifest hides none of them. */
export interface ManifestParts {
  readonly name: string | undefined
  readonly executable: string | undefined
  readonly secret_resources: ReadonlyArray<readonly [index: number, name: SecretName]>
}

const isToolName = Schema.is(ToolLlmView.fields.name)
const isSecretName = Schema.is(SecretName)

export const manifestParts = (scope: ToolScope, text: string): ManifestParts => {
  const value = Result.getOrUndefined(parse(text))
  const { name } = objectAt(value, "llm")
  const { exec_path, secret_resources } = objectAt(value, "runtime")
  const secrets: ReadonlyArray<unknown> = Array.isArray(secret_resources) ? secret_resources : []
  return {
    name: isToolName(name) ? name : undefined,
    executable: typeof exec_path === "string" && exec_path !== "" ? toolExecutable(scope, exec_path) : undefined,
    secret_resources: secrets.flatMap((secret, index) => (isSecretName(secret) ? [[index, secret] as const] : []))
  }
}

/** The manifest of a file's text, or each of its problems on a line. */
export const readToolManifest = (
  scope: ToolScope,
  text: string
): Result.Result<CheckedManifest, ReadonlyArray<string>> => {
  const bytes = Buffer.byteLength(text)
  if (bytes > MANIFEST_BYTES_MAX) return Result.fail([`larger than ${MANIFEST_BYTES_MAX} bytes`])
  const value = parse(text)
  if (Result.isFailure(value)) return Result.fail([value.failure])
  const deep = depthProblem(value.success)
  if (deep !== undefined) return Result.fail([deep])
  const decoded = decode(value.success, bytes)
  const problems = [
    ...repeatedKeys(text).map((path) => ({ path: path.join("."), reason: "duplicate key: remove one" })),
    ...(Result.isFailure(decoded) ? decoderProblems([decoded.failure.message]).map(plain) : []),
    ...meaningProblems(scope, value.success)
  ]
  if (Result.isFailure(decoded) || problems.length > 0)
    return Result.fail(problems.slice(0, MANIFEST_PROBLEMS_MAX).map(printable))
  const manifest = decoded.success
  return Result.succeed({ manifest, executable: toolExecutable(scope, manifest.runtime.exec_path) ?? "" })
}

const decodeRaw = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ runtime: Schema.Record(Schema.String, Schema.Unknown) }))
)

/** The keys of a manifest's text that nothing follows from: `network: false` where nothing keeps the tool off the network. */
export const idleManifestKeys = (text: string, cutsNetwork: boolean): ReadonlyArray<string> =>
  Option.match(decodeRaw(text), {
    onNone: () => [],
    onSome: ({ runtime }) => (runtime["network"] === false && !cutsNetwork ? ["network"] : [])
  })
