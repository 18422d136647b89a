/** The secrets of the bound resources, in this process's memory only, and what keeps them out of events. */
import { Context, Effect, Layer, Redacted, Ref, type Schema } from "effect"
import type { SecretName } from "#schema/Ids.ts"
import { makeBegun, makeJsonScrub, makeScrub } from "./scrub.ts"

/** Shorter secrets are scrubbed from what their own users print, and not from every text: they may be common words. */
const SECRET_ANYWHERE_CHARS_MIN = 8
/** Values that an agent held and still takes out of texts after they were replaced. */
export const SECRETS_REMEMBERED_MAX = 32

type Secrets = ReadonlyMap<SecretName, Redacted.Redacted>

/** Keeps secrets. Each change is one swap: a reader that took a value keeps it, later readers get the new one (R35). */
export class SecretStore extends Context.Service<
  SecretStore,
  {
    get(name: SecretName): Effect.Effect<Redacted.Redacted | undefined>
    /** Takes over what a tool's manifest names, at start; the names are remembered for later refreshes. */
    add(named: ReadonlyArray<SecretName>, secrets: Secrets): Effect.Effect<void>
    /** The names that manifests use. */
    named(): ReadonlySet<SecretName>
    /** Replaces all secrets at once; those that are not named again are gone. */
    replaceAll(secrets: Secrets): Effect.Effect<void>
    /**
     * Takes out of a text every value of at least {@link SECRET_ANYWHERE_CHARS_MIN} characters that is held, or was among the last
     * {@link SECRETS_REMEMBERED_MAX}: for what a model says and what tools find, however the value got out (R32).
     */
    scrub(text: string): string
    /** The characters at a text's end that may be the beginning of such a value, so that they wait for what follows. */
    begun(text: string): number
    /** The same as {@link scrub} for every text, key and number of a JSON value. */
    scrubJson<A extends Schema.Json>(value: A): A
  }
>()("choir/agent/SecretStore") {
  static readonly layer = Layer.effect(
    SecretStore,
    Effect.suspend(() => Effect.map(Ref.make<Secrets>(new Map()), make))
  )
}

const make = (held: Ref.Ref<Secrets>): SecretStore["Service"] => {
  const names = new Set<SecretName>()
  // The newest last, so that the oldest are forgotten first. Only digests would not do: forms are looked for in texts.
  let remembered: ReadonlyArray<string> = []
  let scrub = makeScrub([])
  let scrubJson = makeJsonScrub([])
  let begun = makeBegun([])

  const remember = (secrets: Secrets) => {
    const values = [...secrets.values()].map(Redacted.value)
    const known = [...remembered.filter((value) => !values.includes(value)), ...new Set(values)]
    remembered = known.slice(-Math.max(SECRETS_REMEMBERED_MAX, values.length))
    scrub = makeScrub(remembered, SECRET_ANYWHERE_CHARS_MIN)
    scrubJson = makeJsonScrub(remembered, SECRET_ANYWHERE_CHARS_MIN)
    begun = makeBegun(remembered, SECRET_ANYWHERE_CHARS_MIN)
  }
  const change = (next: (before: Secrets) => Secrets) => Effect.map(Ref.updateAndGet(held, next), remember)

  return SecretStore.of({
    get: (name) => Effect.map(Ref.get(held), (secrets) => secrets.get(name)),
    add: (named, secrets) => {
      for (const name of named) names.add(name)
      return change((before) => new Map([...before, ...secrets]))
    },
    named: () => names,
    replaceAll: (secrets) => change(() => secrets),
    scrub: (text) => scrub(text),
    begun: (text) => begun(text),
    scrubJson: <A extends Schema.Json>(value: A) => scrubJson(value) as A
  })
}
