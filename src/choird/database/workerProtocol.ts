/** The messages between choird and the thread of the embedded database. */
import type { MessagePort } from "node:worker_threads"

export interface WorkerOptions {
  readonly folder: string
  readonly template: string
  readonly idleInTransactionMs: number
}

/** A new connection's port, or the order to close the database and end. */
export type WorkerOrder = MessagePort | "close"

export type WorkerReport = { readonly _tag: "Open" } | { readonly _tag: "Unusable"; readonly problem: string }

/** The worker has read the chunk that a connection sent last. */
export const TAKEN = "taken"
