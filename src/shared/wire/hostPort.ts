/** Hosts and ports of URLs and listeners. */
import { NetAddress } from "effect/net"
import { HTTPS_PORT } from "#schema/Port.ts"

/** The host of a URL, an IPv6 address without its brackets. */
export const hostOf = ({ hostname }: URL): string => hostname.replaceAll(/[[\]]/gu, "")

/** The port of an http or https URL, the default of its scheme where it names none. */
export const portOf = ({ port, protocol }: URL): number =>
  port === "" ? (protocol === "https:" ? HTTPS_PORT : 80) : Number(port)

/** `host:port`, with brackets around an IPv6 address. */
export const formatPlace = (host: string, port: number): string => `${NetAddress.formatUrlHostString(host)}:${port}`
