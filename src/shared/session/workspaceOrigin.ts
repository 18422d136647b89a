/** The labels that calls leave on the files of a workspace, and those that its files bring to a lane that reads them (D31). */
import type { EventOf } from "#schema/Event.ts"
import type { Source } from "#schema/Source.ts"
import { STAGING_KEY } from "#src/shared/image/lockKey.ts"
import { NO_FILES, sourcesOfAll, withFileLabels } from "./fileLabels.ts"
import { sourceOf, withSources } from "./sources.ts"
import type { LaneMemory, OpenCall, SessionState } from "./State.ts"

/** The tools of Choir's own that read the workspace. A tool of the image may read whatever it likes. */
const READERS: ReadonlySet<string> = new Set([
  "choir.exec",
  "choir.fs.read",
  "choir.fs.edit",
  "choir.fs.search",
  "choir.fs.find"
])
/** A mail's attachments are files too. */
const WRITERS: ReadonlySet<string> = new Set(["choir.exec", "choir.fs.write", "choir.fs.edit", "choir.email.receive"])

const nameOf = ({ name }: Pick<OpenCall, "name">): string => name.replaceAll("-", ".")

const isOfImage = (name: string): boolean => !name.startsWith("choir.")

/** Whether a call that has run may have read the workspace. */
export const readsWorkspace = (call: Pick<OpenCall, "name">): boolean =>
  isOfImage(nameOf(call)) || READERS.has(nameOf(call))

/** Whether a call may write the workspace. */
export const writesWorkspace = (call: Pick<OpenCall, "effect" | "name">): boolean =>
  call.effect !== "none" && (isOfImage(nameOf(call)) || WRITERS.has(nameOf(call)))

/** Whether a result is in a file of the workspace too, which the agent keeps also of a call without an effect: all of a long one, or a picture of a page. */
export const isKeptInFile = ({
  artifact_ref,
  pictures = [],
  untrusted
}: Pick<EventOf<"ToolResultCommitted">["payload"], "artifact_ref" | "pictures" | "untrusted">): boolean =>
  artifact_ref !== undefined || (untrusted === true && pictures.length > 0)

/** The origin of a workspace's files as far as it is known. Of those of a workspace that is tainted as a whole nothing more is kept. */
export type WorkspaceOrigin = Pick<
  SessionState,
  "workspace_files" | "workspace_received" | "workspace_sources" | "workspace_tainted"
>

type Written = Pick<WorkspaceOrigin, "workspace_files" | "workspace_sources" | "workspace_tainted">

/** With these files labelled, or all of them where nobody knows which; the same where nothing is new. */
export const withWritten = <O extends Written>(
  origin: O,
  paths: ReadonlyArray<string> | undefined,
  sources: ReadonlyArray<Source>
): O => {
  const { workspace_files, workspace_tainted } = origin
  const files = paths === undefined || workspace_tainted ? undefined : withFileLabels(workspace_files, paths, sources)
  if (files !== undefined) return files === workspace_files ? origin : { ...origin, workspace_files: files }
  if (paths?.length === 0) return origin
  const workspace_sources = withSources(withSources(origin.workspace_sources, sourcesOfAll(workspace_files)), sources)
  return workspace_tainted && workspace_sources === origin.workspace_sources
    ? origin
    : { ...origin, workspace_tainted: true, workspace_sources, workspace_files: NO_FILES }
}

type Writer = Pick<OpenCall, "compares" | "effect" | "name" | "writes">
type Reading = Pick<LaneMemory, "sources" | "tainted">

/** With the mark that a call of a tainted lane leaves on the workspace, from the moment at which it may begin to write. */
export const withWriteOf = <O extends Written>(origin: O, call: Writer, lane: Reading): O =>
  lane.tainted && writesWorkspace(call) && call.compares !== true
    ? withWritten(origin, call.writes, lane.sources)
    : origin

/** The first name of a path: where folders were made for it, the first of them is there or above. */
export const topOf = (path: string): string => path.split("/", 1)[0] ?? path

/**
 * The label of what commands leave outside of the workspace, as in `/tmp`, where no file tool reads and any command does. The workspace has no
 * such path.
 */
const ELSEWHERE = "/tmp"

/** The files that a call that has ended may have written; `undefined` where it may have written any, or an older agent does not say. */
const writtenBy = (
  call: Writer,
  { changed }: EventOf<"ToolResultCommitted">["payload"]
): ReadonlyArray<string> | undefined => {
  if (!writesWorkspace(call)) return changed
  if (call.compares === true) return changed && [...changed, ELSEWHERE]
  return call.writes && (changed ?? call.writes.map(topOf))
}

/** A lane with its calls, as far as labels of the workspace depend on it. */
interface Writing extends Reading {
  readonly calls: ReadonlyArray<WritingCall>
}

interface WritingCall {
  readonly compares?: boolean | undefined
  readonly isRunning: boolean
}

/** Whether nobody knows yet what a call writes. */
export const isPending = ({ compares, isRunning }: WritingCall): boolean => isRunning && compares === true

/** With what running calls of tainted lanes may be writing, which only their results will tell. */
export const withPending = <O extends Written>(origin: O, lanes: ReadonlyArray<Writing>): O =>
  lanes
    .filter(({ calls, tainted }) => tainted && calls.some(isPending))
    .reduce((pending, { sources }) => withWritten(pending, undefined, sources), origin)

/** The lanes of a session with their running calls, without one of them. */
export const lanesWriting = (
  { cores, edge }: Pick<SessionState, "cores" | "edge">,
  but?: OpenCall
): ReadonlyArray<Writing> =>
  [edge, ...cores.values()].map(({ calls, sources, tainted }) => ({
    sources,
    tainted,
    calls: calls
      .filter((call) => call !== but)
      .map(({ compares, stage }) => ({ compares, isRunning: stage === "committed" }))
  }))

/** The same once it has ended, of what its own reading brought as well, and of the file in which a result is kept. */
export const withResultOf = <O extends Written>(
  origin: O,
  call: Writer,
  lane: Reading,
  payload: EventOf<"ToolResultCommitted">["payload"]
): O =>
  lane.tainted && (isKeptInFile(payload) || writesWorkspace(call))
    ? withWritten(origin, writtenBy(call, payload), lane.sources)
    : origin

const FILE: Source = "file"

/** Whether a call works on something below `.choirtmp`. Its locks tell, since the key of a path is the resolved one (D27). */
export const isStaged = ({ locks }: EventOf<"ToolCallRequested">["payload"]): boolean =>
  locks.some(({ resource }) => resource === STAGING_KEY)

/** Whether a call may have read what is below `.choirtmp`: file tools only by a path there, and searches leave it out. */
const readsReceived = (call: Pick<OpenCall, "name" | "staged">): boolean =>
  readsWorkspace(call) && (call.staged === true || isOfImage(nameOf(call)) || nameOf(call) === "choir.exec")

/**
 * The sources of what a call that has run may have read of the workspace, as far as all of it has a label: empty where it is not known that anything in
 * there is from outside. The labels of single files are in the result of the call, whose agent knows what it showed.
 */
export const readSources = (
  {
    workspace_received,
    workspace_sources,
    workspace_tainted
  }: Pick<WorkspaceOrigin, "workspace_received" | "workspace_sources" | "workspace_tainted">,
  call: Pick<OpenCall, "name" | "staged">
): ReadonlyArray<Source> => {
  if (workspace_tainted && readsWorkspace(call)) return withSources([FILE], workspace_sources)
  return workspace_received && readsReceived(call) ? [FILE] : []
}

/** The sources of labelled files, with the word that they are files. */
export const fileSources = (labels: ReadonlyArray<ReadonlyArray<Source>>): ReadonlyArray<Source> =>
  labels.reduce<ReadonlyArray<Source>>((all, sources) => withSources(all, sources), labels.length === 0 ? [] : [FILE])

/** Whether a call is a command with a network, where people are asked about one: what it writes may come from there. */
export const isOnline = (call: Pick<OpenCall, "effect" | "name">): boolean =>
  nameOf(call) === "choir.exec" && call.effect === "external"

/** The running calls that may read any file and write what they read to any other. */
const copying = ({ cores, edge }: Pick<SessionState, "cores" | "edge">, but?: OpenCall): ReadonlyArray<OpenCall> =>
  [edge, ...cores.values()].flatMap(({ calls }) =>
    calls.filter(
      (call) =>
        call !== but &&
        call.stage === "committed" &&
        writesWorkspace(call) &&
        (isOfImage(nameOf(call)) || nameOf(call) === "choir.exec")
    )
  )

/** Whether such a call runs. */
export const isCopying = (state: Pick<SessionState, "cores" | "edge">): boolean => copying(state).length > 0

/**
 * The sources of what running calls of any lane may have copied to any file: their lanes and what they changed get their labels once they end, and
 * others may read the copies before.
 */
export const copiedSources = (
  state: Pick<SessionState, "cores" | "edge">,
  { workspace_files, workspace_received }: WorkspaceOrigin,
  but?: OpenCall
): ReadonlyArray<Source> => {
  const calls = copying(state, but)
  if (calls.length === 0) return []
  const loaded: ReadonlyArray<Source> = calls.some(isOnline) ? ["command"] : []
  return withSources(withSources(workspace_received ? [FILE] : [], sourcesOfAll(workspace_files)), loaded)
}

/** With the files of a message, which are data from outside, labelled with who sent and who wrote them. */
export const withReceived = <O extends Written>(origin: O, message: EventOf<"UserMsg">["payload"]): O => {
  const { attachments, dm, forwarded, received, writers = [] } = message
  if (received !== true || attachments.length === 0) return origin
  const sources = withSources([sourceOf("file", dm)], forwarded === true ? writers : [])
  return withWritten(
    origin,
    attachments.map(({ path }) => path),
    sources
  )
}
