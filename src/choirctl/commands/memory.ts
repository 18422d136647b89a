/** choirctl memory: what an agent remembers, and how a person changes it. */
import { existsSync, writeFileSync } from "node:fs"
import { Clock, Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { AgentId } from "#schema/Ids.ts"
import {
  DocumentId,
  FACT_TEXT_CHARS_MAX,
  FactKey,
  FactText,
  Forget,
  MEMORY_HITS,
  MEMORY_HITS_MAX,
  MEMORY_QUERY_CHARS_MAX
} from "#schema/Memory.ts"
import type { MemoryName, MemoryPage } from "#schema/MemoryApi.ts"
import { freshFile, onFile, putInPlace } from "#src/choirctl/backup/freshFiles.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import {
  answerText,
  deletedText,
  detailText,
  memoryText,
  planText,
  reachesNothing,
  receiptText,
  trustedText,
  writtenText
} from "#src/choirctl/render/memory.ts"
import { failed, usageError } from "#src/choirctl/terminal/failure.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { print, withProgress } from "#src/choirctl/terminal/print.ts"
import { confirm, yesFlag } from "#src/choirctl/terminal/questions.ts"
import { jsonText } from "#src/choirctl/terminal/text.ts"
import { shellQuoted } from "#src/shared/text/shellQuoted.ts"
import { agentId, sessionOf } from "#src/choirctl/commands/flags/arguments.ts"

const isDocument = Schema.is(DocumentId)
const isKey = Schema.is(FactKey)

const nameArgument = Argument.String("name").pipe(
  Argument.withDescription("Key of a fact, or an id from choirctl memory query")
)

/** A row by its id, or a fact by its key. */
const named = Effect.fnUntraced(function* (agent: AgentId, name: string) {
  if (isDocument(name)) return { id: name } satisfies MemoryName
  if (isKey(name)) return { key: name } satisfies MemoryName
  return yield* usageError(`${name} is neither a key nor an id`, `choirctl memory list ${agent}`)
})

const list = Command.make(
  "list",
  {
    id: agentId,
    prefix: Flag.String("prefix").pipe(
      Flag.withDescription("Only facts with this key prefix, such as user."),
      Flag.withMetavar("<prefix>"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function* ({ id, prefix }) {
    const query = Option.match(prefix, { onNone: () => ({}), onSome: (prefix) => ({ prefix }) })
    const found = yield* ask("memory", (choird) => choird.list({ params: { id }, query }))
    yield* print(found, memoryText(id, yield* Clock.currentTimeMillis))
  })
).pipe(
  Command.withDescription("List the facts that an agent knows, and count what it remembers of sessions"),
  Command.withExamples([{ command: "choirctl memory list agent-1 --prefix user." }])
)

const show = Command.make(
  "show",
  { id: agentId, name: nameArgument },
  Effect.fnUntraced(function* ({ id, name }) {
    const payload = yield* named(id, name)
    yield* print(yield* ask("memory", (choird) => choird.show({ params: { id }, payload })), detailText)
  })
).pipe(
  Command.withDescription("Show a fact with its earlier values and where it comes from, or a part of a session"),
  Command.withExamples([{ command: "choirctl memory show agent-1 user.preference.theme" }])
)

const query = Command.make(
  "query",
  {
    id: agentId,
    text: Argument.String("text").pipe(
      Argument.filter(
        (given) => given !== "" && given.length <= MEMORY_QUERY_CHARS_MAX,
        () => `a query has 1 to ${MEMORY_QUERY_CHARS_MAX} characters`
      ),
      Argument.withDescription("Words or a question")
    ),
    store: Flag.Literals("store", ["session", "knowledge"]).pipe(
      Flag.withDescription("Search past sessions or facts"),
      Flag.withDefault("session" as const)
    ),
    session: Flag.String("session").pipe(
      Flag.withDescription("Search only this session, in full detail"),
      Flag.withMetavar("<session-id>"),
      Flag.optional
    ),
    limit: Flag.Int("limit").pipe(
      Flag.filter(
        (value) => value >= 1 && value <= MEMORY_HITS_MAX,
        () => `--limit must be a whole number from 1 to ${MEMORY_HITS_MAX}`
      ),
      Flag.withDescription(`Maximum number of results; default ${MEMORY_HITS}`),
      Flag.withDefault(MEMORY_HITS)
    )
  },
  Effect.fnUntraced(function* ({ id, limit, session, store, text }) {
    if (Option.isSome(session) && store !== "session")
      return yield* usageError("--session searches what was said in sessions", "leave --store out")
    const session_id = Option.isNone(session) ? {} : { session_id: yield* sessionOf(session.value) }
    const payload = { store, query: text, limit, ...session_id }
    yield* print(yield* ask("memory", (choird) => choird.search({ params: { id }, payload })), answerText)
  })
).pipe(
  Command.withDescription("Search an agent's memory as the agent does"),
  Command.withExamples([{ command: 'choirctl memory query agent-1 "where does Ada live"' }])
)

const isText = Schema.is(FactText)

const text = Argument.String("text").pipe(
  Argument.map((given) => given.trim()),
  Argument.filter(isText, (given) =>
    given === ""
      ? 'a text that is not empty, such as "Lives in Lyon"'
      : `a fact has at most ${FACT_TEXT_CHARS_MAX} characters, and this has ${given.length}`
  ),
  Argument.withDescription("What the agent should know")
)

const set = Command.make(
  "set",
  {
    id: agentId,
    key: Argument.String("key").pipe(
      Argument.withDescription("Lowercase words joined by dots, such as user.preference.theme"),
      Argument.withSchema(FactKey)
    ),
    text
  },
  Effect.fnUntraced(function* ({ id, key, text }) {
    const payload = { key, text }
    yield* print(yield* ask("memory", (choird) => choird.set({ params: { id }, payload })), writtenText)
  })
).pipe(
  Command.withDescription("Tell an agent a fact; the earlier value of the key stays in its history"),
  Command.withExamples([{ command: 'choirctl memory set agent-1 user.city "Lives in Lyon"' }])
)

const remove = Command.make(
  "delete",
  { id: agentId, name: nameArgument },
  Effect.fnUntraced(function* ({ id, name }) {
    const payload = yield* named(id, name)
    yield* print(yield* ask("memory", (choird) => choird.delete({ params: { id }, payload })), deletedText)
  })
).pipe(
  Command.withDescription("Delete a fact; its history stays. To remove every trace, use choirctl memory forget"),
  Command.withExamples([{ command: "choirctl memory delete agent-1 user.city" }])
)

const trust = Command.make(
  "trust",
  { id: agentId, name: nameArgument },
  Effect.fnUntraced(function* ({ id, name }) {
    const payload = yield* named(id, name)
    yield* print(yield* ask("memory", (choird) => choird.trust({ params: { id }, payload })), trustedText)
  })
).pipe(
  Command.withDescription("Take an untrusted fact for true, so that prompts may show it unasked"),
  Command.withExamples([{ command: "choirctl memory trust agent-1 user.city" }])
)

const decodeForget = Schema.decodeUnknownEffect(Forget)

/** `12` or `12-15`. */
const EVENTS = /^(\d{1,9})(?:-(\d{1,9}))?$/u

interface Asked {
  readonly name: Option.Option<string>
  readonly words: Option.Option<string>
  readonly session: Option.Option<string>
  readonly events: Option.Option<string>
}

const WHICH = "name one of: a fact or an id, --words, or --session with --events"
const FORGET_HELP = "choirctl memory forget --help"

/** The order that the arguments make. */
const orderOf = Effect.fnUntraced(function* (id: AgentId, { events, name, session, words }: Asked) {
  const given = [name, words, session].filter((option) => Option.isSome(option)).length
  if (given !== 1 || Option.isSome(session) !== Option.isSome(events)) return yield* usageError(WHICH, FORGET_HELP)
  if (Option.isSome(name)) {
    const fact = yield* named(id, name.value)
    return "key" in fact ? ({ type: "fact", key: fact.key } as const) : ({ type: "document", id: fact.id } as const)
  }
  if (Option.isSome(words))
    return yield* Effect.mapError(decodeForget({ type: "words", words: words.value.trim() }), ({ message }) =>
      usageError(message, FORGET_HELP)
    )
  const [, first, last = first] = EVENTS.exec(Option.getOrElse(events, () => "")) ?? []
  if (first === undefined)
    return yield* usageError("--events is one revision or two with a hyphen, such as 12-15", FORGET_HELP)
  const session_id = yield* sessionOf(Option.getOrElse(session, () => ""))
  return yield* Effect.mapError(
    decodeForget({ type: "span", session_id, first_rev: Number(first), last_rev: Number(last) }),
    ({ message }) => usageError(message, FORGET_HELP)
  )
})

const optional = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(Flag.withDescription(description), Flag.withMetavar(metavar), Flag.optional)

const forget = Command.make(
  "forget",
  {
    id: agentId,
    name: nameArgument.pipe(Argument.optional),
    words: optional("words", "<text>", "Every event, fact and part of a session that holds these words"),
    session: optional("session", "<session-id>", "A session, with --events"),
    events: optional("events", "<revisions>", "Revisions of that session, such as 12-15"),
    yes: yesFlag
  },
  Effect.fnUntraced(function* ({ id, yes, ...asked }) {
    const payload = yield* orderOf(id, asked)
    const planned = ask("memory", (choird) => choird.plan({ params: { id }, payload }))
    const plan = yield* planned.pipe(withProgress(`looking through the sessions of ${id}`))
    if (reachesNothing(plan))
      return yield* failed("NOTHING_FOUND", `${id} remembers nothing of it`, `choirctl memory query ${id} TEXT`)
    const what = Option.getOrElse(asked.name, () =>
      Option.match(asked.words, {
        onSome: (words) => `--words ${shellQuoted(words)}`,
        onNone: () =>
          `--session ${Option.getOrElse(asked.session, () => "")} --events ${Option.getOrElse(asked.events, () => "")}`
      })
    )
    yield* confirm({
      yes,
      about: planText(id, plan),
      ask: "Forget this?",
      command: `choirctl memory forget ${id} ${what} --yes`
    })
    const receipt = yield* ask("memory", (choird) => choird.forget({ params: { id }, payload })).pipe(
      withProgress("forgetting")
    )
    yield* print(receipt, receiptText)
  })
).pipe(
  Command.withDescription(
    "Remove a fact, words or events from an agent's log and memory for good; the log's chain still verifies"
  ),
  Command.withExamples([
    { command: "choirctl memory forget agent-1 user.city" },
    { command: 'choirctl memory forget agent-1 --words "4711"' },
    { command: "choirctl memory forget agent-1 --session 0k8v3w9m2p1n4q7r --events 12-15" }
  ])
)

interface Exported {
  readonly path: string
  readonly facts: number
  readonly parts: number
}

const exportedText = ({ facts, parts, path }: Exported): string =>
  `${path}: ${facts} values of facts and ${parts} parts of sessions, one on each line`

/** Writes every page to a file that appears when it is whole. */
const exportTo = Effect.fn("choirctl.exportMemory")(function* (id: AgentId, path: string) {
  if (existsSync(path)) return yield* failed("FILE_EXISTS", `${path} already exists`, "choose another file")
  const { descriptor, fresh } = yield* freshFile(path)
  let facts = 0
  let parts = 0
  let after: string | null | undefined
  while (after !== null) {
    const query = after === undefined ? {} : { after }
    const page: MemoryPage = yield* ask("memory", (choird) => choird.page({ params: { id }, query }))
    const rows = [
      ...page.facts.map((fact) => ({ kind: "fact", ...fact })),
      ...page.parts.map((part) => ({ kind: "part", ...part }))
    ]
    yield* onFile(path, () => writeFileSync(descriptor, rows.map((row) => `${jsonText(row)}\n`).join("")))
    facts += page.facts.length
    parts += page.parts.length
    after = page.next
  }
  yield* putInPlace(path, fresh, descriptor)
  const exported: Exported = { path, facts, parts }
  return exported
}, Effect.scoped)

const exportAll = Command.make(
  "export",
  {
    id: agentId,
    file: Argument.String("file").pipe(
      Argument.withDescription("File to write; default: <agent-id>-memory.jsonl in this folder"),
      Argument.optional
    )
  },
  Effect.fnUntraced(function* ({ file, id }) {
    const path = Option.getOrElse(file, () => `${id}-memory.jsonl`)
    yield* print(yield* onHost(exportTo(id, path)).pipe(withProgress(`exporting the memory of ${id}`)), exportedText)
  })
).pipe(
  Command.withDescription("Write everything that an agent remembers as JSON lines, earlier values of facts included"),
  Command.withExamples([{ command: "choirctl memory export agent-1 memory.jsonl" }])
)

export const memory = Command.make("memory").pipe(
  Command.withSubcommands([list, show, query, set, remove, trust, forget, exportAll])
)
