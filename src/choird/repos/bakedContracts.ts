/** The schemas and profiles of the repositories as an image has them: below `skills/`, so that its hash of the skills covers them. */
import { Result } from "effect"
import type { JsonSchemaObject } from "#schema/SkillContract.ts"
import type { ToolCapabilities } from "#src/shared/image/builtInTools.ts"
import {
  PINNED_SCHEMA_BYTES_MAX,
  PINNED_SCHEMAS_MAX,
  type PinnedSchemas,
  readPinnedSchema,
  versionProblems
} from "#src/shared/image/pinnedSchemas.ts"
import { PROFILES_FOLDER, PROFILES_MAX, readProfile, SCHEMAS_FOLDER } from "#src/shared/image/skillFile.ts"
import { MANIFEST_BYTES_MAX } from "#src/shared/image/toolManifest.ts"
import { isManifest, type LabelledFiles, textOf, within } from "./repoFiles.ts"
import { type RepoFile, type RepoProblem, shownPath } from "./Tree.ts"

interface Baked {
  readonly files: ReadonlyArray<RepoFile>
  readonly problems: ReadonlyArray<RepoProblem>
  readonly warnings: ReadonlyArray<string>
}

const stemOf = ({ path }: RepoFile) => path.slice(0, -".json".length)

/** The files of a folder that are read, each with its value, and what is wrong with the others. */
const readAll = <A>(
  { files, label }: LabelledFiles,
  folder: "profiles" | "schemas",
  most: number,
  bytesMax: number,
  read: (stem: string, text: string) => Result.Result<A, ReadonlyArray<string>>
) => {
  const found = within(files, folder).filter(isManifest)
  const parsed = found.slice(0, most).map((file) => {
    const text = textOf(file, bytesMax)
    return {
      file,
      stem: stemOf(file),
      value: Result.isFailure(text) ? Result.fail([text.failure]) : read(stemOf(file), text.success)
    }
  })
  const problem = (path: string, reason: string): RepoProblem => ({ repo: label, path: `${folder}/${path}`, reason })
  return {
    problem,
    values: parsed.flatMap(({ file, stem, value }) =>
      Result.isSuccess(value) ? [{ file, stem, value: value.success }] : []
    ),
    problems: [
      ...(found.length > most ? [problem("", `${found.length} files are too many: at most ${most} are allowed`)] : []),
      ...parsed.flatMap(({ file, value }) =>
        Result.isFailure(value) ? value.failure.map((reason) => problem(shownPath(file.path), reason)) : []
      )
    ]
  }
}

/** The schemas of both repositories. A pin means the same everywhere, so that no repository changes that of the other one. */
export const bakedSchemas = (
  global: LabelledFiles,
  agent: LabelledFiles
): { readonly schemas: PinnedSchemas; readonly part: Baked } => {
  const [shared, own] = [global, agent].map((repo) =>
    readAll(repo, "schemas", PINNED_SCHEMAS_MAX, PINNED_SCHEMA_BYTES_MAX, readPinnedSchema)
  ) as [ReturnType<typeof readAll<JsonSchemaObject>>, ReturnType<typeof readAll<JsonSchemaObject>>]
  const known = new Set(shared.values.map(({ stem }) => stem))
  const schemas = new Map([...own.values, ...shared.values].map(({ stem, value }) => [stem, value]))
  const twice = own.values.filter(({ stem }) => known.has(stem))
  return {
    schemas,
    part: {
      files: [...shared.values, ...own.values.filter(({ stem }) => !known.has(stem))].map(({ file }) => ({
        ...file,
        path: `${SCHEMAS_FOLDER}/${file.path}`,
        executable: false
      })),
      problems: [
        ...shared.problems,
        ...own.problems,
        ...twice.map(({ file }) =>
          own.problem(
            shownPath(file.path),
            `${global.label} has this schema: remove it here, or give it another version`
          )
        ),
        ...versionProblems(schemas).map(([pin, reason]) =>
          (known.has(pin) ? shared : own).problem(`${pin}.json`, reason)
        )
      ],
      warnings: []
    }
  }
}

/** The profiles of both repositories; an agent's own replaces the global one of its type. */
export const bakedProfiles = (global: LabelledFiles, agent: LabelledFiles, tools: ToolCapabilities): Baked => {
  const [shared, own] = [global, agent].map((repo) =>
    readAll(repo, "profiles", PROFILES_MAX, MANIFEST_BYTES_MAX, (stem, text) => readProfile(stem, text, tools))
  )
  const kept = new Map([...(shared?.values ?? []), ...(own?.values ?? [])].map(({ file, stem }) => [stem, file]))
  return {
    files: [...kept.values()].map((file) => ({ ...file, path: `${PROFILES_FOLDER}/${file.path}`, executable: false })),
    problems: [...(shared?.problems ?? []), ...(own?.problems ?? [])],
    warnings: []
  }
}
