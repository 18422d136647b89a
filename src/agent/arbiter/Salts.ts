/** The random bytes that hide a payload behind its digest (D52), in hex: 16 for each event. */
import { Context } from "effect"
import { randomFillSync } from "node:crypto"
import { SALT_BYTES } from "#src/shared/events/hashChain.ts"

/** Salts that are drawn at once: one by one they would cost as much as the digest. */
const SALTS_DRAWN = 256

const bySystem = (): (() => string) => {
  const drawn = Buffer.alloc(SALT_BYTES * SALTS_DRAWN)
  let next = drawn.length
  return () => {
    if (next === drawn.length) {
      randomFillSync(drawn)
      next = 0
    }
    next += SALT_BYTES
    return drawn.toString("hex", next - SALT_BYTES, next)
  }
}

/** Answers another salt at each call. A simulation gives its own, so that a seed decides every digest. */
export const Salts = Context.Reference<() => string>("choir/agent/arbiter/Salts", { defaultValue: bySystem })
