/** Secrets that can be recognised wherever they turn up, and the forms in which programs write them (R32). */
import { makeRandom } from "../history.ts"

export interface Canary {
  /** The name in secrets.json. */
  readonly name: string
  /** What secrets.json has. */
  readonly value: string
  /** What must not show: all of the value that is not public. */
  readonly needle: string
}

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
/** What a path of a url may hold as it is. */
const PLAIN = `${LETTERS}-_`
/** What a header may hold. */
const HEADER = `${PLAIN}+/=.~%`
/** What every encoding writes in another way, so that its form is not the plain one. */
const HARD = ['"', "\\", "%", "é", "+", "&"]

type Random = ReturnType<typeof makeRandom>

const text = (random: Random, from: string, length: number) =>
  Array.from({ length }, () => from[Math.floor(random() * from.length)]).join("")

/** Random, with each hard character somewhere inside. */
const hard = (random: Random) => HARD.map((character) => `${text(random, HEADER, 6)}${character}`).join("") + "z9"

/** One that stands for a whole key file: only the last whole line of an OpenSSH key is private from its first character on. */
export const sshCanary = (name: string, key: string): Canary => ({
  name,
  value: key,
  needle: key.trimEnd().split("\n").at(-3) ?? ""
})

/** Those of one run: the same for the same seed. `planted` is none of the installation's. */
export const makeCanaries = (seed: number) => {
  const random = makeRandom(seed)
  const whole = (name: string, value: string): Canary => ({ name, value, needle: value })
  const header = (name: string) => whole(name, `sk-${text(random, HEADER, 40)}`)
  const password = (name: string, user: string, secret: string): Canary => ({
    name,
    value: `${user}:${secret}`,
    needle: secret
  })
  return {
    used: {
      edge: header("edge-key"),
      core: header("core-key"),
      fallback: header("fallback-key"),
      replaced: header("edge-key"),
      telegram: whole("bot-token", `1000:${text(random, PLAIN, 35)}`),
      otlp: header("otlp-token"),
      https: password("git-https", "bot", hard(random))
    },
    /** The password of a database, as a url has it. */
    database: text(random, LETTERS, 32),
    notion: ["notion-a", "notion-b"].map((name) => whole(name, hard(random))),
    email: ["email-a", "email-b", "email-c"].map((name) => password(name, "post@example.org", hard(random))),
    tts: ["tts-a", "tts-b"].map((name) => header(name)),
    search: ["search-a", "search-b"].map((name) => header(name)),
    embedding: ["embedding-a"].map((name) => header(name)),
    models: ["model-a", "model-b", "model-c", "model-d", "model-e"].map((name) => header(name)),
    git: ["git-a", "git-b", "git-c", "git-d"].map((name) => password(name, "bot", hard(random))),
    spare: Array.from({ length: 12 }, (_, index) => whole(`spare-${index}`, hard(random))),
    planted: whole("planted", hard(random))
  }
}

/** All of a run's that any file may have, the model's key first; the ones called as another is are left out. */
export const allCanaries = (seed: number): ReadonlyArray<Canary> => {
  const { database: _, planted: __, used, ...others } = makeCanaries(seed)
  return [...Object.values(used), ...Object.values(others).flat()].filter(
    ({ name }, at, all) => all.findIndex((other) => other.name === name) === at
  )
}

/** Whole sextets of base64 that depend on the text alone, with so many other bytes in front of it. */
const sextets = (bytes: Buffer, before: number): string => {
  const encoded = Buffer.concat([Buffer.alloc(before), bytes])
    .toString("base64")
    .replaceAll("=", "")
  return encoded.slice(Math.ceil((before * 4) / 3), Math.floor(((before + bytes.length) * 4) / 3))
}

const json = (value: string) => JSON.stringify(value).slice(1, -1)

/** By the name of each form. */
export const formsOf = (needle: string): Readonly<Record<string, string>> => {
  const bytes = Buffer.from(needle)
  const percent = encodeURIComponent(needle)
  return {
    plain: needle,
    "base64, alone or after 3n bytes": sextets(bytes, 0),
    "base64, after 3n + 1 bytes": sextets(bytes, 1),
    "base64, after 3n + 2 bytes": sextets(bytes, 2),
    "base64 for URLs": sextets(bytes, 0).replaceAll("+", "-").replaceAll("/", "_"),
    hex: bytes.toString("hex"),
    "capital hex": bytes.toString("hex").toUpperCase(),
    "url-encoded": percent,
    "a form's field": new URLSearchParams({ "": needle }).toString().slice(1),
    "JSON-escaped": json(needle),
    "JSON-escaped twice": json(json(needle)),
    "JSON-escaped in ASCII": json(needle).replaceAll("é", "\\u00e9")
  }
}
