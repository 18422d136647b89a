/** choirctl gateway: the bots that people talk to, and the console. */
import { Effect, Option, Redacted } from "effect"
import { Argument, Command, Flag, Prompt } from "effect/cli"
import type { GatewaySummary } from "#schema/DmsApi.ts"
import { ResourceName, type SecretName } from "#schema/Ids.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import { failed, usageError } from "#src/choirctl/terminal/failure.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { readInput } from "#src/choirctl/terminal/input.ts"
import { print, withProgress } from "#src/choirctl/terminal/print.ts"
import { askPerson, yesFlag } from "#src/choirctl/terminal/questions.ts"
import { root, startCommand } from "#src/choirctl/terminal/root.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"
import { gatewayState } from "#src/choirctl/render/gateways.ts"
import { safeLine, table } from "#src/choirctl/terminal/text.ts"
import { onHome } from "#src/shared/files/homeFolder.ts"
import { applyEntries } from "./applyConfig.ts"
import { secretFlag } from "#src/choirctl/commands/flags/secretFlag.ts"
import { removeEntry } from "./removeEntry.ts"

/** Bytes of a bot's token on standard input. */
const TOKEN_BYTES_MAX = 1024

/** The bot's token: what `--secret` names, else from standard input or a person. Each bot has a token of its own. */
const tokenOf = Effect.fnUntraced(function* (
  home: string,
  server: string,
  { name, secret, yes }: { readonly name: string; readonly secret: Option.Option<SecretName>; readonly yes: boolean }
) {
  const { json } = yield* root
  const screen = yield* Screen
  const text = screen.typed_input ? "" : (yield* readInput(TOKEN_BYTES_MAX)).trim()
  const typed = Effect.map(askPerson(Prompt.Password({ message: "Token from @BotFather" })), (typed) =>
    Redacted.make(Redacted.value(typed).trim())
  )
  const { chosenKey } = yield* Effect.promise(() => import("./chosenKey.ts"))
  const chosen = yield* chosenKey({
    home,
    address: server,
    own: `${name}-token`,
    named: secret,
    piped: text === "" ? undefined : Redacted.make(text),
    reuses: false,
    ask: !json && screen.typed_input && screen.interactive ? typed : Effect.undefined,
    yes,
    command: `choirctl gateway add ${name}`
  })
  return (
    chosen ??
    (yield* usageError("no token was given", `pass it on standard input: choirctl gateway add ${name} < token.txt`))
  )
})

/** The gateway of config.json that has a token. */
const botWithToken = Effect.fnUntraced(function* (home: string, token: Redacted.Redacted) {
  const { loadFiles } = yield* Effect.promise(() => import("#src/shared/config/configFiles.ts"))
  const { config, secrets } = yield* loadFiles(home)
  return Object.entries(config.gateways).find(([, gateway]) => {
    if (gateway.type !== "telegram") return false
    const value = secrets[gateway.secret]
    return value !== undefined && Redacted.value(value) === Redacted.value(token)
  })?.[0]
})

const add = Command.make(
  "add",
  {
    name: Argument.String("name").pipe(
      Argument.withDescription("Name of the bot in config.json, such as telegram"),
      Argument.withSchema(ResourceName)
    ),
    api_root: Flag.String("api-root").pipe(
      Flag.withDescription("Bot API server; default: Telegram's own"),
      Flag.withMetavar("<url>"),
      Flag.optional
    ),
    local_files: Flag.String("local-files").pipe(
      Flag.withDescription("Folder of the files of your own Bot API server, if it runs with --local"),
      Flag.withMetavar("<folder>"),
      Flag.optional
    ),
    secret: secretFlag,
    yes: yesFlag
  },
  Effect.fnUntraced(function* ({ api_root, local_files, name, secret: named, yes }) {
    const { home } = yield* root
    const screen = yield* Screen
    const { addEntry } = yield* Effect.promise(() => import("#src/choirctl/home/configEntries.ts"))
    const { TELEGRAM_API_ROOT, tryBot } = yield* Effect.promise(() => import("#src/choirctl/doctor/serviceChecks.ts"))
    const server = Option.getOrElse(api_root, () => process.env["CHOIR_TELEGRAM_API_ROOT"] ?? TELEGRAM_API_ROOT)
    if (!URL.canParse(server))
      return yield* usageError("--api-root is not an address", "give one such as https://api.telegram.org")
    const folder = Option.getOrUndefined(local_files)
    if (folder !== undefined && !folder.startsWith("/"))
      return yield* usageError("--local-files is not an absolute path", "give one such as /var/lib/telegram-bot-api")
    const { key, name: secret, value: token } = yield* tokenOf(home, server, { name, secret: named, yes })
    const twin = yield* botWithToken(home, key)
    // Two gateways with one token would take each other's messages.
    if (twin !== undefined)
      return yield* usageError(
        `the gateway ${twin} already has this token`,
        "give each gateway a bot of its own from @BotFather"
      )
    const bot = yield* tryBot(server, key).pipe(
      withProgress("asking Telegram"),
      Effect.mapError(({ fix, obstacle, problem }) => failed(`BOT_${obstacle.toUpperCase()}`, problem, fix))
    )
    const value = {
      type: "telegram",
      secret,
      ...(server === TELEGRAM_API_ROOT ? {} : { api_root: server }),
      ...(folder === undefined ? {} : { local_files: folder })
    }
    const added = yield* addEntry(home, { section: "gateways", name, value, secret: { name: secret, value: token } })
    const { applied, note } = yield* applyEntries(name, added)
    if (note !== undefined) yield* screen.note(note)
    const pair = onHome(home, `choirctl dm pair phone --gateway ${name} --admin`)
    const next =
      applied === null ? [startCommand(home), pair] : applied ? [pair] : [onHome(home, "choirctl config apply"), pair]
    yield* print({ ok: true, name, bot, secret, applied, next }, () =>
      [`added @${bot} as ${name}`, "", "Next:", ...next.map((command) => `  ${command}`)].join("\n")
    )
  }, onHost)
).pipe(
  Command.withDescription("Add a Telegram bot; its token is asked for without echo or read from standard input"),
  Command.withExamples([{ command: "choirctl gateway add telegram" }])
)

const gatewayTable = (rows: ReadonlyArray<GatewaySummary>, color: boolean): string =>
  rows.length === 0
    ? "config.json has no gateway"
    : table(
        ["NAME", "TYPE", "BOT", "STATE", "DMS"],
        rows.map(({ bot, detail, dms, name, ok, type }) => [
          name,
          type,
          bot === null ? "-" : `@${safeLine(bot)}`,
          gatewayState({ ok, detail }, color),
          dms.length === 0 ? "-" : dms.join(", ")
        ]),
        color
      )

const list = Command.make(
  "list",
  {},
  Effect.fnUntraced(function* () {
    yield* print(yield* ask("dms", (choird) => choird.gateways()), gatewayTable)
  })
).pipe(
  Command.withDescription("List the bots, whether they are connected, and who talks to them"),
  Command.withExamples([{ command: "choirctl gateway list" }])
)

const remove = Command.make(
  "remove",
  {
    name: Argument.String("name").pipe(
      Argument.withDescription("Bot from config.json"),
      Argument.withSchema(ResourceName)
    ),
    yes: yesFlag
  },
  Effect.fnUntraced(function* ({ name, yes }) {
    const { gatewayRemoval } = yield* Effect.promise(() => import("#src/choirctl/home/removedEntries.ts"))
    yield* removeEntry({ noun: "gateway", name, yes }, (home) => gatewayRemoval(home, name))
  }, onHost)
).pipe(
  Command.withDescription("Remove a bot that no DM in config.json uses"),
  Command.withExamples([{ command: "choirctl gateway remove telegram" }])
)

export const gateway = Command.make("gateway").pipe(Command.withSubcommands([add, list, remove]))
