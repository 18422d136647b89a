/** Lists of sources: made from hostile names, joined without repetition, and within their limit without hiding a kind. */
import { NAMED_SOURCES, type NamedSource, type Source, SOURCE_NAME_CHARS_MAX, SOURCES_MAX } from "#schema/Source.ts"

/** Everything but visible ASCII as the bytes of a URL. */
const visible = (name: string): string =>
  Array.from(name.toWellFormed(), (character) =>
    /^[!-~]$/u.test(character) ? character : encodeURIComponent(character)
  ).join("")

/** The label of one site, address, job, tool or agent. A name of nothing is `?`. */
export const sourceOf = (kind: NamedSource, name: string): Source => {
  const shown = visible(name.trim().slice(0, SOURCE_NAME_CHARS_MAX).toLowerCase()).slice(0, SOURCE_NAME_CHARS_MAX)
  return `${kind}:${shown === "" ? "?" : shown}`
}

/** The named kind of a source, or `undefined` for one without a name. */
const kindOf = (source: Source): NamedSource | undefined => NAMED_SOURCES.find((kind) => source.startsWith(`${kind}:`))

const anyOf = (kind: NamedSource): Source => `${kind}:*`

const isCovered = (known: ReadonlyArray<Source>, source: Source): boolean => {
  const kind = kindOf(source)
  return known.includes(source) || (kind !== undefined && known.includes(anyOf(kind)))
}

/** The kind with the most sources; the first of equals. */
const commonest = (sources: ReadonlyArray<Source>): NamedSource | undefined =>
  NAMED_SOURCES.map((kind) => ({ kind, count: sources.filter((source) => kindOf(source) === kind).length })).reduce(
    (most, next) => (next.count > most.count ? next : most)
  ).kind

/**
 * Both lists. Beyond {@link SOURCES_MAX} the commonest kind becomes one entry for all of its names, so that however many are added no kind of
 * source is hidden. The same list where nothing is new.
 */
export const withSources = (known: ReadonlyArray<Source>, added: ReadonlyArray<Source>): ReadonlyArray<Source> => {
  const fresh = [...new Set(added)].filter((source) => !isCovered(known, source))
  if (fresh.length === 0) return known
  let all: ReadonlyArray<Source> = [...known, ...fresh]
  while (all.length > SOURCES_MAX) {
    const kind = commonest(all)
    if (kind === undefined) break
    all = [...all.filter((source) => kindOf(source) !== kind), anyOf(kind)]
  }
  return all
}
