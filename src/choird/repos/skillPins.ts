/**
 * The file `skills.lock.json` of a repository: for each skill that was added from elsewhere its origin, and the digest of the bytes that a
 * person saw. A build refuses such a skill once a byte of it is another one. Pure.
 */
import { Option, Result, Schema } from "effect"
import { SkillLock, type SkillPin } from "#schema/SkillOffer.ts"
import { bundleDigest } from "./skillBundle.ts"
import { MANIFEST_BYTES_MAX } from "#src/shared/image/toolManifest.ts"
import { digestOf, isHeld, type RepoFile, shownPath } from "./Tree.ts"

export const SKILL_LOCK_FILE = "skills.lock.json"

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(SkillLock), { onExcessProperty: "error" })

/** The pins of a repository's files, or why they cannot be read. */
export const readPins = (files: ReadonlyArray<RepoFile>): Result.Result<SkillLock["skills"], string> => {
  const file = files.find(({ path }) => path === SKILL_LOCK_FILE)
  if (file === undefined) return Result.succeed({})
  if (!isHeld(file) || file.bytes.length > MANIFEST_BYTES_MAX)
    return Result.fail(`larger than ${MANIFEST_BYTES_MAX} bytes`)
  return Option.match(decode(Buffer.from(file.bytes).toString("utf8")), {
    onNone: () =>
      Result.fail("it cannot be read: restore it from an earlier commit, or remove it and add its skills again"),
    onSome: ({ skills }) => Result.succeed(skills)
  })
}

/** The skill that a file belongs to. */
const SKILL = /^skills\/(?:(?<file>[^/]+)\.json$|(?<folder>[^/]+)\/)/u
const skillOf = ({ path }: RepoFile): string | undefined => {
  const { file, folder } = SKILL.exec(path)?.groups ?? {}
  return file ?? folder
}

/** The files of one skill in a repository. */
export const skillFiles = (name: string, files: ReadonlyArray<RepoFile>): ReadonlyArray<RepoFile> =>
  files.filter((file) => skillOf(file) === name)

/** Skills whose files are no longer those that a person saw. */
export const pinProblems = (files: ReadonlyArray<RepoFile>): ReadonlyArray<string> =>
  Result.match(readPins(files), {
    onFailure: (problem) => [problem],
    onSuccess: (pins) => {
      // Once for all pins: there may be thousands of each.
      const bySkill = Map.groupBy(files, skillOf)
      return Object.entries(pins).flatMap(([name, { from, sha256 }]) => {
        const own = bySkill.get(name) ?? []
        const found = bundleDigest(own.map((file) => ({ ...file, sha256: digestOf(file) })))
        return found === sha256
          ? []
          : [
              `skills/${name} is not what was added from ${shownPath(from)}: add it again with choirctl skill add, or remove "${name}" from this file to make it your own`
            ]
      })
    }
  })

/** The text of the file with a skill's pin. */
export const withPin = (pins: SkillLock["skills"], name: string, pin: SkillPin): string => {
  const skills = Object.entries({ ...pins, [name]: pin }).sort(([a], [b]) => (a < b ? -1 : 1))
  return `${JSON.stringify({ skills: Object.fromEntries(skills) }, undefined, 2)}\n`
}
