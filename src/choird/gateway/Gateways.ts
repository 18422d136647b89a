/** The path of messages from gateways to agents; choird itself answers if no agent can (R42, R45). */
import { Clock, Context, Effect, Layer } from "effect"
import type { Config } from "#schema/Config.ts"
import type { AgentId, ResourceName } from "#schema/Ids.ts"
import { boundDms } from "#schema/ResourceBindings.ts"
import { logDeath } from "#src/shared/background.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { unaskedDms, zoneOf } from "#src/shared/config/people.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { Choices, isNumber } from "#src/choird/chatcommands/Choices.ts"
import { makeHeldMessages } from "./heldMessages.ts"
import { makeAskedInTopic } from "./askedInTopic.ts"
import { joinOf } from "./heldMessages.ts"
import { makeLabelReceived } from "./receivedFiles.ts"
import type { Arrival } from "./Arrival.ts"
import { attachFile, type Attached, type Download, workspaceOf } from "./attachFiles.ts"
import type { ChannelFailed } from "./ChannelFailed.ts"
import { GatewayCommands } from "#src/choird/chatcommands/GatewayCommands.ts"
import { type Edited, Inbox } from "#src/choird/queues/Inbox.ts"
import type { DatabaseAway } from "#src/choird/database/DatabaseAway.ts"
import { Outbox, type Outgoing } from "#src/choird/queues/Outbox.ts"
import { makeRefused } from "./refusedMessage.ts"
import { makeKnownCode, makeStranger } from "./codesOfArrivals.ts"
import { Presence } from "./Presence.ts"
import { makeToReminder } from "./toReminder.ts"
import { type Route, route } from "./route.ts"
import { Transcriber } from "./Transcriber.ts"
import { ownWords } from "#src/shared/text/quotedWords.ts"

type Message = Extract<Route, { readonly type: "message" }> & { readonly arrival: Arrival }

interface Place {
  readonly gateway: ResourceName
  readonly dm: ResourceName
}

/** The source of the answer to an arrival, among choird's own messages. */
const sourceOf = (gateway: ResourceName, { id }: Pick<Arrival, "id">) => `${gateway}:${id}`

/** The numbers of a message in its chat. */
const numbersOf = ({ message_id, thread_id }: Arrival) => ({
  ...(message_id === undefined ? {} : { message_id }),
  ...(thread_id === undefined ? {} : { thread_id })
})

export class Gateways extends Context.Service<
  Gateways,
  {
    /**
     * Stores a batch in order. Doing it again with the same ids changes nothing, so that a
     * gateway may confirm the batch afterwards and ask for it again after a death in between (R42).
     *
     * Files are fetched by `download` and stored before their message is; a failure that may pass fails the batch.
     */
    receive(
      gateway: ResourceName,
      arrivals: ReadonlyArray<Arrival>,
      download?: Download
    ): Effect.Effect<void, DatabaseAway | ChannelFailed>
    /** Another DM of the agent, to report a message that was not delivered to its own DM; none if it has only one. */
    otherPlace(message: Pick<Outgoing, "agent_id" | "dm">): Effect.Effect<Place | undefined>
  }
>()("choir/choird/Gateways") {
  static readonly layer = Layer.effect(
    Gateways,
    Effect.suspend(() => make())
  )
}

/** Answers the sender of a message. */
const makeTell = Effect.map(
  Outbox,
  (outbox) =>
    (
      gateway: ResourceName,
      { id }: Pick<Arrival, "id">,
      message: Pick<Outgoing, "dm" | "agent_id" | "kind" | "text">
    ) =>
      outbox.tell({ ...message, gateway, source_id: sourceOf(gateway, { id }), in_reply_to: null })
)

/** The notices about edits that reach no agent. */
const EDIT_PROBLEMS: Readonly<Partial<Record<Edited, string>>> = {
  unknown: "I do not have the message that you edited. Send it again, as a new one.",
  full: "My queue is full, so I did not take this edit. Please resend it later as a new message."
}

/** The line in a group about an answer that is not for everybody there. */
const IN_PRIVATE = "I answered in your private chat with me."

const NO_FILE: Attached = { attachments: [] }

/** Fetches the file of a message into the workspace of its agent. */
const makeAttach = Effect.gen(function* () {
  const config = yield* ConfigStore
  const lifecycle = yield* Lifecycle
  const { transcribe } = yield* Transcriber
  const label = yield* makeLabelReceived
  return Effect.fnUntraced(function* ({ agent_id, arrival: { file, id } }: Message, download: Download | undefined) {
    if (file === undefined || download === undefined) return NO_FILE
    const view = (yield* lifecycle.list).find((one) => one.agent_id === agent_id)
    const { config: running } = yield* config.current
    return yield* attachFile(
      { file, id },
      view === undefined ? undefined : workspaceOf(running, view),
      download,
      (workspace) => label(workspace, view?.session_id ?? null),
      transcribe
    )
  })
})

/** Stores messages in order; a repeated batch finds them stored. */
const makeStore = Effect.gen(function* () {
  const attach = yield* makeAttach
  const inbox = yield* Inbox
  const presence = yield* Presence
  const refused = yield* makeRefused
  const tell = yield* makeTell
  return Effect.fnUntraced(function* (
    gateway: ResourceName,
    messages: ReadonlyArray<Message>,
    download: Download | undefined
  ) {
    const files = yield* Effect.forEach(messages, (message) => attach(message, download))
    const received = yield* inbox.receiveAll(
      messages.map(({ agent_id, arrival, dm, forwarded = false, text }, index) => ({
        gateway,
        client_id: arrival.id,
        agent_id,
        dm,
        text: [text, files[index]?.words ?? "", files[index]?.problem ?? ""].filter((line) => line !== "").join("\n"),
        forwarded,
        attachments: files[index]?.attachments ?? [],
        ...numbersOf(arrival),
        join: joinOf(arrival, files[index]?.problem, messages[index + 1]?.arrival)
      }))
    )
    // Messages that came together get one line.
    const told = new Set<ResourceName>()
    for (const [index, message] of messages.entries()) {
      const stored = received[index]
      const problem = files[index]?.problem
      if (problem !== undefined)
        yield* tell(gateway, { id: `${message.arrival.id}/file` }, { ...message, kind: "notice", text: problem })
      if (stored?.type === "queued" && message.kept !== undefined && !told.has(message.dm)) {
        told.add(message.dm)
        const text = message.kept
        yield* tell(gateway, { id: `${message.arrival.id}/kept` }, { ...message, kind: "notice", text })
      }
      if (stored?.type === "queued" && stored.taken !== true && message.kept === undefined)
        yield* presence.asked(message.dm, message.agent_id, stored.inbox_id)
      if (stored?.type !== "full") continue
      yield* refused(gateway, "QUEUE_FULL", message.agent_id, { dm: message.dm })
      const text = `My queue is full (${stored.pending} messages). Please resend later.`
      yield* tell(gateway, message.arrival, { ...message, kind: "refusal", text })
    }
  })
})

/** Takes the new text of an earlier message; a command is never given by an edit. */
const makeEdit = Effect.gen(function* () {
  const inbox = yield* Inbox
  const tell = yield* makeTell
  return Effect.fnUntraced(function* (
    gateway: ResourceName,
    arrival: Arrival,
    to: Extract<Route, { readonly type: "message" | "command" | "say" }>
  ) {
    const { agent_id, dm } = to
    if (to.type !== "message")
      return yield* tell(gateway, arrival, {
        agent_id,
        dm,
        kind: "notice",
        text: "I do not take commands from edited messages. Send the command as a new message."
      })
    const { forwarded = false, text } = to
    const place = { gateway, client_id: arrival.id, agent_id, dm, ...numbersOf(arrival) }
    const edited = yield* inbox.edit({ ...place, text, forwarded, attachments: [] })
    const problem = EDIT_PROBLEMS[edited]
    if (problem !== undefined) yield* tell(gateway, arrival, { agent_id, dm, kind: "notice", text: problem })
  })
})

/** Finds another DM of an agent, as for what belongs to nobody's message. */
const makeOtherPlace = Effect.gen(function* () {
  const config = yield* ConfigStore
  const lifecycle = yield* Lifecycle
  return Effect.fn("Gateways.otherPlace")(function* ({
    agent_id,
    dm
  }: Pick<Outgoing, "agent_id" | "dm">): Effect.fn.Return<Place | undefined> {
    const { config: running } = yield* config.current
    const view = (yield* lifecycle.list).find((view) => view.agent_id === agent_id)
    if (view === undefined || view.bindings === null) return undefined
    const others = boundDms(view.bindings).filter((name) => name !== dm)
    const [best] = unaskedDms(running, others)
    const place = best === undefined ? undefined : running.dms[best]
    return best === undefined || place === undefined ? undefined : { dm: best, gateway: place.gateway }
  })
})

/** A decision without a number that replies to a card means the request of that card. */
const makeToCard = Effect.gen(function* () {
  const approvals = yield* Approvals
  return Effect.fnUntraced(function* (
    to: Route,
    gateway: ResourceName,
    { reply_on }: Arrival
  ): Effect.fn.Return<Route> {
    if (to.type !== "command" || to.command.type !== "decide" || reply_on === undefined) return to
    if (to.command.approval_id !== undefined) return to
    const approval_id = yield* approvals.about(gateway, reply_on)
    const meant = approval_id === undefined ? ({ astray: true } as const) : { approval_id }
    return { ...to, command: { ...to.command, ...meant } }
  })
})

/** A message in the topic of a job: the answer to the job's question, or a message that says where it was written. */
const makeToJob = Effect.gen(function* () {
  const askedInTopic = yield* makeAskedInTopic
  return Effect.fnUntraced(function* (
    to: Route,
    { edited, file, group, quoted, thread_id }: Arrival
  ): Effect.fn.Return<Route> {
    // Words of others, which a reply brings as well, are nobody's answer: they go to the agent with their mark.
    if (
      to.type !== "message" ||
      to.kept !== undefined ||
      edited === true ||
      to.forwarded === true ||
      group !== undefined
    )
      return to
    const job = yield* askedInTopic(to.dm, thread_id)
    if (job === undefined) return to
    const { agent_id, dm } = to
    const { asks, job_name } = job
    // The job knows its own words.
    const text = asks && quoted?.by.kind === "own" ? ownWords(to.text) : to.text
    return asks && file === undefined
      ? {
          type: "command",
          dm,
          writer: dm,
          agent_id,
          admin: false,
          command: { type: "answer", content: text, job_name }
        }
      : { ...to, text: `[Written in the topic of the job ${job_name}:]\n${text}` }
  })
})

/** A reply to a message of the agent's own, whose words come along: where they may repeat text from outside, they do so in the reply. */
const makeWithQuote = Effect.map(Outbox, (outbox) =>
  Effect.fnUntraced(function* (to: Route, gateway: ResourceName, { quoted, reply_on }: Arrival) {
    if (to.type !== "message" || to.forwarded === true || quoted?.by.kind !== "own") return to
    if (quoted.text === undefined && quoted.item === undefined) return to
    const mayRepeat = reply_on === undefined || (yield* outbox.mayRepeat(gateway, reply_on))
    return mayRepeat ? ({ ...to, forwarded: true } satisfies Route) : to
  })
)

/** The route that a person means, by the message that they reply to and by the topic that they write in. */
const makeMeant = Effect.gen(function* () {
  const toCard = yield* makeToCard
  const toJob = yield* makeToJob
  const toReminder = yield* makeToReminder
  const withQuote = yield* makeWithQuote
  return Effect.fnUntraced(function* (to: Route, gateway: ResourceName, arrival: Arrival) {
    const reminded = yield* toReminder(yield* toCard(to, gateway, arrival), gateway, arrival)
    const meant = yield* toJob(reminded, arrival)
    return yield* withQuote(meant, gateway, arrival)
  })
})

/** Runs a command that the agent itself answers, or never does: nobody else's messages wait for it. One at a time is enough. */
const makeAside = Effect.map(Effect.scope, (scope) => {
  const asked = new Set<AgentId>()
  return Effect.fnUntraced(function* <E, R>(agent_id: AgentId, command: Effect.Effect<void, E, R>) {
    if (asked.has(agent_id)) return
    asked.add(agent_id)
    yield* command.pipe(
      logDeath("the answer to a command"),
      Effect.ensuring(Effect.sync(() => asked.delete(agent_id))),
      Effect.forkIn(scope)
    )
  })
})

/** Executes a command and tells its answer: of a group, where it is for the writer alone, in private. */
const makeRunCommand = Effect.gen(function* () {
  const commands = yield* GatewayCommands
  const config = yield* ConfigStore
  const tell = yield* makeTell
  return Effect.fnUntraced(function* (
    gateway: ResourceName,
    { id }: Pick<Arrival, "id">,
    { admin, agent_id, command, dm, in_private, writer }: Extract<Route, { readonly type: "command" }>
  ) {
    const answered_in = in_private === true ? writer : dm
    const zone = zoneOf((yield* config.current).config, writer)
    const speaker = { agent_id, gateway, dm: answered_in, writer, request_id: id, admin, zone }
    const answer = yield* commands.run(command, speaker)
    yield* tell(gateway, { id }, { agent_id, dm: answered_in, ...answer })
    if (in_private === true)
      yield* tell(gateway, { id: `${id}/group` }, { agent_id, dm, kind: "notice", text: IN_PRIVATE })
  })
})

const make = Effect.fnUntraced(function* () {
  const choices = yield* Choices
  const config = yield* ConfigStore
  const edit = yield* makeEdit
  const held = yield* makeHeldMessages
  const lifecycle = yield* Lifecycle
  const outbox = yield* Outbox
  const knownCode = yield* makeKnownCode
  const refused = yield* makeRefused
  const store = yield* makeStore
  const stranger = yield* makeStranger
  const run = yield* makeRunCommand
  const tell = yield* makeTell
  const meant = yield* makeMeant
  const aside = yield* makeAside

  /** The route of an arrival. A number that chooses from a list which the chat was shown is the command that it completes. */
  const routed = Effect.fnUntraced(function* (running: Config, gateway: ResourceName, arrival: Arrival) {
    const views = yield* lifecycle.list
    const to = yield* meant(route(running, views, gateway, arrival), gateway, arrival)
    if (arrival.edited === true || (to.type !== "message" && to.type !== "command")) return to
    const chosen = yield* choices.take({ gateway, dm: to.dm }, arrival.text ?? "")
    if (chosen !== undefined && arrival.forwarded !== true)
      return route(running, views, gateway, { ...arrival, text: chosen })
    // A number that an earlier choird took for a choice is not a message.
    const isDone = isNumber(arrival.text ?? "") && (yield* outbox.told(sourceOf(gateway, arrival)))
    return isDone ? ({ type: "ignore" } as const) : to
  })

  const receive = Effect.fn("Gateways.receive")(function* (
    gateway: ResourceName,
    arrivals: ReadonlyArray<Arrival>,
    download?: Download
  ) {
    const { config: running } = yield* config.current
    let messages: Array<Message> = []
    const read_ms = yield* Clock.currentTimeMillis
    for (const sent of arrivals) {
      const arrival = { ...sent, read_ms }
      const to = yield* routed(running, gateway, arrival)
      if (arrival.edited === true && (to.type === "message" || to.type === "command" || to.type === "say")) {
        // It may be of a message that came in this batch.
        yield* store(gateway, messages, download)
        messages = []
        yield* edit(gateway, arrival, to)
        continue
      }
      const code = to.type === "ignore" || to.type === "stranger" ? undefined : yield* knownCode(gateway, arrival, to)
      if (code !== undefined && "dm" in to) {
        yield* tell(gateway, arrival, { ...to, kind: "refusal", text: code })
        continue
      }
      switch (to.type) {
        case "ignore":
          break
        case "stranger":
          yield* stranger(running, gateway, arrival)
          break
        case "message":
          messages.push({ arrival, ...to })
          break
        case "refuse":
          yield* refused(gateway, to.kind, to.agent_id, { dm: to.dm })
          yield* tell(gateway, to.once === undefined ? arrival : { id: to.once }, { ...to, kind: "refusal" })
          break
        case "say":
          yield* tell(gateway, arrival, { ...to, kind: "notice" })
          break
        case "command": {
          // An earlier choird answered it: the person did not mean a change since then.
          if (yield* outbox.told(sourceOf(gateway, arrival))) break
          // The messages before the command come before it.
          yield* store(gateway, messages, download)
          messages = []
          const answer = run(gateway, arrival, to)
          yield* to.command.type === "context" ? aside(to.agent_id, answer) : answer
        }
      }
    }
    yield* store(gateway, messages, download)
  })

  return Gateways.of({
    receive: (gateway, arrivals, download) => held(gateway, receive(gateway, arrivals, download)),
    otherPlace: yield* makeOtherPlace
  })
})
