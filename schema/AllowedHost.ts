/** A place that agents in containers may connect to (D22), as `runtime.allow` names it. */
import { Schema } from "effect"
import { HTTPS_PORT, PORT_MAX } from "./Port.ts"

/** The host of an entry, by name or IPv4 address, and its one port. */
export interface AllowedPlace {
  readonly host: string
  /** Whether `host` is an address, which is taken as it is written. */
  readonly is_address: boolean
  readonly port: number
}

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/u
const NAME_CHARS_MAX = 253
/** Forms that some resolvers read as an address: `127.1`, `0x7f000001`, `010.0.0.1`. */
const NUMBER = /^(?:\d+|0x[0-9a-f]*)$/u
const BYTE = /^(?:0|[1-9]\d{0,2})$/u

const isAddress = (host: string) => {
  const parts = host.split(".")
  return parts.length === 4 && parts.every((part) => BYTE.test(part) && Number(part) < 256)
}

/** This host itself, its link, groups of hosts: never a place of its own. */
const isNowhere = (address: string) => {
  const [first = 0, second = 0] = address.split(".").map(Number)
  return first === 0 || first === 127 || first >= 224 || (first === 169 && second === 254)
}

const portOf = (text: string | undefined) => {
  if (text === undefined) return HTTPS_PORT
  const port = /^[1-9]\d{0,4}$/u.test(text) ? Number(text) : undefined
  return port !== undefined && port <= PORT_MAX ? port : undefined
}

/** Why an entry is none, or what it says. */
export const allowedPlace = (entry: string): AllowedPlace | string => {
  const [host = "", port_text, ...more] = entry.split(":")
  const port = portOf(port_text)
  if (more.length > 0 || port === undefined)
    return "must be a name or an IPv4 address, and a port after a colon where it is not 443"
  if (isAddress(host))
    return isNowhere(host) ? `${host} is not an address of another host` : { host, is_address: true, port }
  const labels = host.split(".")
  if (host.includes("*")) return "must be a whole name: what a wildcard matches is not known before it is requested"
  if (host.length > NAME_CHARS_MAX || !labels.every((label) => LABEL.test(label)) || NUMBER.test(labels.at(-1) ?? ""))
    return "must be a lowercase name, or an IPv4 address in decimal"
  return { host, is_address: false, port }
}

export const AllowedHost = Schema.String.check(
  Schema.makeFilter((entry) => {
    const place = allowedPlace(entry)
    return typeof place === "string" ? place : true
  })
)
