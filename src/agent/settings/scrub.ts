/**
 * Takes secrets out of what a tool printed, in each form in which programs print them (R32): as they are, JSON-escaped, in base64,
 * in hex, and percent-encoded. Base64 is found in the middle of a longer text as well, as in an Authorization header.
 */
import type { Schema } from "effect"

/** A secret, or a form of one, that is shorter cannot be told apart from other text and is not scrubbed. */
const SECRET_FORM_CHARS_MIN = 4
/** A line of a secret of several lines is scrubbed by itself from this length on. */
const SECRET_LINE_CHARS_MIN = 16

const REDACTED = "<redacted>"

/** Whole sextets of base64 that depend on the value alone, with so many other bytes in front of it. */
const base64Core = (bytes: Uint8Array, before: number): string => {
  const text = Buffer.concat([Buffer.alloc(before), bytes]).toString("base64")
  return text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6))
}

const urlSafe = (base64: string): string => base64.replaceAll("+", "-").replaceAll("/", "_")

const jsonEscaped = (value: string): string => JSON.stringify(value).slice(1, -1)

const asciiOnly = (json: string): string =>
  json.replaceAll(/[^\0-\x7f]/gu, (character) =>
    Array.from(
      { length: character.length },
      (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`
    ).join("")
  )

const lowerPercent = (text: string): string => text.replaceAll(/%[0-9A-F]{2}/gu, (code) => code.toLowerCase())

const formsOf = (value: string): ReadonlyArray<string> => {
  const bytes = Buffer.from(value)
  const hex = bytes.toString("hex")
  const percent = encodeURIComponent(value.toWellFormed())
  const form = new URLSearchParams({ "": value }).toString().slice(1)
  const cores = [0, 1, 2].map((before) => base64Core(bytes, before))
  return [
    value,
    jsonEscaped(value),
    // JSON that is quoted in JSON, as the body of a refused request is.
    jsonEscaped(jsonEscaped(value)),
    asciiOnly(jsonEscaped(value)),
    bytes.toString("base64"),
    ...cores.flatMap((core) => [core, urlSafe(core)]),
    hex,
    hex.toUpperCase(),
    percent,
    lowerPercent(percent),
    form,
    lowerPercent(form)
  ]
}

/** The lines of a key file that a program may print alone; the first and the last are the same in all of them. */
const linesOf = (text: string): ReadonlyArray<string> =>
  text.split(/\r?\n/u).filter((line) => line.length >= SECRET_LINE_CHARS_MIN && !line.startsWith("-----"))

/** A file's last line break is not part of a secret, and a secret that holds credentials is `user:password`. */
const partsOf = (secret: string): ReadonlyArray<string> => {
  const trimmed = secret.trim()
  return [secret, trimmed, trimmed.slice(trimmed.indexOf(":") + 1), ...linesOf(trimmed)]
}

/** Longer ones first, so that no part of one is left. */
const allForms = (secrets: ReadonlyArray<string>, chars_min: number): ReadonlyArray<string> =>
  [
    ...new Set(
      secrets
        .flatMap(partsOf)
        .filter(({ length }) => length >= chars_min)
        .flatMap(formsOf)
    )
  ]
    .filter((form) => form.length >= chars_min)
    .sort((a, b) => b.length - a.length)

/** A function that replaces every form of these secrets in a text; what is shorter than `chars_min` is left. */
export const makeScrub = (
  secrets: ReadonlyArray<string>,
  chars_min = SECRET_FORM_CHARS_MIN
): ((text: string) => string) => {
  const forms = allForms(secrets, chars_min)
  return (text) => forms.reduce((left, form) => left.replaceAll(form, REDACTED), text)
}

/** A function that counts the characters at a text's end that may be the beginning of a form. */
export const makeBegun = (
  secrets: ReadonlyArray<string>,
  chars_min = SECRET_FORM_CHARS_MIN
): ((text: string) => number) => {
  const forms = allForms(secrets, chars_min)
  const heads = new Set(forms.map((form) => form.charAt(0)))
  return (text) => {
    const most = Math.min(text.length, (forms[0]?.length ?? 1) - 1)
    for (let chars = most; chars > 0; chars--) {
      if (!heads.has(text.charAt(text.length - chars))) continue
      const end = text.slice(-chars)
      if (forms.some((form) => form.length > chars && form.startsWith(end))) return chars
    }
    return 0
  }
}

const scrubJson = (scrub: (text: string) => string, value: Schema.Json): Schema.Json => {
  if (typeof value === "string") return scrub(value)
  if (typeof value === "number") {
    const text = String(value)
    const scrubbed = scrub(text)
    return scrubbed === text ? value : scrubbed
  }
  if (Array.isArray(value)) return value.map((inner: Schema.Json) => scrubJson(scrub, inner))
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [scrub(key), scrubJson(scrub, inner)]))
}

/** The same for every text, key and number of a JSON value. */
export const makeJsonScrub = (
  secrets: ReadonlyArray<string>,
  chars_min = SECRET_FORM_CHARS_MIN
): ((value: Schema.Json) => Schema.Json) => {
  const scrub = makeScrub(secrets, chars_min)
  const asWritten = allForms(secrets, chars_min).map(jsonEscaped)
  return (value) => {
    // Most values hold none, which one look at the whole tells sooner than one at each of thousands of texts.
    const whole = JSON.stringify(value)
    return asWritten.some((form) => whole.includes(form)) ? scrubJson(scrub, value) : value
  }
}
