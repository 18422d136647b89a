/** Which locks exclude each other, written once more and without a look at the code (D26), to judge the code by. */
import type { LaneId } from "#schema/Ids.ts"
import { EDGE } from "#schema/Ids.ts"
import type { LockRequest } from "#schema/Tool.ts"

export interface Holding {
  readonly lane: LaneId
  readonly locks: ReadonlyArray<LockRequest>
}

const reaches = (outer: string, inner: string): boolean =>
  outer === inner ||
  (outer === "workspace" && inner.startsWith("file:")) ||
  (outer.startsWith("file:") && inner.startsWith(`${outer}/`))

/** Edge may read single files while a job holds the whole workspace; it is told that they may be half changed. */
const isDirtyRead = (reader: Holding, read: LockRequest, writer: Holding, write: LockRequest): boolean =>
  reader.lane === EDGE &&
  reader.locks.every(({ mode, resource }) => mode === "S" && resource.startsWith("file:")) &&
  read.mode === "S" &&
  writer.lane !== EDGE &&
  write.resource === "workspace"

export const excludes = (a: Holding, b: Holding): boolean =>
  a.locks.some((x) =>
    b.locks.some(
      (y) =>
        (x.mode === "X" || y.mode === "X") &&
        (reaches(x.resource, y.resource) || reaches(y.resource, x.resource)) &&
        !isDirtyRead(a, x, b, y) &&
        !isDirtyRead(b, y, a, x)
    )
  )
