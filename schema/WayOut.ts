/** How a process of Choir gets to servers outside of its host: which authorities it trusts besides the known ones, and through which proxies it goes. */
import { Schema } from "effect"

/** Certificates of private authorities as PEM. */
export const AUTHORITIES_CHARS_MAX = 256 * 1024

const ProxyUrl = Schema.String.check(Schema.isMaxLength(2048))

/** The proxies of a host, as its environment names them. `none` lists the hosts that are asked without one. */
export const Proxies = Schema.Struct({
  http: Schema.optionalKey(ProxyUrl),
  https: Schema.optionalKey(ProxyUrl),
  none: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(16_384)))
})
export type Proxies = typeof Proxies.Type

export const WayOut = Schema.Struct({
  authorities: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(AUTHORITIES_CHARS_MAX))),
  proxies: Schema.optionalKey(Proxies)
})
export type WayOut = typeof WayOut.Type
