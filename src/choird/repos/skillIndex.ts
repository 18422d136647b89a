/** The grades of an image's skills, in the file `skills/_index.json`: what the gate found when the image was built. Pure. */
import { Option, Result, Schema } from "effect"
import { type SkillReport, SkillReport as Report } from "#schema/SkillCheck.ts"
import type { SkillSpec } from "#schema/Skill.ts"
import type { PinnedSchemas } from "#src/shared/image/pinnedSchemas.ts"
import { readSkill } from "#src/shared/image/skillFile.ts"
import { gateReport } from "#src/shared/image/skillGate.ts"
import { type AllToolFacts, BUILT_IN_FACTS, manifestFacts } from "#src/shared/image/toolFacts.ts"
import { MANIFEST_BYTES_MAX, readToolManifest } from "#src/shared/image/toolManifest.ts"
import { textOf } from "./repoFiles.ts"
import type { RepoFile } from "./Tree.ts"

export const SKILL_INDEX = "skills/_index.json"

const Index = Schema.Struct({ skills: Schema.Array(Report) })
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Index))

/** In an image below the scope, in a repository without one. */
const MANIFEST = /^tools\/(?:(global|agent)\/)?[^/]+\.json$/u
const SKILL = /^skills\/([a-z0-9][^/]*)\.json$/u

/** Facts of all tools that an image or repositories with these files have; a later file replaces an earlier one. */
const factsOf = (files: ReadonlyArray<RepoFile>): AllToolFacts =>
  new Map([
    ...BUILT_IN_FACTS,
    ...files.flatMap((file) => {
      const match = MANIFEST.exec(file.path)
      const text = match === null ? undefined : Result.getOrUndefined(textOf(file, MANIFEST_BYTES_MAX))
      if (text === undefined) return []
      const read = readToolManifest(match?.[1] === "global" ? "global" : "agent", text)
      return Result.isFailure(read)
        ? []
        : [[read.success.manifest.llm.name, manifestFacts(read.success.manifest)] as const]
    })
  ])

/** The report of a skill beside the files of repositories, and as it was written. */
export const judge = (
  files: ReadonlyArray<RepoFile>,
  schemas: PinnedSchemas,
  spec: SkillSpec,
  given: unknown
): SkillReport => {
  const written = readSkill(spec.name, JSON.stringify(given))
  const facts = factsOf(files)
  return gateReport(spec, { facts, schemas, ...(Result.isSuccess(written) ? { written: written.success } : {}) })
}

/** The reports of the skills of an image with these files, by name. */
const reportsOf = (files: ReadonlyArray<RepoFile>, schemas: PinnedSchemas): ReadonlyArray<SkillReport> => {
  const facts = factsOf(files)
  return files
    .flatMap((file) => {
      const name = SKILL.exec(file.path)?.[1]
      const text = name === undefined ? undefined : Result.getOrUndefined(textOf(file, MANIFEST_BYTES_MAX))
      if (name === undefined || text === undefined) return []
      const [spec, written] = [readSkill(name, text, { schemas }), readSkill(name, text)]
      return Result.isFailure(spec) || Result.isFailure(written)
        ? []
        : [gateReport(spec.success, { facts, schemas, written: written.success })]
    })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

/** The file, where there is a skill, and a warning for each one that the gate rejects. */
export const skillIndex = (
  files: ReadonlyArray<RepoFile>,
  schemas: PinnedSchemas
): { readonly files: ReadonlyArray<RepoFile>; readonly warnings: ReadonlyArray<string> } => {
  const skills = reportsOf(files, schemas)
  const bytes = Buffer.from(`${JSON.stringify({ skills }, undefined, 2)}\n`)
  const warnings = skills.flatMap(({ grade, name, points }) =>
    grade === "rejected"
      ? points.flatMap(({ detail, ok, point }) =>
          ok || (point !== "machine" && point !== "capabilities")
            ? []
            : [`skills/${name}: the gate rejects it: ${detail}`]
        )
      : []
  )
  return { files: skills.length === 0 ? [] : [{ path: SKILL_INDEX, executable: false, bytes }], warnings }
}

/** The reports of an image's index; none of one that an earlier Choir wrote. */
export const readSkillIndex = (text: string): ReadonlyArray<SkillReport> =>
  Option.match(decode(text), { onNone: () => [], onSome: ({ skills }) => skills })
