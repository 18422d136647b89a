/** The addresses that are this machine's: what listens there may trust who comes from inside. */
import { networkInterfaces } from "node:os"
import { Option, Result } from "effect"
import { IpNetwork, NetAddress } from "effect/net"

/** Addresses of IPv6 that begin alike belong to one network; of IPv4 a public network has strangers in it. */
const OWN_PREFIX_BITS = 64

/** Ranges of IPv6 whose addresses hold one of IPv4, and the segment at which it begins (RFC 4291, RFC 2765, RFC 6052, RFC 3056). */
const HOLDING_V4 = (
  [
    ["::/96", 6],
    ["::ffff:0:0/96", 6],
    ["::ffff:0:0:0/96", 6],
    ["64:ff9b::/96", 6],
    ["2002::/16", 1]
  ] as const
).map(([range, at]) => ({ range: IpNetwork.fromStringUnsafe(range), at }))

/** The address without its zone, if it is one. */
const parsed = (text: string) => Result.getSuccess(NetAddress.ipFromString(text.replace(/%.*$/u, "")))

const heldV4 = (ip: NetAddress.Ipv6Address): Option.Option<NetAddress.IpAddress> => {
  const holding = HOLDING_V4.find(({ range }) => IpNetwork.contains(range, ip))
  if (holding === undefined) return Option.none()
  const [high = 0, low = 0] = NetAddress.ipv6ToSegments(ip).slice(holding.at)
  return Result.getSuccess(NetAddress.ipv4FromOctets([high >> 8, high & 0xff, low >> 8, low & 0xff]))
}

/** The network that belongs to this machine with one of its addresses: of IPv4 and of loopback the address alone, else the network that it is in. */
const ownNetwork = (ip: NetAddress.IpAddress): IpNetwork.IpNetwork =>
  NetAddress.isIpv4Address(ip) || NetAddress.isLoopback(ip)
    ? IpNetwork.fromAddressUnsafe(ip, NetAddress.width(ip))
    : IpNetwork.fromAddressUnsafe(ip, OWN_PREFIX_BITS)

/**
 * Whether an address is loopback's, one of these interfaces', or of their IPv6 networks. The two families are compared apart, except that an
 * IPv6 address which holds one of IPv4 is also what it holds.
 */
export const isOwnAddress = (address: string, interfaces = networkInterfaces()): boolean => {
  const asked = parsed(address)
  if (Option.isNone(asked)) return false
  const ip = asked.value
  const meant = [ip, ...(NetAddress.isIpv6Address(ip) ? Option.toArray(heldV4(ip)) : [])]
  if (meant.some((each) => NetAddress.isLoopback(each) || NetAddress.isUnspecified(each))) return true
  const own = Object.values(interfaces).flatMap((each) => each ?? [])
  const networks = own.flatMap(({ address: at }) => Option.toArray(Option.map(parsed(at), ownNetwork)))
  return meant.some((each) => networks.some(IpNetwork.contains(each)))
}
