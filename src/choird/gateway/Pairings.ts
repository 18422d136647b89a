/**
 * Codes by which a person that the operator let in becomes a DM of config.json. A code is good once, for one bot, for ten minutes and for
 * few guesses; it is kept in memory, so that a restart of choird ends it.
 */
import { Clock, Context, Effect, FiberSet, Layer, Option, Result, Schema } from "effect"
import { type Config } from "#schema/Config.ts"
import type { PairDm } from "#schema/DmsApi.ts"
import { AgentId, type ResourceName } from "#schema/Ids.ts"
import { dmList } from "#schema/ResourceBindings.ts"
import { isAdmin } from "#src/choird/approvals/decider.ts"
import { traitsOf } from "#src/shared/config/channelTraits.ts"
import { isGroup } from "#src/shared/config/people.ts"
import { logDeath } from "#src/shared/background.ts"
import { withDm } from "#src/choird/agents/bindings.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { ConfigWriter } from "#src/choird/reconfiguration/ConfigWriter.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import {
  makePairingCodes,
  PAIRINGS_WAITING_MAX,
  type PairingCodes,
  spoiltText,
  type WaitingCode
} from "./pairingCodes.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { PAIRING_MS_MAX, pairingCodeIn } from "#src/shared/text/pairingCode.ts"

/** The refusal to make a code, with what to do about it. `kind` is also the API's error type. */
export class PairingRefused extends Schema.TaggedError<PairingRefused>()("PairingRefused", {
  kind: Schema.Literals(["UNKNOWN_GATEWAY", "DM_EXISTS", "UNKNOWN_AGENT", "GROUP", "TOO_MANY"]),
  reason: Schema.String,
  hint: Schema.String
}) {
  override get message() {
    return this.reason
  }
}

/** A text that somebody wrote in a group. */
interface GroupText {
  readonly chat_id: string
  readonly writer: ResourceName | undefined
  readonly user_id: string
  readonly text: string
}

export interface Offered {
  readonly code: string
  readonly until_ms: number
  readonly agent_id: AgentId | undefined
  /** The DMs that the agent has already. */
  readonly shares: ReadonlyArray<ResourceName>
  /** Why an earlier code of the bot ended that nobody used; absent where none did. */
  readonly warning?: string
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
    /**
     * Takes a text of a group without a DM. True if it was a code for a group, from an admin or from a person of the agent: the group becomes a DM.
     * @param writer the writer's own DM, where they have one
     */
    redeemGroup(gateway: ResourceName, group: GroupText): Effect.Effect<boolean>
    /** The name and the agent of the code that a text of a known person is; undefined for any other text. The code stays good. */
    recognise(
      gateway: ResourceName,
      user_id: string,
      text: string
    ): Effect.Effect<Pick<PairDm, "name" | "agent_id"> | undefined>
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

/** The DMs of an agent's defaults. */
export const usualDms = ({ agents }: Config, agent_id: AgentId | undefined): ReadonlyArray<ResourceName> =>
  agent_id !== undefined && Object.hasOwn(agents, agent_id) ? dmList(agents[agent_id]?.defaults.dm) : []

/** A DM at a console, as `agent init` makes one where no other is free. A group takes its place. */
const isConsole = ({ dms, gateways }: Config, name: ResourceName) => {
  const at = dms[name]?.gateway
  return at !== undefined && gateways[at]?.type === "console"
}

/** A group has an agent of its own, since everybody who writes there takes part in the agent's one conversation. */
const groupProblem = (config: Config, { admin, gateway, group, name }: PairDm, agent_id: AgentId | undefined) => {
  const known = usualDms(config, agent_id)
  const groups = known.filter((dm) => isGroup(config, dm))
  const people = known.filter((dm) => !isGroup(config, dm) && !isConsole(config, dm))
  const own = `choirctl agent init ${name}-agent, then choirctl dm pair ${name} --gateway ${gateway}`
  if (group !== true)
    return groups.length === 0
      ? undefined
      : refuse("GROUP", `${agent_id} is the agent of the group ${groups[0]}`, "choose another agent with --agent")
  if (admin)
    return refuse("GROUP", "a group cannot be an admin, since each of its members would be one", "leave out --admin")
  if (agent_id === undefined)
    return refuse("GROUP", "a group needs an agent of its own", `${own} --group --agent ${name}-agent`)
  return people.length === 0
    ? undefined
    : refuse(
        "GROUP",
        `${agent_id} talks with ${people.join(", ")} in private, and everybody in a group would take part in that conversation`,
        `give the group an agent of its own: ${own} --group --agent ${name}-agent`
      )
}

/** Why a DM cannot be paired, from the configuration. */
const problemOf = (config: Config, { agent_id, gateway, name }: PairDm) => {
  const { agents, dms, gateways } = config
  if (!traitsOf(config, gateway).pairs) {
    const bots = Object.keys(gateways).filter((bot) => traitsOf(config, bot).pairs)
    const hint = bots.length === 0 ? "choirctl gateway add telegram" : `choose one of ${bots.join(", ")}`
    return refuse("UNKNOWN_GATEWAY", `there is no bot ${gateway} in config.json`, hint)
  }
  if (Object.hasOwn(dms, name))
    return refuse("DM_EXISTS", `config.json already has a DM ${name}`, "choose another name")
  if (agent_id !== undefined && !Object.hasOwn(agents, agent_id))
    return refuse("UNKNOWN_AGENT", `there is no agent ${agent_id}`, `known: ${Object.keys(agents).join(", ")}`)
  return undefined
}

/** Writes a DM into config.json, and binds it to its agent. */
const makeBind = Effect.gen(function* () {
  const config = yield* ConfigStore
  const edits = yield* ConfigWriter
  const lifecycle = yield* Lifecycle
  const outbox = yield* Outbox
  return Effect.fnUntraced(function* ({ admin, agent_id, gateway, group, name }: PairDm, user_id: string) {
    const who = group === true ? "This group is" : "You are"
    const first = group === true ? "Mention me or reply to me, and" : "Write to"
    const { config: running } = yield* config.current
    const earlier = usualDms(running, agent_id).filter((dm) => group !== true || !isConsole(running, dm))
    const dm = [...earlier, name]
    yield* edits.apply(`gateway:${gateway}/${name}`, [
      { path: ["dms", name], value: { gateway, user_id, ...(admin ? { admin } : {}) } },
      ...(agent_id === undefined
        ? []
        : [{ path: ["agents", agent_id, "defaults", "dm"], value: dm.length === 1 ? name : dm }])
    ])
    const view = agent_id === undefined ? undefined : yield* Effect.option(lifecycle.view(agent_id))
    const isUp = view !== undefined && Option.isSome(view) && view.value.status === "running"
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
    if (agent_id === undefined) return yield* tell("done", `${who} in, as ${name}. No agent is here yet.`)
    if (!isUp) return yield* tell("done", `${who} in, as ${name}. ${agent_id} is not running at the moment.`)
    const { bindings } = view.value
    const kept = bindings === null ? {} : withDm(bindings, name)
    const also = group === true && kept.dm !== undefined ? { dm } : kept
    const restarted = yield* Effect.result(lifecycle.restart(agent_id, also))
    return yield* tell(
      "done",
      Result.isSuccess(restarted)
        ? `${who} in, as ${name}. ${first} ${agent_id}${group === true ? " answers everybody here" : ""}; /help lists what else you can send.`
        : `${who} in, as ${name}. ${agent_id} could not be restarted for it: ${restarted.failure.message}.`
    )
  })
})

/** Lets a person or a group in. */
const makeLetIn = Effect.gen(function* () {
  const audit = yield* Audit
  const bind = yield* makeBind
  const fibers = yield* FiberSet.make<void>()
  const record = (gateway: ResourceName, detail: Readonly<Record<string, string | boolean>>) =>
    audit.record({ who: `gateway:${gateway}`, action: "dm.pair", detail })
  return {
    record,
    letIn: Effect.fnUntraced(function* (row: WaitingCode, chat_id: string, user_id: string) {
      const { gateway } = row
      yield* record(gateway, { paired: row.name, user_id, admin: row.admin })
      // The configuration is read and written beside the poll: it may take as long as its repositories do.
      const bound = Effect.catchCause(bind(row, chat_id), (cause) =>
        Effect.andThen(
          record(gateway, { refused: "NOT_APPLIED", paired: row.name }),
          Effect.logError(`${row.name} could not be paired; make another code with choirctl dm pair`, cause)
        )
      )
      yield* FiberSet.run(fibers, logDeath("a pairing")(bound))
    })
  }
})

/** Makes codes for an operator. */
const makeOffer = Effect.fnUntraced(function* (codes: PairingCodes) {
  const audit = yield* Audit
  const config = yield* ConfigStore
  return Effect.fn("Pairings.offer")(function* (dm: PairDm): Effect.fn.Return<Offered, PairingRefused> {
    const { config: running } = yield* config.current
    const problem = problemOf(running, dm)
    if (problem !== undefined) return yield* problem
    const now_ms = yield* monotonicMs
    const waiting = codes.waiting(dm.name, now_ms)
    if (waiting >= PAIRINGS_WAITING_MAX)
      return yield* refuse("TOO_MANY", `${waiting} codes are already waiting`, "use one, or wait ten minutes")
    const agents = Object.keys(running.agents)
    const only = agents.length === 1 && agents[0] !== undefined ? AgentId.make(agents[0]) : undefined
    const agent_id = dm.agent_id ?? only
    const mixed = groupProblem(running, dm, agent_id)
    if (mixed !== undefined) return yield* mixed
    const told_ms = (yield* Clock.currentTimeMillis) + PAIRING_MS_MAX
    const warning = codes.spoilt(now_ms).find(({ gateway }) => gateway === dm.gateway)
    const code = codes.add({ ...dm, ...(agent_id === undefined ? {} : { agent_id }) }, now_ms)
    yield* audit.record({
      who: "operator",
      action: "dm.pair",
      detail: { offered: dm.name, gateway: dm.gateway, admin: dm.admin }
    })
    return {
      code,
      until_ms: told_ms,
      agent_id,
      shares: usualDms(running, agent_id),
      ...(warning === undefined ? {} : { warning: spoiltText(warning) })
    }
  })
})

const make = Effect.fnUntraced(function* () {
  const config = yield* ConfigStore
  const codes = makePairingCodes()
  const offer = yield* makeOffer(codes)
  const { letIn, record } = yield* makeLetIn

  /** The code that a text may be, while this user may try one and one waits. */
  const tried = (gateway: ResourceName, user_id: string, text: string, now_ms: number) => {
    const code = pairingCodeIn(text)
    return code !== undefined && codes.good(gateway, now_ms).length > 0 && codes.mayTry(gateway, user_id, now_ms)
      ? code
      : undefined
  }

  return Pairings.of({
    problems: Effect.map(monotonicMs, (now_ms) => codes.spoilt(now_ms).map(spoiltText)),
    offer,
    redeem: Effect.fn("Pairings.redeem")(function* (gateway, user_id, text) {
      const now_ms = yield* monotonicMs
      const code = tried(gateway, user_id, text, now_ms)
      if (code === undefined) return false
      const row = codes.take(code, codes.good(gateway, now_ms, false))
      if (row === undefined) {
        yield* record(gateway, { refused: "WRONG_CODE", user_id })
        for (const name of codes.wrong(gateway, now_ms)) yield* record(gateway, { refused: "CODE_ENDED", name })
        return false
      }
      yield* letIn(row, user_id, user_id)
      return true
    }),
    redeemGroup: Effect.fn("Pairings.redeemGroup")(function* (gateway, { chat_id, text, user_id, writer }) {
      const now_ms = yield* monotonicMs
      const code = tried(gateway, user_id, text, now_ms)
      if (code === undefined) return false
      const { config: running } = yield* config.current
      const good = codes.good(gateway, now_ms, true)
      const own = good.filter(
        ({ agent_id }) =>
          writer !== undefined && (isAdmin(running, writer) || usualDms(running, agent_id).includes(writer))
      )
      const row = codes.take(code, own)
      if (row === undefined) {
        const refused = codes.find(code, good) === undefined ? "WRONG_CODE" : "NOT_ADMIN"
        yield* record(gateway, { refused, user_id })
        return false
      }
      yield* letIn(row, chat_id, user_id)
      return true
    }),
    recognise: Effect.fn("Pairings.recognise")(function* (gateway, user_id, text) {
      const now_ms = yield* monotonicMs
      const code = tried(gateway, user_id, text, now_ms)
      return code === undefined ? undefined : codes.find(code, codes.good(gateway, now_ms))
    })
  })
})
