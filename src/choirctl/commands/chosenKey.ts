/** The key of a new entry of config.json: stored, typed or piped. No key goes to a server that its owner did not give it to. */
import { Effect, Option, Redacted } from "effect"
import type { SecretName } from "#schema/Ids.ts"
import { freeName, storedFor, storedValue } from "#src/choirctl/home/keyPlace.ts"
import { usageError } from "#src/choirctl/terminal/failure.ts"
import { confirm } from "#src/choirctl/terminal/questions.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"
import { loadFiles } from "#src/shared/config/configFiles.ts"
import { originOf, secretServers, serversText } from "#src/shared/config/secretServers.ts"

export interface Wanted<E, R> {
  readonly home: string
  /** The address that the key is sent to. */
  readonly address: string
  /** The name of a secret of its own. */
  readonly own: string
  /** The secret that `--secret` names. */
  readonly named: Option.Option<SecretName>
  /** The key on standard input, if there is one. */
  readonly piped: Redacted.Redacted | undefined
  /** Whether a secret that this server gets already may be taken. */
  readonly reuses: boolean
  /** Asks a person; nothing where there is no key. */
  readonly ask: Effect.Effect<Redacted.Redacted | undefined, E, R>
  readonly yes: boolean
  /** The command again, for a person who has to confirm it. */
  readonly command: string
}

export interface ChosenKey {
  readonly name: SecretName
  /** The value to store; undefined where secrets.json has it. */
  readonly value: Redacted.Redacted | undefined
  readonly key: Redacted.Redacted
}

/** The secret that `--secret` names. One that goes to other servers is sent to this one as well only when the operator says so. */
const named = Effect.fnUntraced(function* <E, R>(wanted: Wanted<E, R>, name: SecretName) {
  const screen = yield* Screen
  const { config, secrets } = yield* loadFiles(wanted.home)
  const server = originOf(wanted.address) ?? wanted.address
  const stored = storedValue(secrets, name)
  if (stored !== undefined && wanted.piped !== undefined && Redacted.value(stored) !== Redacted.value(wanted.piped))
    return yield* usageError(
      `the secret ${name} has another value than the key on standard input`,
      "leave out the key to use the stored value, or store the key under another name with --secret"
    )
  const others = secretServers(config).filter((use) => use.secret === name && use.server !== server)
  if (others.length > 0)
    yield* confirm({
      yes: wanted.yes,
      about: [`The secret ${name} goes to ${serversText(others)}.`, `It would also be sent to ${server}.`],
      ask: `Send it to ${server}?`,
      command: `${wanted.command} --secret ${name} --yes`
    })
  yield* screen.note(`The key is the secret ${name}, which goes to ${server}.`)
  if (stored !== undefined) return { name, value: undefined, key: stored } satisfies ChosenKey
  const key = wanted.piped ?? (yield* wanted.ask)
  return key === undefined ? undefined : ({ name, value: key, key } satisfies ChosenKey)
})

/** The key for an entry, or nothing where it has none. What was piped is always used or refused, never dropped. */
export const chosenKey = Effect.fn("choirctl.chosenKey")(function* <E, R>(wanted: Wanted<E, R>) {
  if (Option.isSome(wanted.named)) return yield* named(wanted, wanted.named.value)
  const screen = yield* Screen
  const { config, secrets } = yield* loadFiles(wanted.home)
  const server = originOf(wanted.address)
  const uses = secretServers(config)
  const { piped } = wanted
  const found = wanted.reuses || piped !== undefined ? storedFor(server, uses, secrets, piped) : undefined
  if (found !== undefined) {
    yield* screen.note(
      `The key is the secret ${found.name}, which goes to ${server} already; --secret chooses another one.`
    )
    return { ...found, value: undefined } satisfies ChosenKey
  }
  const key = piped ?? (yield* wanted.ask)
  if (key === undefined) return undefined
  const name = freeName(wanted.own, secrets)
  return { name, value: key, key } satisfies ChosenKey
})
