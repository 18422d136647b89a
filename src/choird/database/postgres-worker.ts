/**
 * The thread of the embedded database, so that a long statement never stalls choird. Its messages: one
 * {@link WorkerReport} when the database is open or cannot be; then it takes a port for each new connection, and "close".
 * On a port travel the bytes of the wire protocol; the worker answers each chunk with {@link TAKEN} once it has read it.
 */
import { type MessagePort, parentPort, workerData } from "node:worker_threads"
import { prepareFolder } from "./dataFolder.ts"
import { openPglite } from "./pglite.ts"
import { PostgresBridge } from "./PostgresBridge.ts"
import { TAKEN, type WorkerOptions, type WorkerOrder, type WorkerReport } from "./workerProtocol.ts"

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
    void db.close().then(() => process.exit(0))
  })
}

open(workerData as WorkerOptions).then(
  () => report({ _tag: "Open" }),
  (error: unknown) => report({ _tag: "Unusable", problem: error instanceof Error ? error.message : String(error) })
)
