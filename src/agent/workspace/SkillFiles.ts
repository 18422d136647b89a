/**
 * The files that a lane may read: those of the workspace, and, while it is in a skill, those of the skill's own folder in the image. Reading is all
 * that there is, and the same walk without links as in the workspace.
 */
import { Context, Effect, Layer, Result } from "effect"
import { pathInside } from "#src/shared/image/workspacePath.ts"
import { PathRefused } from "./PathRefused.ts"
import { Workspace } from "./Workspace.ts"

/** Where skills name their files, whatever the image's folder really is. */
const SKILLS_PATH = "/choir/skills"

export type ReadableFiles = Pick<Workspace["Service"], "read" | "list" | "folder">

/** The image's folder `skills`; `undefined` where there is none. */
export const SkillFiles = Context.Reference<ReadableFiles | undefined>("choir/agent/workspace/SkillFiles", {
  defaultValue: () => undefined
})

/** `choir` is the image's folder. */
export const layerSkillFiles = (choir: string): Layer.Layer<never> =>
  Layer.effectContext(
    Layer.build(Workspace.layer({ root: `${choir}/skills` })).pipe(
      Effect.map((built) => Context.make(SkillFiles, Context.get(built, Workspace))),
      Effect.orElseSucceed(() => Context.make(SkillFiles, undefined))
    )
  )

/** Whether a path is one of the files of skills. */
export const isSkillPath = (path: string): boolean => path === SKILLS_PATH || path.startsWith(`${SKILLS_PATH}/`)

/** The path below the folder of all skills that is in a skill's own, or why there is none. */
const ownPath = (path: string, skill: string): Result.Result<string, PathRefused> => {
  const inside = pathInside(path.slice(SKILLS_PATH.length + 1))
  return inside !== undefined && inside.split("/")[0] === skill
    ? Result.succeed(inside)
    : Result.fail(new PathRefused({ path, reason: "outside" }))
}

/** The same files under the paths by which skills name them. */
const shownAsSkills = (files: ReadableFiles): ReadableFiles => {
  const shown = <A extends { readonly path: string }>(found: A): A => ({
    ...found,
    path: `${SKILLS_PATH}/${found.path}`
  })
  return {
    read: (path) => Effect.map(files.read(path), shown),
    list: files.list,
    folder: (path) => Effect.map(files.folder(path), shown)
  }
}

/**
 * The files that a lane in the skill `skill` may read. A relative path that the workspace does not have is looked for in the skill's folder, since a
 * SKILL.md names its references that way.
 */
export const readableFiles = (
  workspace: ReadableFiles,
  skills: ReadableFiles | undefined,
  skill: string | undefined
): ReadableFiles => {
  if (skills === undefined || skill === undefined) return workspace
  const own = shownAsSkills(skills)
  const look =
    <A, R>(
      inWorkspace: (path: string) => Effect.Effect<A, PathRefused, R>,
      inSkill: (path: string) => Effect.Effect<A, PathRefused, R>
    ) =>
    (path: string): Effect.Effect<A, PathRefused, R> => {
      if (isSkillPath(path)) return Effect.flatMap(Effect.fromResult(ownPath(path, skill)), inSkill)
      const relative = path.startsWith("/") ? undefined : pathInside(path)
      return relative === undefined || relative === ""
        ? inWorkspace(path)
        : Effect.catchIf(
            inWorkspace(path),
            ({ reason }) => reason === "not_found",
            (missing) =>
              Effect.mapError(inSkill(`${skill}/${relative}`), (error) =>
                error.reason === "not_found" ? missing : error
              )
          )
    }
  return {
    read: look(workspace.read, own.read),
    list: look(workspace.list, own.list),
    folder: look(workspace.folder, own.folder)
  }
}
