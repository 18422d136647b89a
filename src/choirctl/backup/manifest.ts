/**
 * The format of a backup of a home: a gzipped tar whose first member names its format and whose last one, the manifest, has the
 * size and digest of every other. Pure.
 */
import { Schema } from "effect"
import { AgentId, ResourceName, SecretName, SessionId, Sha256 } from "#schema/Ids.ts"
import { CONFIG_BYTES_MAX } from "#src/shared/config/configFiles.ts"

/** Raised when an older Choir could no longer read the file. */
export const ARCHIVE_FORMAT = 3

export const FORMAT = "format.json"
export const CONFIG = "config.json"
export const CONFIG_SCHEMA = "config.schema.json"
export const DATABASE = "database.gz"
export const SECRETS = "secrets.sealed.json"
export const MANIFEST = "manifest.json"
const SOURCES = "sources"
export const WORKSPACES = "workspaces"
/** The folder of archived sessions, in the home and in the backup. */
export const ARCHIVES = "archive"
const ARCHIVED_SUFFIX = ".jsonl.gz"

const KIB = 1024
const MIB = 1024 * KIB
const GIB = 1024 * MIB
/** The largest member of each kind that is written or read. */
export const FORMAT_BYTES_MAX = 4 * KIB
const MANIFEST_BYTES_MAX = 64 * MIB
const CONFIG_SCHEMA_BYTES_MAX = 4 * MIB
const SECRETS_BYTES_MAX = 2 * CONFIG_BYTES_MAX
const DATABASE_BYTES_MAX = 256 * GIB
export const BUNDLE_BYTES_MAX = 4 * GIB
/** Files, folders and links of all workspaces, and their bytes together. */
export const WORKSPACE_ENTRIES_MAX = 100_000
export const WORKSPACES_BYTES_MAX = 8 * GIB
/** Files of archived sessions, and their bytes together. */
export const ARCHIVED_FILES_MAX = 100_000
export const ARCHIVED_BYTES_MAX = 64 * GIB
/** All members together: a database, the archived sessions, the workspaces and a dozen bundles, each as large as it may be. */
export const MEMBERS_BYTES_MAX = DATABASE_BYTES_MAX + ARCHIVED_BYTES_MAX + WORKSPACES_BYTES_MAX + 12 * BUNDLE_BYTES_MAX
const PATH_CHARS_MAX = 4096

/** The first member. It is read before anything else is believed. */
export const Format = Schema.Struct({ format: Schema.Natural, choir: Schema.String })

// One name of a path: not empty, not a way up, no control characters.
const SEGMENT = String.raw`(?!\.{1,2}(?:/|$))[^/\p{Cc}\p{Cs}]{1,255}`
const RelativePath = Schema.String.check(
  Schema.isPattern(new RegExp(`^${SEGMENT}(?:/${SEGMENT})*$`, "u"), { message: "must be a path below its folder" }),
  Schema.isMaxLength(PATH_CHARS_MAX)
)
/** A checkout in a folder `.git` would bring a configuration and hooks of its own to the repository around it. */
const SourcePath = RelativePath.check(
  Schema.isPattern(/^(?!(?:.*\/)?\.git(?:\/|$))/iu, { message: "must not lead through a folder .git" })
)
/** Whether a path can only lead below the folder that it is joined to, and can be printed. */
export const isRelativePath = Schema.is(RelativePath)

const HomePath = Schema.String.check(Schema.isPattern(/^(?:\/[^/\p{C}]+)+$/u, { message: "must be an absolute path" }))
const Line = Schema.String.check(Schema.isPattern(/^[^\p{C}]{1,256}$/u))
const Branch = Schema.String.check(
  Schema.isPattern(/^(?!.*(?:\.\.|\/\/|\/\.|@\{|\.lock(?:\/|$)))[A-Za-z0-9_][A-Za-z0-9._+@/-]{0,199}(?<![./])$/u)
)
const Commit = Schema.String.check(Schema.isPattern(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/u))

/** A git repository below `sources/`. Without a commit there is nothing to bundle. */
export const Source = Schema.Struct({
  path: SourcePath,
  bare: Schema.Boolean,
  empty: Schema.Boolean,
  /** The checked-out branch, or else commit. */
  head: Schema.Union([Schema.Struct({ branch: Branch }), Schema.Struct({ commit: Commit })]),
  /** The identity that the repository itself sets. */
  user: Schema.Struct({ name: Schema.optionalKey(Line), email: Schema.optionalKey(Line) }),
  /** Files that were changed and not committed, so that they are not in the bundle. */
  uncommitted: Schema.Natural
})
export type Source = typeof Source.Type

export const WorkspaceContents = Schema.Struct({
  name: ResourceName,
  entries: Schema.Natural,
  bytes: Schema.Natural
})
export type WorkspaceContents = typeof WorkspaceContents.Type

/** A member of the tar. The digest of a link is that of its target. */
export const Member = Schema.Struct({
  name: Schema.String,
  type: Schema.Literals(["file", "folder", "link"]),
  /** The permissions of a file; formats 1 and 2 do not list them. */
  mode: Schema.optionalKey(Schema.Natural),
  bytes: Schema.Natural,
  sha256: Sha256
})
export type Member = typeof Member.Type

export const Manifest = Schema.Struct({
  format: Schema.Natural,
  choir: Schema.String,
  created_at: Schema.String,
  /** The home that was backed up, as its operator named it, and its real path. */
  home: HomePath,
  real_home: HomePath,
  database: Schema.Struct({
    engine: Schema.Literals(["embedded", "postgres"]),
    sessions: Schema.Natural,
    events: Schema.Natural
  }),
  secrets: Schema.Struct({
    names: Schema.Array(SecretName),
    /** Whether a passphrase proves the file. */
    sealed: Schema.Boolean,
    /** Whether the values are sealed in it; absent in formats 1 and 2, where a seal always holds them. */
    values: Schema.optionalKey(Schema.Boolean)
  }),
  sources: Schema.Array(Source).check(
    // A repository within another could be made through a link of that one.
    Schema.makeFilter((sources) =>
      sources.every(({ path }, index) =>
        sources.every((other, at) => at === index || !`${other.path}/`.startsWith(`${path}/`))
      )
    )
  ),
  workspaces: Schema.Array(WorkspaceContents),
  /** Archived sessions whose files are in the backup; absent where they were left out, and in format 1. */
  archived: Schema.optionalKey(Schema.Struct({ sessions: Schema.Natural, bytes: Schema.Natural })),
  /** The parts of the home that are not in the file, each in words. */
  left_out: Schema.Array(Schema.String),
  members: Schema.Array(Member)
})
export type Manifest = typeof Manifest.Type

export const bundleName = (path: string): string => `${SOURCES}/${path}.bundle`
export const archivedMember = (agent_id: AgentId, session_id: SessionId): string =>
  `${ARCHIVES}/${agent_id}/${session_id}${ARCHIVED_SUFFIX}`
export const workspaceMember = (name: ResourceName, path: string): string => `${WORKSPACES}/${name}/${path}`

const LIMITS: Readonly<Record<string, number>> = {
  [CONFIG]: CONFIG_BYTES_MAX,
  [CONFIG_SCHEMA]: CONFIG_SCHEMA_BYTES_MAX,
  [DATABASE]: DATABASE_BYTES_MAX,
  [SECRETS]: SECRETS_BYTES_MAX,
  [MANIFEST]: MANIFEST_BYTES_MAX
}

/** A name that a member may have: how large it may be, and whether it may be something other than a file. */
export interface Place {
  readonly bytes_max: number
  readonly in_workspace: boolean
}

const isAgent = Schema.is(AgentId)
const isSession = Schema.is(SessionId)

/** The session that a file in the folder of its agent is the archive of. */
export const archivedSession = (file: string): SessionId | undefined => {
  const id = file.slice(0, -ARCHIVED_SUFFIX.length)
  return file.endsWith(ARCHIVED_SUFFIX) && isSession(id) ? id : undefined
}

const isArchived = (agent_id: string, [file = "", ...more]: ReadonlyArray<string>): boolean =>
  isAgent(agent_id) && more.length === 0 && archivedSession(file) !== undefined

/** The place of a member; undefined for one that no backup of this format has. */
export const placeOf = (name: string): Place | undefined => {
  if (Object.hasOwn(LIMITS, name)) return { bytes_max: LIMITS[name] ?? 0, in_workspace: false }
  if (!isRelativePath(name)) return undefined
  const [top = "", first = "", ...rest] = name.split("/")
  if (top === SOURCES && name.endsWith(".bundle")) return { bytes_max: BUNDLE_BYTES_MAX, in_workspace: false }
  if (top === ARCHIVES && isArchived(first, rest)) return { bytes_max: ARCHIVED_BYTES_MAX, in_workspace: false }
  const isContent = top === WORKSPACES && Schema.is(ResourceName)(first) && rest.length > 0
  return isContent ? { bytes_max: WORKSPACES_BYTES_MAX, in_workspace: true } : undefined
}

/** The data that the secrets are sealed with: if anything else in the file changes, they no longer open. */
export const bound = ({ members, ...rest }: Manifest) => ({
  ...rest,
  members: members.filter(({ name }) => name !== SECRETS)
})
