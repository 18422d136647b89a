/**
 * The settings and variables of every git that choird, choirctl or an agent starts by itself, so that no repository has a program run. git in the
 * commands of agents is theirs and has none of them.
 */
import { SSH_OPTIONS } from "./gitCredential.ts"

export type Setting = readonly [key: string, value: string]

/** A transport, with every program that git starts for it. */
export type Transport = "https" | "ssh" | "file"

/**
 * Whatever git would run, or ask somebody by, that a setting without a name in its middle decides. What has one, such as a filter, comes from
 * the repository alone: {@link programsOff}.
 */
export const SAFE_SETTINGS: ReadonlyArray<Setting> = [
  ["core.hooksPath", "/dev/null"],
  ["core.fsmonitor", "false"],
  ["core.attributesFile", "/dev/null"],
  ["core.alternateRefsCommand", ":"],
  ["core.pager", "cat"],
  ["core.editor", ":"],
  ["sequence.editor", ":"],
  ["core.askPass", ""],
  ["core.gitProxy", ""],
  ["credential.helper", ""],
  ["diff.external", ""],
  ["interactive.diffFilter", ""],
  ["init.templateDir", ""],
  ["commit.gpgSign", "false"],
  ["tag.gpgSign", "false"],
  ["log.showSignature", "false"],
  ["submodule.recurse", "false"],
  ["gc.auto", "0"],
  ["gc.recentObjectsHook", ""],
  ["maintenance.auto", "false"]
]

/** Settings as git takes them on its command line, where a key may hold no `=`. */
export const asArguments = (settings: ReadonlyArray<Setting>): ReadonlyArray<string> =>
  settings.flatMap(([key, value]) => ["-c", `${key}=${value}`])

/** Settings as git takes them from its environment, with any key. Programs that git starts have them as well. */
export const asVariables = (settings: ReadonlyArray<Setting>): Readonly<Record<string, string>> =>
  Object.fromEntries([
    ["GIT_CONFIG_COUNT", String(settings.length)],
    ...settings.flatMap(([key, value], index) => [
      [`GIT_CONFIG_KEY_${index}`, key],
      [`GIT_CONFIG_VALUE_${index}`, value]
    ])
  ])

interface SafeOptions {
  /** The only one that may be used. Without it, none: an object that is missing stays so, whatever the repository promises. */
  readonly transport?: Transport | undefined
  /** A file instead of the user's configuration. */
  readonly globalConfig?: string | undefined
}

/** Variables that bind git, and all programs that it starts, where a setting would not. */
export const safeVariables = ({ globalConfig, transport }: SafeOptions = {}): Readonly<Record<string, string>> => ({
  LC_ALL: "C",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: globalConfig ?? "/dev/null",
  GIT_ATTR_NOSYSTEM: "1",
  GIT_TERMINAL_PROMPT: "0",
  GIT_NO_LAZY_FETCH: "1",
  GIT_NO_REPLACE_OBJECTS: "1",
  // The same as protocol.allow=never with one exception, and stronger than protocol.<name>.allow of a repository.
  GIT_ALLOW_PROTOCOL: transport ?? "none",
  GIT_SSH_COMMAND: `ssh ${SSH_OPTIONS}`
})

/** The keys of a repository's configuration that {@link programsOff} has to know, as `git config --get-regexp` takes them. */
export const NAMED_KEYS = "^(filter|merge|diff|hook|include|includeif)\\."

/** Programs of one repository that are switched off; more are refused. */
const NAMED_PROGRAMS_MAX = 64

export type ProgramsOff =
  | { readonly type: "off"; readonly settings: ReadonlyArray<Setting> }
  | { readonly type: "refused"; readonly why: string }

/**
 * The settings that switch off the filters, merge drivers, text conversions and, from git 2.54 on, the hooks that a repository configures. Nothing can be said about
 * configuration that it includes: which files count depends on the branch and the folder that git comes to.
 *
 * @param keys those of its configuration that match {@link NAMED_KEYS}.
 */
export const programsOff = (keys: ReadonlyArray<string>): ProgramsOff => {
  if (keys.some((key) => /^include(?:if)?\./u.test(key)))
    return { type: "refused", why: "the repository's configuration includes other files: remove include and includeIf" }
  const named = (kind: string) => [
    ...new Set(keys.flatMap((key) => new RegExp(`^${kind}\\.(.+)\\.[^.]+$`, "su").exec(key)?.[1] ?? []))
  ]
  const [filters, drivers, diffs, hooks] = [named("filter"), named("merge"), named("diff"), named("hook")]
  if (filters.length + drivers.length + diffs.length + hooks.length > NAMED_PROGRAMS_MAX)
    return {
      type: "refused",
      why: `the repository configures more than ${NAMED_PROGRAMS_MAX} filters, merge drivers, kinds of diff and hooks: remove some`
    }
  const settings: ReadonlyArray<Setting> = [
    ...filters.flatMap((name): ReadonlyArray<Setting> => [
      [`filter.${name}.smudge`, ""],
      [`filter.${name}.clean`, ""],
      [`filter.${name}.process`, ""],
      [`filter.${name}.required`, "false"]
    ]),
    // A driver that fails leaves a conflict, which a person looks at.
    ...drivers.map((name): Setting => [`merge.${name}.driver`, "false"]),
    ...diffs.flatMap((name): ReadonlyArray<Setting> => [
      [`diff.${name}.command`, ""],
      [`diff.${name}.textconv`, ""]
    ]),
    // `core.hooksPath` is for hooks in files. Of a command the last value counts, where git does not know the other key.
    ...hooks.flatMap((name): ReadonlyArray<Setting> => [
      [`hook.${name}.enabled`, "false"],
      [`hook.${name}.command`, ":"]
    ])
  ]
  return { type: "off", settings }
}
