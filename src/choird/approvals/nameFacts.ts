/** Facts about the names of new tools and skills, for the person who approves them. Pure. */
import type { RepoFile } from "#src/choird/repos/Tree.ts"
import { BUILT_IN_SKILLS } from "#src/shared/image/builtInSkills.ts"
import { BUILT_IN_TOOLS } from "#src/shared/image/builtInTools.ts"
import { visibleLine } from "./approvalText.ts"

/** Characters and pairs that are hard to tell apart, in the order in which they are replaced. Names have no letters of other alphabets. */
const ALIKE: ReadonlyArray<readonly [RegExp, string]> = [
  [/[._-]/gu, ""],
  [/0/gu, "o"],
  [/[1i]/gu, "l"],
  [/5/gu, "s"],
  [/rn/gu, "m"],
  [/vv/gu, "w"]
]

/** Names that look alike have the same one. */
const skeleton = (name: string): string =>
  ALIKE.reduce((text, [alike, one]) => text.replaceAll(alike, one), name.toLowerCase())

const OWN = skeleton("choir")

/** Whether a name begins like those of Choir's own tools. */
const looksOwn = (name: string): boolean => skeleton(name).startsWith(OWN)

/** The first of the other names for which this one may be taken. */
const lookAlike = (name: string, others: Iterable<string>): string | undefined => {
  const own = skeleton(name)
  for (const other of others) if (other !== name && skeleton(other) === own) return other
  return undefined
}

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
          return [`${shown} is easily mistaken for ${visibleLine(other)}, which is another ${kind}.`]
        return kind === "tool" && looksOwn(name) && !own.includes(name)
          ? [`${shown} begins like the names of Choir's own tools, but it is not one of them.`]
          : []
      })
  }).slice(0, FACTS_MAX)
