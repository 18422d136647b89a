/**
 * The files of messages to people, between the agent that left them and the channel that takes them. choird's own copies are in the home's
 * folder `outgoing`, named by their row of the outbox, so that whatever happens in the workspace meanwhile, the same bytes go out.
 */
import { mkdirSync } from "node:fs"
import { open as openFile, readdir, readFile, rm, stat } from "node:fs/promises"
import { join } from "node:path"
import { Context, Effect, Layer, Semaphore } from "effect"
import { SEND_FOLDER, SENT_COPIES, type SentFile } from "#schema/SentFile.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import type { Outgoing } from "#src/choird/queues/Outbox.ts"
import { BoundedMap } from "#src/shared/boundedMap.ts"
import { copyOut, removeSent } from "./copyOut.ts"
import { fileKind } from "./fileKind.ts"
import { type MediaKind, mediaKind } from "./mediaKind.ts"
import { sentName } from "./sentName.ts"

/** Bytes of all copies together; what has no room is copied when its turn comes. */
const OUTGOING_BYTES_MAX = 2 * 1024 * 1024 * 1024
/** Bytes at the beginning of a file that say what it is. */
const HEAD_BYTES = 64 * 1024
/** Ended messages that are remembered, so that no copy is made for them after their end. */
const ENDED_MAX = 1000

/** A copy that can be sent. */
export interface ReadyFile {
  readonly name: string
  readonly kind: MediaKind
  readonly bytes: number
  readonly read: Effect.Effect<Uint8Array>
}

type Row = Pick<Outgoing, "outbox_id" | "agent_id" | "form">

export class OutgoingFiles extends Context.Service<
  OutgoingFiles,
  {
    /** Copies the files of a message that are not copied yet. A file that cannot be copied is left out. */
    stage(row: Row): Effect.Effect<void>
    /** Each file of a message, ready to be sent, or `undefined` where there is no true copy. */
    ready(row: Row): Effect.Effect<ReadonlyArray<ReadyFile | undefined>>
    /** Ends a message: its copies go, and once it was delivered so does what its tool left for sending. */
    end(row: Row, delivered: boolean): Effect.Effect<void>
    /** Removes the copies of all messages but these. */
    keepOnly(outbox_ids: ReadonlyArray<string>): Effect.Effect<void>
  }
>()("choir/choird/OutgoingFiles") {
  static readonly layer = Layer.effect(
    OutgoingFiles,
    Effect.suspend(() => make)
  )
}

const filesOf = ({ form }: Row): ReadonlyArray<SentFile> => form?.files?.items ?? []

/** A promise whose failure is the same as nothing. */
const orNothing = <A>(work: () => Promise<A>): Effect.Effect<A | undefined> =>
  Effect.tryPromise(work).pipe(
    Effect.catch((error) =>
      Effect.as(
        Effect.logWarning("copying, reading or removing a file of an outgoing message failed", error),
        undefined
      )
    )
  )

const headOf = async (place: string): Promise<Uint8Array> => {
  const file = await openFile(place)
  try {
    const head = Buffer.alloc(HEAD_BYTES)
    const { bytesRead } = await file.read(head, 0, HEAD_BYTES, 0)
    return head.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

const make = Effect.gen(function* () {
  const store = yield* ConfigStore
  const lifecycle = yield* Lifecycle
  const folder = join(store.home, "outgoing")
  const one = yield* Semaphore.make(1)
  const ended = new BoundedMap<string, true>(ENDED_MAX)
  const placeOf = ({ outbox_id }: Row, index: number) => join(folder, `${outbox_id}-${index}`)

  const workspaceOf = Effect.fnUntraced(function* ({ agent_id, form }: Row) {
    const view = (yield* lifecycle.list).find((found) => found.agent_id === agent_id)
    const { workspaces } = view?.started_with ?? (yield* store.current).config
    const name = form?.files?.workspace ?? ""
    return Object.hasOwn(workspaces, name)
      ? Object.entries(workspaces).find(([known]) => known === name)?.[1].path
      : undefined
  })

  const taken = async (): Promise<number> => {
    const names = await readdir(folder).catch(() => [])
    const sizes = await Promise.all(
      names.map((name) =>
        stat(join(folder, name)).then(
          ({ size }) => size,
          () => 0
        )
      )
    )
    return sizes.reduce((sum, size) => sum + size, 0)
  }

  const isThere = (place: string) =>
    stat(place).then(
      () => true,
      () => false
    )

  const stage = Effect.fn("OutgoingFiles.stage")(function* (row: Row) {
    if (ended.has(row.outbox_id)) return
    const workspace = yield* workspaceOf(row)
    if (workspace === undefined) return
    yield* orNothing(async () => {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      for (const [index, file] of filesOf(row).entries()) {
        if (await isThere(placeOf(row, index))) continue
        if ((await taken()) + file.bytes <= OUTGOING_BYTES_MAX) await copyOut(workspace, file, placeOf(row, index))
      }
    })
  }, one.withPermit)

  const ready = (row: Row) =>
    Effect.forEach(filesOf(row), (file, index) =>
      orNothing(async (): Promise<ReadyFile | undefined> => {
        const place = placeOf(row, index)
        if (!(await isThere(place))) return undefined
        const { mime } = fileKind(await headOf(place), file.path)
        return {
          name: sentName(file.path),
          kind: mediaKind(mime, file),
          bytes: file.bytes,
          read: Effect.promise(() => readFile(place))
        }
      })
    )

  const end = Effect.fn("OutgoingFiles.end")(function* (row: Row, delivered: boolean) {
    if (filesOf(row).length === 0) return
    ended.set(row.outbox_id, true)
    const workspace = delivered ? yield* workspaceOf(row) : undefined
    yield* orNothing(async () => {
      for (const [index, file] of filesOf(row).entries()) {
        await rm(placeOf(row, index), { force: true })
        if (workspace === undefined) continue
        await removeSent(workspace, `${SENT_COPIES}/${file.sha256}`, file)
        if (file.path.startsWith(`${SEND_FOLDER}/`)) await removeSent(workspace, file.path, file)
      }
    })
  }, one.withPermit)

  const keepOnly = Effect.fn("OutgoingFiles.keepOnly")(function* (outbox_ids: ReadonlyArray<string>) {
    const kept = new Set(outbox_ids)
    yield* orNothing(async () => {
      for (const name of await readdir(folder).catch(() => []))
        if (!kept.has(name.split("-", 1)[0] ?? "")) await rm(join(folder, name), { force: true })
    })
  }, one.withPermit)

  return OutgoingFiles.of({ stage, ready, end, keepOnly })
})
