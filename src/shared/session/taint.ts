/**
 * What strangers wrote, and where it goes (D31). A lane that saw it is tainted; so is the workspace once such a lane may have written there,
 * and from then on every lane that reads it.
 */
import type { OpenCall, SessionState } from "./State.ts"

/** The tools of Choir's own that read the workspace. A tool of the image may read whatever it likes. */
const READERS: ReadonlySet<string> = new Set(["choir.exec", "choir.fs.read", "choir.fs.search"])
const WRITERS: ReadonlySet<string> = new Set(["choir.exec", "choir.fs.write"])

const nameOf = ({ name }: OpenCall): string => name.replaceAll("-", ".")

const isOfImage = (name: string): boolean => !name.startsWith("choir.")

export const readsWorkspace = (call: OpenCall): boolean => isOfImage(nameOf(call)) || READERS.has(nameOf(call))

const writesWorkspace = (call: OpenCall): boolean =>
  call.effect !== "none" && (isOfImage(nameOf(call)) || WRITERS.has(nameOf(call)))

/** With the mark that a call of a tainted lane leaves on the workspace, from the moment at which it may begin to write. */
export const withWriteOf = (state: SessionState, call: OpenCall, isTainted: boolean): SessionState =>
  isTainted && !state.workspace_tainted && writesWorkspace(call) ? { ...state, workspace_tainted: true } : state
