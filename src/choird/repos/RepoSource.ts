/** The url and ref of a repository as config.json names it, checked before git sees either (D23). */
import { createHash } from "node:crypto"
import { Result, Schema } from "effect"
import type { GitCredential } from "#src/shared/git/gitCredential.ts"

/** A git url of config.json. */
const REPO_URL_CHARS_MAX = 2048
/** A git ref of config.json. */
const REPO_REF_CHARS_MAX = 200

/** A repository in config.json. `ref` is a branch, else a tag, or a full commit id. */
export interface RepoSource {
  readonly url: string
  readonly ref: string
}

/** A url or ref that is refused. `url` is shown without credentials. */
export class InvalidRepoSource extends Schema.TaggedError<InvalidRepoSource>()("InvalidRepoSource", {
  url: Schema.String,
  ref: Schema.String,
  problem: Schema.String
}) {
  override get message() {
    return `the repository ${this.url} at ref ${this.ref} cannot be used: ${this.problem}. Correct it in config.json`
  }
}

/** A source that is safe as an argument of git. Only {@link checkSource} makes one. */
export interface CheckedSource {
  readonly url: string
  readonly ref: string
  readonly transport: "https" | "ssh" | "file"
  /** The credential for the other side, from `RepoAccess`. */
  readonly credential?: GitCredential
}

const HOST = String.raw`(?:[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9a-fA-F:.]+\])`
const USER = String.raw`(?:[A-Za-z0-9_][A-Za-z0-9._-]*@)?`
// No blanks, control or invisible characters, and no start that a program on the other side would take for an option.
const PATH = String.raw`(?![-:])[^\s\p{C}?#]+`
const HTTPS = new RegExp(String.raw`^https://${HOST}(?::\d{1,5})?/${PATH}$`, "u")
const SSH = new RegExp(String.raw`^ssh://${USER}${HOST}(?::\d{1,5})?/${PATH}$`, "u")
const SCP = new RegExp(String.raw`^${USER}${HOST}:(?!//)${PATH}$`, "u")
const LOCAL = /^\/[^\p{C}]*$/u
/** As `git check-ref-format` has it; no blanks of other languages, nothing invisible, and no start that looks like an option or a folder. */
const REF = /^(?!@$)(?!.*(?:\.\.|\/\/|\/\.|@\{|\.lock(?:\/|$)))[^\s\p{C}~^:?*[\\/.-][^\s\p{C}~^:?*[\\]*(?<![./])$/u

const transportOf = (url: string): CheckedSource["transport"] | undefined => {
  if (LOCAL.test(url)) return "file"
  if (HTTPS.test(url)) return "https"
  return SSH.test(url) || (!url.includes("://") && SCP.test(url)) ? "ssh" : undefined
}

const urlProblem = (url: string) => {
  if (url === "") return "its url is empty"
  if (url.length > REPO_URL_CHARS_MAX) return `its url is longer than ${REPO_URL_CHARS_MAX} characters`
  if (/^https:\/\/[^/]*@/u.test(url)) return "credentials do not belong in config.json: use an ssh url and a key"
  return "allowed are https://host/path, ssh://host/path, user@host:path and the absolute path of a local repository"
}

/** A url as it may be printed: no credentials, no control characters, not endless. */
const shown = (text: string) =>
  text
    .replaceAll(/\/\/[^/]*@/gu, "//")
    .replaceAll(/\p{C}/gu, "?")
    .slice(0, REPO_REF_CHARS_MAX)

export const checkSource = ({ url, ref }: RepoSource): Result.Result<CheckedSource, InvalidRepoSource> => {
  const refuse = (problem: string) =>
    Result.fail(new InvalidRepoSource({ url: shown(url) || "(empty)", ref: shown(ref) || "(empty)", problem }))
  const transport = url.length > REPO_URL_CHARS_MAX ? undefined : transportOf(url)
  if (transport === undefined) return refuse(urlProblem(url))
  if (ref.length > REPO_REF_CHARS_MAX || !REF.test(ref)) return refuse("its ref is not a branch, tag or full commit id")
  return Result.succeed({ url, ref, transport })
}

/** Whether the ref is itself a commit, so that what was fetched once never changes. */
export const isCommit = (ref: string): boolean => /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/u.test(ref)

/** The name a fetched source has in the cache. It covers url and ref, so that a changed url never shows the old repository. */
export const cacheRef = ({ url, ref }: CheckedSource): string =>
  `refs/choir/${createHash("sha256").update(`${url}\0${ref}`).digest("hex").slice(0, 32)}`
