/**
 * Codes by which a person that the operator let in becomes a DM of config.json. A code is good once, for one bot, for ten minutes and for
 * few guesses; it is kept in memory, so that a restart of choird ends it.
 */
import { createHash, randomInt, timingSafeEqual } from "node:crypto"
import { Clock, Context, Effect, FiberSet, Layer, Option, Result, Schema } from "effect"
import { type Config } from "#schema/Config.ts"
import type { PairDm } from "#schema/DmsApi.ts"
import { AgentId, type ResourceName } from "#schema/Ids.ts"
import { dmList } from "#schema/ResourceBindings.ts"
import { logDeath } from "#src/shared/background.ts"
import { withDm } from "#src/choird/agents/bindings.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { ConfigWriter } from "#src/choird/approvals/ConfigWriter.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { BoundedMap } from "#src/shared/boundedMap.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"

const PAIRING_MS_MAX = 600_000
/** Wrong codes of one user within PAIRING_MS_MAX, and of all users of a bot together, which end its codes. */
const PAIRING_TRIES_MAX = 5
const PAIRING_BOT_TRIES_MAX = 50
/** Users whose tries are remembered, and codes that wait at once. */
const PAIRING_USERS_MAX = 1000
const PAIRINGS_WAITING_MAX = 16

/** Without letters that look like others. */
const LETTERS = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
const HALF_CHARS = 4

/** `ABCD-EFGH`, also in lowercase, with a blank or nothing for the dash, or behind /start as a link sends it. Only letters of codes are one, so that few words are. */
const CODE = new RegExp(
  `^\\s*(?:/start(?:@\\w{1,64})?\\s+)?([${LETTERS}]{${HALF_CHARS}})[\\s\\p{Pd}\\u2212]{0,3}([${LETTERS}]{${HALF_CHARS}})\\s*$`,
  "iu"
)

/** The refusal to make a code, with what to do about it. `kind` is also the API's error type. */
export class PairingRefused extends Schema.TaggedError<PairingRefused>()("PairingRefused", {
  kind: Schema.Literals(["UNKNOWN_GATEWAY", "DM_EXISTS", "UNKNOWN_AGENT", "TOO_MANY"]),
  reason: Schema.String,
  hint: Schema.String
}) {
  override get message() {
    return this.reason
  }
}

interface Waiting extends PairDm {
  readonly digest: Buffer
  readonly until_ms: number
}

export interface Offered {
  readonly code: string
  readonly until_ms: number
  readonly agent_id: AgentId | undefined
  /** Why an earlier code of the bot ended that nobody used; absent where none did. */
  readonly warning?: string
}

/** A code that strangers ended by guessing before anybody used it. */
interface Spoilt extends Pick<PairDm, "gateway" | "name"> {
  readonly until_ms: number
}

/** How long a code that strangers ended is in the warnings. */
const SPOILT_MS = 86_400_000

const spoiltText = ({ gateway, name }: Spoilt): string =>
  `the pairing code of ${name} ended unused: strangers sent ${PAIRING_BOT_TRIES_MAX} wrong codes to ${gateway}; make another one with choirctl dm pair ${name} --gateway ${gateway}, and use it at once`

const digestOf = (code: string) => createHash("sha256").update(code).digest()

const newCode = () => Array.from({ length: 2 * HALF_CHARS }, () => LETTERS.charAt(randomInt(LETTERS.length))).join("")

/** The code in a text of a stranger, or undefined for a text that cannot be one. */
const codeIn = (text: string): string | undefined => {
  const [, first, second] = CODE.exec(text) ?? []
  return first === undefined || second === undefined ? undefined : `${first}${second}`.toUpperCase()
}

export class Pairings extends Context.Service<
  Pairings,
  {
    /** Makes a code. An earlier one for the same name ends. */
    offer(dm: PairDm): Effect.Effect<Offered, PairingRefused>
    /**
     * Takes a text of somebody without a DM. True if it was a code that lets them in: they become a DM and hear so from the bot.
     * Everybody else hears nothing.
     */
    redeem(gateway: ResourceName, user_id: string, text: string): Effect.Effect<boolean>
    /** The codes that strangers ended, each until its name gets another one, for a day. */
    readonly problems: Effect.Effect<ReadonlyArray<string>>
  }
>()("choir/choird/Pairings") {
  static readonly layer = Layer.effect(
    Pairings,
    Effect.suspend(() => make())
  )
}

const refuse = (kind: PairingRefused["kind"], reason: string, hint: string) =>
  new PairingRefused({ kind, reason, hint })

/** Why a DM cannot be paired, from the configuration. */
const problemOf = ({ agents, dms, gateways }: Config, { agent_id, gateway, name }: PairDm) => {
  if (gateways[gateway]?.type !== "telegram") {
    const bots = Object.entries(gateways).flatMap(([bot, { type }]) => (type === "telegram" ? [bot] : []))
    const hint = bots.length === 0 ? "choirctl gateway add telegram" : `choose one of ${bots.join(", ")}`
    return refuse("UNKNOWN_GATEWAY", `there is no bot ${gateway} in config.json`, hint)
  }
  if (Object.hasOwn(dms, name))
    return refuse("DM_EXISTS", `config.json already has a DM ${name}`, "choose another name")
  if (agent_id !== undefined && !Object.hasOwn(agents, agent_id))
    return refuse("UNKNOWN_AGENT", `there is no agent ${agent_id}`, `known: ${Object.keys(agents).join(", ")}`)
  return undefined
}

/** Counts wrong codes, so that nobody can guess one. */
const makeTries = () => {
  const users = new BoundedMap<string, { readonly since_ms: number; readonly count: number }>(PAIRING_USERS_MAX)
  return {
    /** True while this user may try once more; counts the try. */
    may: (key: string, now_ms: number, max: number) => {
      const { count, since_ms } = users.get(key) ?? { count: 0, since_ms: now_ms }
      const fresh = now_ms - since_ms > PAIRING_MS_MAX
      users.set(key, fresh ? { count: 1, since_ms: now_ms } : { count: count + 1, since_ms })
      return fresh || count < max
    }
  }
}

/** Writes a DM into config.json, and binds it to its agent. */
const makeBind = Effect.gen(function* () {
  const config = yield* ConfigStore
  const edits = yield* ConfigWriter
  const lifecycle = yield* Lifecycle
  const outbox = yield* Outbox
  return Effect.fnUntraced(function* ({ admin, agent_id, gateway, name }: PairDm, user_id: string) {
    const { agents } = (yield* config.current).config
    const earlier = agent_id === undefined ? [] : dmList(agents[agent_id]?.defaults.dm)
    const dm = [...earlier, name]
    yield* edits.apply(`gateway:${gateway}/${name}`, [
      { path: ["dms", name], value: { gateway, user_id, ...(admin ? { admin } : {}) } },
      ...(agent_id === undefined
        ? []
        : [{ path: ["agents", agent_id, "defaults", "dm"], value: dm.length === 1 ? name : dm }])
    ])
    const running = agent_id === undefined ? undefined : yield* Effect.option(lifecycle.view(agent_id))
    const isUp = running !== undefined && Option.isSome(running) && running.value.status === "running"
    const tell = (part: string, text: string) =>
      outbox.tell({
        gateway,
        dm: name,
        agent_id: agent_id ?? AgentId.make("choird"),
        source_id: `paired/${name}/${user_id}/${part}`,
        kind: "notice",
        text,
        in_reply_to: null
      })
    if (agent_id === undefined) return yield* tell("done", `You are in, as ${name}. No agent is here yet.`)
    if (!isUp) return yield* tell("done", `You are in, as ${name}. ${agent_id} is not running at the moment.`)
    const { bindings } = running.value
    const also = bindings === null ? {} : withDm(bindings, name)
    const restarted = yield* Effect.result(lifecycle.restart(agent_id, also))
    return yield* tell(
      "done",
      Result.isSuccess(restarted)
        ? `You are in, as ${name}. Write to ${agent_id}; /help lists what else you can send.`
        : `You are in, as ${name}. ${agent_id} could not be restarted to let you in: ${restarted.failure.message}.`
    )
  })
})

const make = Effect.fnUntraced(function* () {
  const audit = yield* Audit
  const bind = yield* makeBind
  const config = yield* ConfigStore
  const fibers = yield* FiberSet.make<void>()
  const tries = makeTries()
  let waiting: ReadonlyArray<Waiting> = []
  let spoilt: ReadonlyArray<Spoilt> = []
  const spoiltAt = (now_ms: number) => spoilt.filter(({ until_ms }) => until_ms > now_ms)

  const record = (gateway: ResourceName, detail: Readonly<Record<string, string | boolean>>) =>
    audit.record({ who: `gateway:${gateway}`, action: "dm.pair", detail })

  /** The code's row, compared in the same time whatever the text is. */
  const find = (gateway: ResourceName, code: string, now_ms: number) => {
    const digest = digestOf(code)
    return waiting
      .filter((row) => row.gateway === gateway && row.until_ms > now_ms)
      .reduce<Waiting | undefined>((found, row) => (timingSafeEqual(row.digest, digest) ? row : found), undefined)
  }

  return Pairings.of({
    problems: Effect.map(monotonicMs, (now_ms) => spoiltAt(now_ms).map(spoiltText)),
    offer: Effect.fn("Pairings.offer")(function* (dm) {
      const { config: running } = yield* config.current
      const problem = problemOf(running, dm)
      if (problem !== undefined) return yield* problem
      const now_ms = yield* monotonicMs
      const others = waiting.filter((row) => row.until_ms > now_ms && row.name !== dm.name)
      if (others.length >= PAIRINGS_WAITING_MAX)
        return yield* refuse("TOO_MANY", `${others.length} codes are already waiting`, "use one, or wait ten minutes")
      const code = newCode()
      const agents = Object.keys(running.agents)
      const only = agents.length === 1 && agents[0] !== undefined ? AgentId.make(agents[0]) : undefined
      const agent_id = dm.agent_id ?? only
      const until_ms = now_ms + PAIRING_MS_MAX
      const told_ms = (yield* Clock.currentTimeMillis) + PAIRING_MS_MAX
      const row = { ...dm, ...(agent_id === undefined ? {} : { agent_id }), digest: digestOf(code), until_ms }
      waiting = [...others, row]
      const earlier = spoiltAt(now_ms).find(({ gateway }) => gateway === dm.gateway)
      spoilt = spoiltAt(now_ms).filter(({ name }) => name !== dm.name)
      yield* audit.record({
        who: "operator",
        action: "dm.pair",
        detail: { offered: dm.name, gateway: dm.gateway, admin: dm.admin }
      })
      return {
        code: `${code.slice(0, HALF_CHARS)}-${code.slice(HALF_CHARS)}`,
        until_ms: told_ms,
        agent_id,
        ...(earlier === undefined ? {} : { warning: spoiltText(earlier) })
      }
    }),
    redeem: Effect.fn("Pairings.redeem")(function* (gateway, user_id, text) {
      const code = codeIn(text)
      const now_ms = yield* monotonicMs
      if (code === undefined || !waiting.some((row) => row.gateway === gateway && row.until_ms > now_ms)) return false
      if (!tries.may(`${gateway} ${user_id}`, now_ms, PAIRING_TRIES_MAX)) return false
      const row = find(gateway, code, now_ms)
      if (row === undefined) {
        yield* record(gateway, { refused: "WRONG_CODE", user_id })
        if (tries.may(gateway, now_ms, PAIRING_BOT_TRIES_MAX)) return false
        const ended = waiting.filter((one) => one.gateway === gateway && one.until_ms > now_ms)
        waiting = waiting.filter((one) => one.gateway !== gateway)
        spoilt = [
          ...spoiltAt(now_ms).filter(({ name }) => !ended.some((one) => one.name === name)),
          ...ended.map(({ name }) => ({ gateway, name, until_ms: now_ms + SPOILT_MS }))
        ].slice(-PAIRINGS_WAITING_MAX)
        for (const one of ended) yield* record(gateway, { refused: "CODE_ENDED", name: one.name })
        return false
      }
      waiting = waiting.filter((one) => one !== row)
      yield* record(gateway, { paired: row.name, user_id, admin: row.admin })
      // The configuration is read and written beside the poll: it may take as long as its repositories do.
      const bound = Effect.catchCause(bind(row, user_id), (cause) =>
        Effect.andThen(
          record(gateway, { refused: "NOT_APPLIED", paired: row.name }),
          Effect.logError(`${row.name} could not be paired; make another code with choirctl dm pair`, cause)
        )
      )
      yield* FiberSet.run(fibers, logDeath("a pairing")(bound))
      return true
    })
  })
})
