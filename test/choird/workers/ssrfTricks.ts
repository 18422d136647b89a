/** Ways to make a proxy reach what is not public (R72): written addresses, and names with the answers of a name server that the attacker runs. */

/** A host as it is asked for, and the answers where it is a name. */
export interface Trick {
  readonly host: string
  readonly answers?: ReadonlyArray<ReadonlyArray<string>>
}

const written = (hosts: string): ReadonlyArray<Trick> =>
  hosts
    .trim()
    .split(/\s+/u)
    .map((host) => ({ host }))

/** Loopback in each form that some parser takes for it. */
const LOOPBACK = written(`127.0.0.1 127.1 127.0.1 2130706433 0x7f000001 0x7f.1 0x7f.0x0.0x0.0x1 0177.0.0.1 017700000001
  00000177.0.0.1 127.0.0.2 127.255.255.254 127.0.0.1. 0.0.0.0 0 0x0 ①②⑦.⓪.⓪.① 127。0。0。1 １２７.0.0.1 127%2e0%2e0%2e1
  [::1] [::] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1] [::ffff:0:127.0.0.1]`)

/** Addresses that hold a private one for a translator on the way. */
const WRAPPED =
  written(`[64:ff9b::7f00:1] [64:ff9b::169.254.169.254] [64:ff9b:1::a00:1] [2002:7f00:1::1] [2002:a9fe:a9fe::1]
  [2001:0:7f00:1::1] [2001:0:4136:e378:8000:63bf:80ff:fffe]`)

/** Other networks than the public one, and what clouds answer about their machines. */
const LOCAL =
  written(`10.0.0.1 172.16.0.1 172.31.255.254 192.168.1.1 100.64.0.1 100.100.100.200 169.254.169.254 2852039166
  169.254.170.2 168.63.129.16 192.0.0.192 198.18.0.1 192.88.99.1 224.0.0.1 240.0.0.1 255.255.255.255 [fe80::1] [fc00::1]
  [fd00:ec2::254] [fec0::1] [ff02::1] [2001:db8::1] [3fff::1] [100::1]`)

/** Names that mean something else than they say. */
const NAMES: ReadonlyArray<Trick> = [
  { host: "private.test", answers: [["10.0.0.5"]] },
  { host: "localtest.test", answers: [["127.0.0.1"]] },
  { host: "127.0.0.1.nip.test", answers: [["127.0.0.1"]] },
  { host: "six.test", answers: [["::1"]] },
  { host: "mapped.test", answers: [["::ffff:127.0.0.1"]] },
  { host: "translated.test", answers: [["64:ff9b::7f00:1"]] },
  { host: "zone.test", answers: [["fe80::1%lo"]] },
  { host: "metadata.google.internal", answers: [["169.254.169.254"]] },
  { host: "several.test", answers: [["10.0.0.1", "127.0.0.1", "::1", "192.168.0.1"]] },
  { host: "garbage.test", answers: [["127.0.0.1:80", "localhost", ""]] },
  { host: "localhost" },
  { host: "LOCALHOST." },
  { host: "ip6-localhost" },
  { host: "loc%61lhost" },
  { host: "user@127.0.0.1" },
  { host: "public.test@127.0.0.1" },
  { host: "127.0.0.1#public.test" },
  { host: "127.0.0.1/public.test" },
  { host: String.raw`127.0.0.1\public.test` }
]

export const TRICKS: ReadonlyArray<Trick> = [...LOOPBACK, ...WRAPPED, ...LOCAL, ...NAMES]
