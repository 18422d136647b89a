/** Facts about the names of new tools and skills, for the person who approves them. Pure. */
import type { RepoFile } from "#src/choird/repos/Tree.ts"
import { BUILT_IN_SKILLS } from "#src/shared/image/builtInSkills.ts"
import { BUILT_IN_TOOLS } from "#src/shared/image/builtInTools.ts"
import { lookAlike, looksOwn } from "#src/shared/image/lookAlike.ts"
import { visibleLine } from "./approvalText.ts"

/** Facts that are given. */
const FACTS_MAX = 10

type Files = ReadonlyArray<Pick<RepoFile, "path">>

const KINDS = [
  { kind: "tool", own: BUILT_IN_TOOLS, path: /^tools\/([^/]+)\.json$/u },
  {
    kind: "skill",
    own: BUILT_IN_SKILLS.map(({ name }) => name),
    path: /^skills\/(?:([^/]+)\.json|([^/]+)\/SKILL\.md)$/u
  }
] as const

const namesIn = (files: Files, path: RegExp): ReadonlySet<string> =>
  new Set(
    files.flatMap((file) => {
      const [, name, folder] = path.exec(file.path) ?? []
      return name ?? folder ?? []
    })
  )

/**
 * Lines about each name that is in `after` and not in `before`: what it is easily taken for.
 *
 * @param global the files of the repository that all agents share.
 */
export const nameFacts = (global: Files, before: Files, after: Files): ReadonlyArray<string> =>
  KINDS.flatMap(({ kind, own, path }) => {
    const [shared, old, fresh] = [namesIn(global, path), namesIn(before, path), namesIn(after, path)]
    return [...fresh]
      .filter((name) => !old.has(name))
      .flatMap((name) => {
        const other = lookAlike(name, [...own, ...shared, ...fresh])
        const shown = `The name of the ${kind} ${visibleLine(name)}`
        if (other !== undefined)
          return [`${shown} is easily taken for ${visibleLine(other)}, which is another ${kind}.`]
        return kind === "tool" && looksOwn(name) && !own.includes(name)
          ? [`${shown} begins like those of Choir's own tools, and is not one of them.`]
          : []
      })
  }).slice(0, FACTS_MAX)
