/**
 * A home knows which one it is and where it stands, so that a copy does not answer the same chats beside the original, and a moved one does not
 * work in the folders of its old place. Both are told apart by the record of the place that was left: a copy's original still has it.
 */
import { randomBytes } from "node:crypto"
import { readFileSync, renameSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Option, Schema } from "effect"

/** The record, in the home itself. */
export const HOME_RECORD = "home.json"

const HomeRecord = Schema.Struct({
  /** Random, and the same for as long as the home is the same. */
  id: Schema.String.check(Schema.isPattern(/^[0-9a-f]{32}$/u)),
  /** The real path at which its choird last ran. */
  path: Schema.String,
  /** The place that it has left, until the next start has followed. */
  moved_from: Schema.optionalKey(Schema.String)
})
export type HomeRecord = typeof HomeRecord.Type

const decodeRecord = Schema.decodeUnknownOption(Schema.fromJsonString(HomeRecord))

/** The record of a home; undefined if it has no readable one. */
export const readHomeRecord = (home: string): HomeRecord | undefined => {
  try {
    return Option.getOrUndefined(decodeRecord(readFileSync(join(home, HOME_RECORD), "utf8")))
  } catch {
    return undefined
  }
}

/** Writes the record whole. Throws what the system says. */
export const writeHomeRecord = (home: string, record: HomeRecord): void => {
  const path = join(home, HOME_RECORD)
  const fresh = `${path}.${randomBytes(6).toString("hex")}`
  writeFileSync(fresh, `${JSON.stringify(record, undefined, 2)}\n`, { mode: 0o600, flag: "wx" })
  renameSync(fresh, path)
}

/** A record for a home that has none, or that is to be one of its own. */
export const newHomeRecord = (home: string): HomeRecord => ({ id: randomBytes(16).toString("hex"), path: home })

/** Where a home stands compared with its record. */
export type HomePlacement =
  | { readonly type: "unrecorded" }
  | { readonly type: "here"; readonly record: HomeRecord }
  /** No such home is left at the place that it knows. */
  | { readonly type: "moved"; readonly record: HomeRecord }
  /** The home that it was copied from is still at its place. */
  | { readonly type: "copied"; readonly record: HomeRecord }

/** Whether two paths are one folder, as below a bind mount. */
const isSameFolder = (one: string, other: string): boolean => {
  const [a, b] = [one, other].map((path) => statSync(path, { throwIfNoEntry: false, bigint: true }))
  return a !== undefined && b !== undefined && a.ino === b.ino && a.dev === b.dev
}

/** @param home its real path. */
export const homePlacement = (home: string): HomePlacement => {
  const record = readHomeRecord(home)
  if (record === undefined) return { type: "unrecorded" }
  if (record.path === home) return { type: "here", record }
  if (readHomeRecord(record.path)?.id !== record.id) return { type: "moved", record }
  return { type: isSameFolder(record.path, home) ? "here" : "copied", record }
}

/** A home that is not where it was, in a sentence; nothing for one that is. */
export const placementProblem = (home: string, placement: HomePlacement): string | undefined => {
  if (placement.type === "moved")
    return `this home was at ${placement.record.path} and is now at ${home}: config.json may still name folders of the old place`
  return placement.type === "copied"
    ? `${home} is a copy of the home at ${placement.record.path}, which is still there: both would answer the same chats`
    : undefined
}

/** The command after which choird starts at the place where the home is now. */
export const placementFix = ({ type }: HomePlacement): string =>
  type === "copied"
    ? "use the original; or make the copy a home of its own: choirctl home accept --copy"
    : "choirctl home accept"
