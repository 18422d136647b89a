/** The sources of text from outside in a person's words, for cards and for what people look up. */
import type { Source } from "#schema/Source.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"
import { seenText } from "#src/shared/text/seenText.ts"
import { sourceOf } from "./sources.ts"

/** Characters of the name of one source. */
const NAME_CHARS_MAX = 120

const shortName = (name: string): string => {
  const part = firstPart(name, NAME_CHARS_MAX)
  return part.length < name.length ? `${part}…` : part
}

/** Characters of a person's name in their own letters. */
const PERSON_CHARS_MAX = 60
/** Escaped bytes, and at the end one that is cut. */
const ESCAPED = /(?:%[0-9a-f]{2})+/giu
const CUT = /%[0-9a-f]?$|\u{fffd}+$/giu

const unescaped = (name: string): string =>
  name
    .replaceAll(CUT, "")
    .replaceAll(ESCAPED, (bytes) => Buffer.from(bytes.replaceAll("%", ""), "hex").toString("utf8"))
    .replaceAll(CUT, "")

/** A person's name, which they chose: what is more than plain letters stands between quotation marks. */
const personName = (name: string): string => {
  const own = unescaped(name)
  if (own === name) return shortName(name)
  const part = firstPart(own, PERSON_CHARS_MAX)
  return JSON.stringify(seenText(part.length < own.length ? `${part}…` : part))
}

/** By what text comes along. They carry the sources of what they read, and say nothing beside those. */
const CARRIERS: ReadonlySet<string> = new Set(["command", "file", "job", "memory"])

const kindOf = (source: Source): string => source.split(":", 1)[0] ?? source

const isCarrier = (source: Source): boolean =>
  CARRIERS.has(kindOf(source)) && !(source.startsWith("file:") && source !== "file:*")

const NAMED: Readonly<Record<string, (name: string) => string>> = {
  agent: (name) => `the memory of the agent ${shortName(name)}`,
  file: (name) => `a file that ${personName(name)} sent`,
  forward: (name) => `words of ${personName(name)}, forwarded`,
  group: (name) => `${personName(name)} in a group`,
  job: (name) => `the job ${shortName(name)}`,
  mail: (name) => `a mail of ${shortName(name)}`,
  mcp: (name) => `the server ${shortName(name)}`,
  tool: (name) => `the tool ${shortName(name)}`,
  web: (name) => `a page of ${shortName(name)}`
}

const ANY: Readonly<Record<string, string>> = {
  agent: "the memory of other agents",
  file: "files that people sent",
  forward: "words of many people, forwarded",
  group: "many people in groups",
  job: "jobs",
  mail: "many mails",
  mcp: "many servers",
  tool: "many tools",
  web: "pages of many sites"
}

const PLAIN: Readonly<Record<string, string>> = {
  command: "a command with a network",
  file: "a file of the workspace",
  forwarded: "a forwarded message",
  import: "an import",
  memory: "what it remembers of such text",
  notion: "Notion",
  search: "a web search"
}

/** One source, such as `a page of example.org`. */
export const sourceWords = (source: Source): string => {
  const kind = kindOf(source)
  const name = source.slice(kind.length + 1)
  if (name === "") return PLAIN[kind] ?? source
  return (name === "*" ? ANY[kind] : NAMED[kind]?.(name)) ?? source
}

/** One source whose name a person can read to its end: after words that cut it, the source itself. */
export const wholeSourceWords = (source: Source): string => {
  const words = sourceWords(source)
  return words.includes("…") ? `${words} (${source})` : words
}

/** Where text came from: the carriers alone only where nothing else is known. */
export const originsOf = (sources: ReadonlyArray<Source>): ReadonlyArray<Source> => {
  const origins = sources.filter((source) => !isCarrier(source))
  return origins.length === 0 ? sources : origins
}

/** A label of a message before words of somebody else, as choird writes it: what it says of their writer. */
const LABELS: ReadonlyArray<readonly [kind: "forward" | "group", label: RegExp]> = [
  ["forward", /^\[(?:Forwarded by the user from|Sent by the user through) [^"\n]{0,80}("(?:[^"\\\n]|\\.){0,400}")/gmu],
  ["forward", /^\[A reply to [^"\n]{0,80} by [^"\n]{0,80}("(?:[^"\\\n]|\\.){0,400}")/gmu],
  ["group", /^\[Written in a group by ("(?:[^"\\\n]|\\.){0,400}")/gmu]
]

/** The label of a reply to words of the agent or of choird, which may repeat text from outside. */
const OWN_LABEL = /^\[A reply to (?:a part of )?(?:your message|a notice of Choir)/mu

const unquoted = (text: string): string => {
  try {
    return String(JSON.parse(text))
  } catch {
    return text
  }
}

/** The writers of somebody else's words in a message, by the labels that choird put before them; one without any is `forwarded`. */
export const writersOf = (text: string): ReadonlyArray<Source> => {
  const found = LABELS.flatMap(([kind, label]) =>
    Array.from(text.matchAll(label), ([, name = ""]) => sourceOf(kind, unquoted(name)))
  )
  if (found.length > 0) return [...new Set(found)]
  return [OWN_LABEL.test(text) ? "memory" : "forwarded"]
}
