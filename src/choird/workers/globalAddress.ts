/** The addresses of the public network, to which alone choird connects for an agent (D21). */
import { Result } from "effect"
import { IpNetwork, NetAddress } from "effect/net"
import { isPublic } from "#src/shared/wire/egress.ts"

/** Beside the private ranges: the relays of 6to4, and the address at which Azure's hosts answer their machines. */
const V4_REFUSED = ["192.88.99.0/24", "168.63.129.16/32"].map(IpNetwork.fromStringUnsafe)

/** All that is assigned for the public network; mapped, translated (NAT64), local and multicast addresses lie outside. */
const V6_GLOBAL = IpNetwork.fromStringUnsafe("2000::/3")
/** Within it: protocols with Teredo, examples, and 6to4, which holds an IPv4 address. */
const V6_REFUSED = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"].map(IpNetwork.fromStringUnsafe)

/** Whether an address, as text, is one of the public network. A text that is not an address is not public. */
export const isGlobalAddress = (text: string): boolean =>
  Result.match(NetAddress.ipFromString(text), {
    onFailure: () => false,
    onSuccess: (ip) =>
      NetAddress.isIpv4Address(ip)
        ? isPublic(text) && !V4_REFUSED.some(IpNetwork.contains(ip))
        : IpNetwork.contains(V6_GLOBAL, ip) && !V6_REFUSED.some(IpNetwork.contains(ip))
  })
