/**
 * The thread of the embedded database, so that a long statement never stalls choird. Its messages: one
 * {@link WorkerReport} when the database is open or cannot be; then it takes a port for each new connection, and "close".
 * On a port travel the bytes of the wire protocol; the worker answers each chunk with {@link TAKEN} once it has read it.
 */
import { type MessagePort, parentPort, workerData } from "node:worker_threads"
import { openPglite } from "./pglite.ts"
import { PostgresBridge } from "./PostgresBridge.ts"
import { TAKEN, type WorkerOptions, type WorkerOrder, type WorkerReport } from "./workerProtocol.ts"
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { constants } from "node:os"
import { dirname, join, resolve } from "node:path"
import { gunzipSync } from "node:zlib"

const BLOCK_BYTES = 512
const NAME_BYTES = 100
const SIZE_OFFSET = 124
const SIZE_BYTES = 12
const TYPE_OFFSET = 156
const FOLDER = "5"

const text = (bytes: Buffer, at: number, length: number) =>
  bytes
    .toString("latin1", at, at + length)
    .split("\0", 1)[0]
    ?.trim() ?? ""

/** Writes a ustar archive of plain files and folders below `folder`. */
const unpack = (archive: Buffer, folder: string) => {
  for (let at = 0; at + BLOCK_BYTES <= archive.length;) {
    const name = text(archive, at, NAME_BYTES)
    if (name === "") return
    const path = resolve(folder, name)
    if (path !== folder && !path.startsWith(`${folder}/`)) throw new Error(`the archive names ${name}`)
    const size = Number.parseInt(text(archive, at + SIZE_OFFSET, SIZE_BYTES), 8)
    const start = at + BLOCK_BYTES
    if (text(archive, at + TYPE_OFFSET, 1) === FOLDER) mkdirSync(path, { recursive: true, mode: 0o700 })
    else writeFileSync(path, archive.subarray(start, start + size), { mode: 0o600 })
    at = start + Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES
  }
}

/**
 * Makes sure that `folder` holds a database: copied from the gzipped template when there is one, which takes a tenth of the
 * time and half of the memory, otherwise created. A folder with other things in it is refused.
 */
const prepareFolder = async (folder: string, template: string) => {
  if (existsSync(join(folder, "PG_VERSION"))) return
  if (existsSync(folder) && readdirSync(folder).length > 0) {
    throw new Error("the folder is not empty and holds no database")
  }
  const staging = `${resolve(folder)}.new`
  rmSync(staging, { recursive: true, force: true })
  mkdirSync(dirname(staging), { recursive: true, mode: 0o700 })
  if (existsSync(template)) unpack(gunzipSync(readFileSync(template)), staging)
  else await (await openPglite(staging)).close()
  renameSync(staging, folder)
}

const report = (message: WorkerReport) => parentPort?.postMessage(message, [])

const serve = (bridge: PostgresBridge, port: MessagePort) => {
  const connection = bridge.connect({
    send: (bytes) => port.postMessage(bytes, [bytes.buffer]),
    hangUp: () => port.close()
  })
  port.on("message", (chunk: Uint8Array) => {
    port.postMessage(TAKEN)
    connection.receive(chunk)
  })
  port.on("close", connection.close)
}

const open = async ({ folder, template, idleInTransactionMs }: WorkerOptions) => {
  await prepareFolder(folder, template)
  const db = await openPglite(folder)
  const bridge = new PostgresBridge(
    (cycle, onRawData) => db.execProtocolRawStream(cycle, { onRawData }),
    idleInTransactionMs,
    () => process.exit(1)
  )
  parentPort?.on("message", (order: WorkerOrder) => {
    if (order !== "close") return serve(bridge, order)
    // A failing close is an exit with an error, like any other death of this thread.
    db.close().then(
      () => process.exit(0),
      (error: unknown) => {
        throw error
      }
    )
  })
}

/** The file system below the engine throws objects of its own with the system's number. */
const problemOf = (error: unknown): string => {
  if (error instanceof Error) return error.message
  const number: unknown = Reflect.get(Object(error), "errno")
  const known = Object.entries(constants.errno).find(([, each]) => each === number)?.[0]
  return known ?? `it failed with ${JSON.stringify(error) ?? String(error)}`
}

open(workerData as WorkerOptions).then(
  () => report({ _tag: "Open" }),
  (error: unknown) => report({ _tag: "Unusable", problem: problemOf(error) })
)
