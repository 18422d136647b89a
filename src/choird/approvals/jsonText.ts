/** Changes one place of a JSON text and leaves the rest as its owner wrote it. Pure. */
import { isDeepStrictEqual } from "node:util"

type Path = ReadonlyArray<string>

interface Member {
  readonly key: string
  /** Where the key begins, and where its value does and ends. */
  readonly at: number
  readonly from: number
  readonly to: number
}

const SPACE = /[ \t\n\r]*/y
const STRING = /"(?:[^"\\]|\\.)*"/y
const SCALAR = /[^\s,\]}]+/y

const match = (pattern: RegExp, text: string, at: number): number => {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : at
}
const blank = (text: string, at: number) => match(SPACE, text, at)

/** The members of the object whose brace is at `at`, and where it ends. The text is known to be JSON. */
const readObject = (text: string, at: number): { readonly members: ReadonlyArray<Member>; readonly end: number } => {
  const members: Array<Member> = []
  let next = blank(text, at + 1)
  while (text[next] === '"') {
    const keyEnd = match(STRING, text, next)
    const from = blank(text, blank(text, keyEnd) + 1)
    const to = valueEnd(text, from)
    members.push({ key: String(JSON.parse(text.slice(next, keyEnd))), at: next, from, to })
    next = blank(text, to)
    if (text[next] === ",") next = blank(text, next + 1)
  }
  return { members, end: next + 1 }
}

const arrayEnd = (text: string, at: number): number => {
  let next = blank(text, at + 1)
  while (text[next] !== "]" && next < text.length) {
    next = blank(text, valueEnd(text, next))
    if (text[next] === ",") next = blank(text, next + 1)
  }
  return next + 1
}

const valueEnd = (text: string, at: number): number => {
  if (text[at] === "{") return readObject(text, at).end
  if (text[at] === "[") return arrayEnd(text, at)
  return match(text[at] === '"' ? STRING : SCALAR, text, at)
}

const nested = (path: Path, value: unknown): unknown =>
  path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value)

/** Of equal keys the last one counts, as in every parser. */
const memberOf = (members: ReadonlyArray<Member>, key: string) => members.findLast((member) => member.key === key)

const insert = (text: string, at: number, members: ReadonlyArray<Member>, key: string, value: unknown): string => {
  const entry = `${JSON.stringify(key)}: ${JSON.stringify(value)}`
  const last = members.at(-1)
  if (last === undefined) return `${text.slice(0, at + 1)} ${entry} ${text.slice(at + 1).trimStart()}`
  const before = members.at(-2)
  const gap = text.slice(before === undefined ? at + 1 : text.indexOf(",", before.to) + 1, last.at)
  return `${text.slice(0, last.to)},${gap}${entry}${text.slice(last.to)}`
}

const remove = (text: string, at: number, members: ReadonlyArray<Member>, member: Member): string => {
  const index = members.indexOf(member)
  const previous = members[index - 1]
  const following = members[index + 1]
  if (previous !== undefined) return text.slice(0, previous.to) + text.slice(member.to)
  return following === undefined
    ? text.slice(0, at + 1) + text.slice(member.to)
    : text.slice(0, member.at) + text.slice(following.at)
}

const editAt = (text: string, at: number, path: Path, value: unknown): string => {
  const [key = "", ...rest] = path
  const { members } = readObject(text, at)
  const member = memberOf(members, key)
  if (member === undefined) return value === undefined ? text : insert(text, at, members, key, nested(rest, value))
  if (rest.length > 0 && text[member.from] === "{") return editAt(text, member.from, rest, value)
  if (value === undefined) return remove(text, at, members, member)
  return text.slice(0, member.from) + JSON.stringify(nested(rest, value)) + text.slice(member.to)
}

const isTable = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The value with one place changed; `undefined` removes it. */
const edited = (value: unknown, [key = "", ...rest]: Path, to: unknown): unknown => {
  const table = isTable(value) ? value : {}
  const inner = rest.length === 0 ? to : edited(table[key], rest, to)
  const others = Object.entries(table).filter(([name]) => name !== key || inner !== undefined)
  return Object.fromEntries(inner === undefined ? others : [...others, [key, inner]])
}

/** What is at a place, `undefined` where nothing is. */
export const valueAt = (value: unknown, path: Path): unknown =>
  path.reduce<unknown>((inner, key) => (isTable(inner) && Object.hasOwn(inner, key) ? inner[key] : undefined), value)

/**
 * @param text a JSON object.
 * @param value what is to stand at `path`; `undefined` removes it.
 */
export const editJson = (text: string, path: Path, value: unknown): string => {
  const wanted = edited(JSON.parse(text), path, value)
  const begin = blank(text, 0)
  const written = text[begin] === "{" ? editAt(text, begin, path, value) : text
  return isDeepStrictEqual(JSON.parse(written), wanted) ? written : `${JSON.stringify(wanted, undefined, 2)}\n`
}
