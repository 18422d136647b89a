/** The tokens of agents by the rules of choird's own store (D12), with readable texts; their rows outlive choird. */
import type { Caller } from "#schema/AgentApi.ts"
import type { SessionId } from "#schema/Ids.ts"
import { AGENT } from "./Database.ts"
import { HELLO_GRACE_MS_MAX, SUPERSEDED_TOKENS_MAX } from "#src/choird/sessions/Tokens.ts"

interface Held {
  readonly epoch: number
  readonly bootstrap: { readonly token: string; readonly spent_ms: number | undefined } | undefined
  readonly lease: string | undefined
  readonly superseded: ReadonlyArray<{ readonly token: string; readonly epoch: number }>
}

export class Tokens {
  readonly #held = new Map<SessionId, Held>()
  #made = 0

  #make(): string {
    return `token-${++this.#made}`
  }

  bootstrap(session_id: SessionId, epoch: number): string {
    const token = this.#make()
    const held = this.#held.get(session_id)
    const old = [held?.bootstrap?.token, held?.lease].filter((text) => text !== undefined)
    const superseded = [
      ...old.map((text) => ({ token: text, epoch: held?.epoch ?? 0 })),
      ...(held?.superseded ?? [])
    ].slice(0, SUPERSEDED_TOKENS_MAX)
    this.#held.set(session_id, { epoch, bootstrap: { token, spent_ms: undefined }, lease: undefined, superseded })
    return token
  }

  lease(caller: Caller, now_ms: number): string {
    const token = this.#make()
    const held = this.#held.get(caller.session_id)
    if (held === undefined || held.epoch !== caller.epoch || caller.standing === "superseded") return token
    const bootstrap =
      held.bootstrap === undefined ? undefined : { ...held.bootstrap, spent_ms: held.bootstrap.spent_ms ?? now_ms }
    this.#held.set(caller.session_id, { ...held, bootstrap, lease: token })
    return token
  }

  /** Ends the grace in which a lost reply to INIT_HELLO may be asked for again. */
  settle(caller: Caller): void {
    const held = this.#held.get(caller.session_id)
    if (caller.standing === "current" && held?.epoch === caller.epoch)
      this.#held.set(caller.session_id, { ...held, bootstrap: undefined })
  }

  revoke(session_id: SessionId): void {
    this.#held.delete(session_id)
  }

  /** What a starting choird knows: the columns, without what only memory held. */
  restart(): void {
    for (const [session_id, held] of this.#held) {
      const bootstrap = held.lease === undefined ? held.bootstrap : undefined
      this.#held.set(session_id, { ...held, bootstrap, superseded: [] })
    }
  }

  identify(token: string, now_ms: number): Caller | undefined {
    for (const [session_id, { bootstrap, epoch, lease, superseded }] of this.#held) {
      const live = bootstrap?.spent_ms === undefined || now_ms - bootstrap.spent_ms <= HELLO_GRACE_MS_MAX
      const caller = { session_id, agent_id: AGENT }
      if (bootstrap?.token === token && live) return { ...caller, epoch, standing: "bootstrap" }
      if (lease === token) return { ...caller, epoch, standing: "current" }
      const old = superseded.find((other) => other.token === token)
      if (old !== undefined) return { ...caller, epoch: old.epoch, standing: "superseded" }
    }
    return undefined
  }
}
