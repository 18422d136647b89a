/**
 * A skill that a site offers by the index `/.well-known/agent-skills/index.json` (Agent Skills Discovery 0.2.0). Its bytes have to have the digest
 * that the index names, and nothing else is fetched: no redirect is followed.
 */
import { createHash } from "node:crypto"
import { Effect, Option, Schema } from "effect"
import { SKILL_BUNDLE_BYTES_MAX, type SkillFile } from "#schema/SkillOffer.ts"
import { isLoopback } from "#schema/Transport.ts"
import { failed, usageError } from "#src/choirctl/terminal/failure.ts"
import { safeLine } from "#src/choirctl/terminal/text.ts"
import { hostOf } from "#src/shared/wire/hostPort.ts"
import { plainFetch } from "#src/shared/wire/plainFetch.ts"

/** The folder of a site in which the index is. */
export const WELL_KNOWN = "/.well-known/agent-skills"
const INDEX_BYTES_MAX = 1024 * 1024
/** One request and its answer. */
const FETCH_MS = 20_000
/** Skills of an index that a refusal names. */
const NAMED_MAX = 20

const Entry = Schema.Struct({
  name: Schema.String.check(Schema.isMaxLength(64)),
  type: Schema.String.check(Schema.isMaxLength(64)),
  url: Schema.String.check(Schema.isMaxLength(2048)),
  digest: Schema.String.check(Schema.isPattern(/^sha256:[0-9a-f]{64}$/u))
})
const Index = Schema.Struct({ skills: Schema.Array(Entry).check(Schema.isMaxLength(1000)) })
const decodeIndex = Schema.decodeUnknownOption(Schema.fromJsonString(Index))

const unreachable = (url: URL, reason: string) =>
  failed("UNREACHABLE", `${safeLine(url.href)} cannot be read: ${reason}`, "check the address, then add it again")

const addressOf = (text: string, base?: URL) =>
  Option.liftThrowable((given: string) => new URL(given, base))(text).pipe(
    Option.filter((url) => {
      const isSafe = url.protocol === "https:" || (url.protocol === "http:" && isLoopback(hostOf(url)))
      return isSafe && url.username === "" && url.password === ""
    })
  )

const bodyOf = async (url: URL, bytesMax: number): Promise<Uint8Array | string> => {
  const response = await plainFetch(url, { signal: AbortSignal.timeout(FETCH_MS) })
  if (response.status !== 200) return `it answers with status ${response.status}`
  const parts: Array<Uint8Array> = []
  let bytes = 0
  for await (const part of response.body ?? []) {
    bytes += part.length
    if (bytes > bytesMax) return `it has more than ${bytesMax} bytes`
    parts.push(part)
  }
  return Buffer.concat(parts)
}

const read = Effect.fnUntraced(function* (url: URL, bytesMax: number) {
  const answer = yield* Effect.tryPromise({
    try: () => bodyOf(url, bytesMax),
    catch: (error) => unreachable(url, error instanceof Error ? error.message : "the request failed")
  })
  return typeof answer === "string" ? yield* unreachable(url, answer) : answer
})

const badAddress = (text: string) =>
  usageError(`${safeLine(text)} cannot be used`, `name https://<host>${WELL_KNOWN}, without credentials`)

/** The one skill that is meant, as its files. */
export const wellKnownSkill = Effect.fn("choirctl.wellKnownSkill")(function* (
  address: string,
  wanted: string | undefined
) {
  const index = addressOf(address.endsWith("/index.json") ? address : `${address.replace(/\/+$/u, "")}/index.json`)
  if (Option.isNone(index)) return yield* badAddress(address)
  const listed = decodeIndex(Buffer.from(yield* read(index.value, INDEX_BYTES_MAX)).toString("utf8"))
  if (Option.isNone(listed)) return yield* unreachable(index.value, "it is not a version 0.2.0 index of skills")
  const { skills } = listed.value
  const found = skills.filter(({ name }) => wanted === undefined || name === wanted)
  const [only, ...more] = found
  if (only === undefined || more.length > 0) {
    const names = skills.slice(0, NAMED_MAX).map(({ name }) => safeLine(name))
    return yield* usageError(
      wanted === undefined ? `it has ${skills.length} skills` : `it has no skill ${wanted}`,
      `choose one with --skill: ${names.join(", ")}`
    )
  }
  if (only.type !== "skill-md")
    return yield* failed(
      "BAD_SKILL",
      `${safeLine(only.name)} is an ${safeLine(only.type)}, which choirctl does not unpack`,
      "add it from its git repository or its folder"
    )
  const url = addressOf(only.url, index.value)
  if (Option.isNone(url)) return yield* badAddress(only.url)
  const bytes = Buffer.from(yield* read(url.value, SKILL_BUNDLE_BYTES_MAX))
  const digest = createHash("sha256").update(bytes).digest("hex")
  if (`sha256:${digest}` !== only.digest)
    return yield* failed(
      "BAD_SKILL",
      `${safeLine(url.value.href)} has the digest ${digest}, but its index names another one`,
      "ask its author, or try later"
    )
  const file: SkillFile = { path: "SKILL.md", executable: false, base64: bytes.toString("base64") }
  return { from: url.value.href, files: [file] }
})
