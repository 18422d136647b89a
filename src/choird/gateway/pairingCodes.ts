/** The codes that wait to be sent to a bot, in memory alone, and the guesses at them. */
import { createHash, timingSafeEqual } from "node:crypto"
import type { PairDm } from "#schema/DmsApi.ts"
import type { ResourceName } from "#schema/Ids.ts"
import { BoundedMap } from "#src/shared/boundedMap.ts"
import {
  newPairingCode,
  PAIRING_BOT_TRIES_MAX,
  PAIRING_MS_MAX,
  PAIRING_TRIES_MAX,
  shownPairingCode
} from "#src/shared/text/pairingCode.ts"

/** Users whose tries are remembered, and codes that wait at once. */
const PAIRING_USERS_MAX = 1000
export const PAIRINGS_WAITING_MAX = 16

export interface WaitingCode extends PairDm {
  readonly digest: Buffer
  readonly until_ms: number
}

/** A code that strangers ended by guessing before anybody used it. */
interface Spoilt extends Pick<PairDm, "gateway" | "name"> {
  readonly until_ms: number
}

/** How long a code that strangers ended is in the warnings. */
const SPOILT_MS = 86_400_000

export const spoiltText = ({ gateway, name }: Spoilt): string =>
  `the pairing code of ${name} ended unused: strangers sent ${PAIRING_BOT_TRIES_MAX} wrong codes to ${gateway}; make another one with choirctl dm pair ${name} --gateway ${gateway}, and use it at once`

const digestOf = (code: string) => createHash("sha256").update(code).digest()

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

/** All codes of this choird. */
export const makePairingCodes = () => {
  const tries = makeTries()
  let waiting: ReadonlyArray<WaitingCode> = []
  let ended: ReadonlyArray<Spoilt> = []
  const spoilt = (now_ms: number) => ended.filter(({ until_ms }) => until_ms > now_ms)
  const good = (gateway: ResourceName, now_ms: number, group?: boolean) =>
    waiting.filter(
      (row) =>
        row.gateway === gateway && row.until_ms > now_ms && (group === undefined || (row.group === true) === group)
    )
  /** The code's row, compared in the same time whatever the text is. */
  const find = (code: string, rows: ReadonlyArray<WaitingCode>) => {
    const digest = digestOf(code)
    return rows.reduce<WaitingCode | undefined>(
      (found, row) => (timingSafeEqual(row.digest, digest) ? row : found),
      undefined
    )
  }
  return {
    spoilt,
    /** The codes of a bot that are good now, those of groups, or those of people. */
    good,
    find,
    /** How many wait for other names. */
    waiting: (name: ResourceName, now_ms: number) =>
      waiting.filter((row) => row.until_ms > now_ms && row.name !== name).length,
    /** Makes a code; an earlier one of the same name ends. */
    add: (dm: PairDm, now_ms: number): string => {
      const code = newPairingCode()
      const others = waiting.filter((row) => row.until_ms > now_ms && row.name !== dm.name)
      waiting = [...others, { ...dm, digest: digestOf(code), until_ms: now_ms + PAIRING_MS_MAX }]
      ended = spoilt(now_ms).filter(({ name }) => name !== dm.name)
      return shownPairingCode(code)
    },
    /** Uses up the code, if it is one of these. */
    take: (code: string, rows: ReadonlyArray<WaitingCode>) => {
      const row = find(code, rows)
      waiting = waiting.filter((one) => one !== row)
      return row
    },
    /** Whether this user may try one more code; counts the try. */
    mayTry: (gateway: ResourceName, user_id: string, now_ms: number): boolean =>
      tries.may(`${gateway} ${user_id}`, now_ms, PAIRING_TRIES_MAX),
    /** Counts a wrong code of a stranger. Too many at a bot end its codes: answers their names. */
    wrong: (gateway: ResourceName, now_ms: number): ReadonlyArray<ResourceName> => {
      if (tries.may(gateway, now_ms, PAIRING_BOT_TRIES_MAX)) return []
      const names = good(gateway, now_ms).map(({ name }) => name)
      waiting = waiting.filter((one) => one.gateway !== gateway)
      ended = [
        ...spoilt(now_ms).filter(({ name }) => !names.includes(name)),
        ...names.map((name) => ({ gateway, name, until_ms: now_ms + SPOILT_MS }))
      ].slice(-PAIRINGS_WAITING_MAX)
      return names
    }
  }
}

export type PairingCodes = ReturnType<typeof makePairingCodes>
