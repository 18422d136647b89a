/** The abilities of each type of gateway. A new type does not compile without its row. */
import type { Config, Gateway } from "#schema/Config.ts"

export interface ChannelTraits {
  /** Whether those who write there have a shell on choird's host, where they can also use choirctl; their clients read the outbox themselves. */
  readonly is_local: boolean
  /** Whether choird lets people in by a code that they send there. */
  readonly pairs: boolean
  /** Whether a message may have buttons, and be edited once it was sent. */
  readonly buttons: boolean
  /** Whether messages can have reactions, tables and headings. */
  readonly reactions: boolean
  /** UTF-16 units of one message; absent where every text fits. */
  readonly text_chars_max?: number
  /** Bytes of one file that people can send; absent where they send none. */
  readonly file_bytes_in_max?: number
  /** Bytes of one file, and of the files of one message together, that go out; absent where none go. */
  readonly file_bytes_out_max?: number
}

const MIB = 1024 * 1024

export const CHANNEL_TRAITS = {
  telegram: {
    is_local: false,
    pairs: true,
    buttons: true,
    reactions: true,
    text_chars_max: 4096,
    file_bytes_in_max: 20 * MIB,
    file_bytes_out_max: 50 * MIB
  },
  console: { is_local: true, pairs: false, buttons: false, reactions: false }
} as const satisfies Readonly<Record<Gateway["type"], ChannelTraits>>

/** A gateway that config.json has no more: a message there waits for nobody. */
const GONE: ChannelTraits = { is_local: false, pairs: false, buttons: false, reactions: false }

/** The abilities of a gateway by its name in config.json. */
export const traitsOf = ({ gateways }: Pick<Config, "gateways">, name: string): ChannelTraits => {
  const type = Object.hasOwn(gateways, name) ? (gateways as Readonly<Record<string, Gateway>>)[name]?.type : undefined
  return type === undefined ? GONE : CHANNEL_TRAITS[type]
}
