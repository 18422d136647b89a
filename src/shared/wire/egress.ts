/**
 * Where agents in containers may connect to (D22), as rules for iptables: pure, so that choird can set them and an operator can read
 * them. New connections from the bridge alone are looked at; what belongs to one that choird or the agent began passes.
 */
import { Result } from "effect"
import { IpNetwork, NetAddress } from "effect/net"

/** Ranges that are not the public network (RFC 6890), the cloud's metadata address among them. */
const PRIVATE = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/3"
]

/** An address and port that a list has, and whether the operator wrote the address itself. */
export interface AllowedAddress {
  readonly address: string
  readonly port: number
  readonly is_written: boolean
}

const PRIVATE_NETWORKS = PRIVATE.map(IpNetwork.fromStringUnsafe)

/** Whether an IPv4 address is one of the public network. */
export const isPublic = (address: string): boolean =>
  Result.match(NetAddress.ipv4FromString(address), {
    onFailure: () => false,
    onSuccess: (ip) => !PRIVATE_NETWORKS.some(IpNetwork.contains(ip))
  })

export interface EgressPlan {
  /** The bridge of the agents' network, and the name of all that belongs to it. */
  readonly bridge: string
  /** Addresses that names are asked at; they may be in a private range. */
  readonly nameservers: ReadonlyArray<string>
  /** Where choird listens for agents in containers. */
  readonly choird_port: number | undefined
  /** The only places that may be reached, name servers included; undefined is the whole public network. */
  readonly allowed?: ReadonlyArray<AllowedAddress>
}

/** The servers of a resolv.conf(5) that a container could ask: those of the host's loopback are asked by the engine. */
export const nameserversIn = (text: string): ReadonlyArray<string> =>
  text
    .split("\n")
    .flatMap((line) => /^\s*nameserver\s+(\S+)/u.exec(line)?.[1] ?? [])
    .filter((address) => {
      const ip = NetAddress.ipv4FromString(address)
      return Result.isSuccess(ip) && !NetAddress.isLoopback(ip.success)
    })

/**
 * Docker takes the jump to DOCKER-USER out of the filter table and puts it back whenever it makes a network or starts, and a connection
 * begun in between would pass for good. This table is asked first, and Docker leaves it alone.
 */
export const EGRESS_TABLE = "mangle"

const toward = (bridge: string) => bridge.toUpperCase()
/** The chain of what leaves for elsewhere, and of what is meant for the host itself. */
export const egressChains = (bridge: string) => ({ out: toward(bridge), host: `${toward(bridge)}-HOST` })

/** For `iptables-restore --noflush`: both chains from scratch, in one step. */
export const egressRules = ({ allowed, bridge, choird_port, nameservers }: EgressPlan): string => {
  const { host, out } = egressChains(bridge)
  const known = (chain: string) => `-A ${chain} -m conntrack --ctstate ESTABLISHED,RELATED -j RETURN`
  const names = (chain: string) =>
    nameservers.flatMap((address) =>
      ["udp", "tcp"].map((protocol) => `-A ${chain} -d ${address}/32 -p ${protocol} --dport 53 -j RETURN`)
    )
  const listed = (chain: string, places: ReadonlyArray<AllowedAddress>) =>
    places.map(({ address, port }) => `-A ${chain} -d ${address}/32 -p tcp --dport ${port} -j RETURN`)
  const left =
    allowed === undefined
      ? [...names(out), ...PRIVATE.map((range) => `-A ${out} -d ${range} -j DROP`), `-A ${out} -j RETURN`]
      : [...listed(out, allowed), `-A ${out} -j DROP`]
  // A name could be made to mean an address of this host; an operator who wrote the address means it.
  const written =
    allowed === undefined
      ? names(host)
      : listed(
          host,
          allowed.filter(({ is_written }) => is_written)
        )
  return [
    `*${EGRESS_TABLE}`,
    `:${out} - [0:0]`,
    `:${host} - [0:0]`,
    known(out),
    ...left,
    known(host),
    ...written,
    ...(choird_port === undefined ? [] : [`-A ${host} -p tcp --dport ${choird_port} -j RETURN`]),
    `-A ${host} -j DROP`,
    "COMMIT",
    ""
  ].join("\n")
}

/** Where the chains are called from, in {@link EGRESS_TABLE}. */
export const egressJumps = (bridge: string): ReadonlyArray<ReadonlyArray<string>> => {
  const { host, out } = egressChains(bridge)
  return [
    ["FORWARD", "-i", bridge, "-j", out],
    ["INPUT", "-i", bridge, "-j", host]
  ]
}

const iptables = `iptables -t ${EGRESS_TABLE}`

/** The same for an operator's shell, where choird itself may not. */
export const egressCommands = (plan: EgressPlan): string =>
  [
    `iptables-restore --noflush <<'END'\n${egressRules(plan)}END`,
    ...egressJumps(plan.bridge).map((rule) => `${iptables} -C ${rule.join(" ")} || ${iptables} -I ${rule.join(" ")}`)
  ].join("\n")
