/**
 * Compares what an engine made with what was asked (R36). It is a closed list: a setting that the profile does not name must have its inactive default, so that
 * an engine's own defaults, a proxy in front of it or a setting of the future cannot open a container unseen.
 */
import { isDeepStrictEqual } from "node:util"
import { Schema } from "effect"
import type { Profile } from "./dockerProfile.ts"

const Values = Schema.Record(Schema.String, Schema.Unknown)

/** Of `docker inspect`, what the profile decides on. */
export const InspectedContainer = Schema.Struct({
  AppArmorProfile: Schema.optionalKey(Schema.String),
  /** The id of the image, by which nothing else is ever meant. */
  Image: Schema.String,
  Config: Values,
  HostConfig: Values,
  Mounts: Schema.Array(Values),
  NetworkSettings: Schema.Struct({ Networks: Values })
})
export type InspectedContainer = typeof InspectedContainer.Type

type Check = (value: unknown) => boolean

/** Whether an engine's value is that of an unset setting. */
const atRest: Check = (value) =>
  value === undefined ||
  value === null ||
  value === "" ||
  value === 0 ||
  value === false ||
  (typeof value === "object" && Object.keys(value).length === 0)

const equals =
  (expected: unknown): Check =>
  (value) =>
    isDeepStrictEqual(value, expected) || (atRest(expected) && atRest(value))

const anyOf =
  (...allowed: ReadonlyArray<unknown>): Check =>
  (value) =>
    atRest(value) || allowed.includes(value)

const holds =
  (...wanted: ReadonlyArray<string>): Check =>
  (value) =>
    Array.isArray(value) && wanted.every((path) => value.includes(path))

const byName = (name: string) => (a: object, b: object) =>
  String(Reflect.get(a, name)) < String(Reflect.get(b, name)) ? -1 : 1

const sameRows =
  (expected: ReadonlyArray<object>, name: string): Check =>
  (value) =>
    Array.isArray(value) && isDeepStrictEqual(value.map(Object).toSorted(byName(name)), expected.toSorted(byName(name)))

/** Settings that say little about an escape, or that engines fill in by themselves. */
const OWN_DEFAULTS: Readonly<Record<string, Check>> = {
  // The size of a terminal that does not exist.
  ConsoleSize: () => true,
  Isolation: anyOf("default"),
  MemorySwappiness: anyOf(-1),
  // The engine's own choice, unless the profile names one.
  Runtime: (value) => typeof value === "string",
  MaskedPaths: holds("/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"),
  ReadonlyPaths: holds("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
}

const hostChecks = ({ HostConfig }: Profile): Readonly<Record<string, Check>> => {
  const asked = Object.entries(HostConfig).map(([name, value]): [string, Check] => [name, equals(value)])
  // An engine leaves out what is false.
  const mounts = HostConfig.Mounts.map(({ ReadOnly, ...mount }) => (ReadOnly ? { ...mount, ReadOnly } : mount))
  const ulimits = HostConfig.Ulimits ?? []
  return {
    ...OWN_DEFAULTS,
    ...Object.fromEntries(asked),
    Mounts: sameRows(mounts, "Target"),
    RestartPolicy: equals({ Name: "no", MaximumRetryCount: 0 }),
    Ulimits: sameRows(ulimits, "Name")
  }
}

const subset =
  (wanted: Readonly<Record<string, string>>): Check =>
  (value) =>
    Object.entries(wanted).every(([name, text]) => Reflect.get(Object(value), name) === text)

/** An image adds variables and labels of its own; ours are there as they were given. */
const configChecks = (profile: Profile): Readonly<Record<string, Check>> => ({
  Hostname: equals(profile.Hostname),
  Domainname: atRest,
  User: equals(profile.User),
  Tty: equals(false),
  OpenStdin: equals(false),
  Entrypoint: equals(profile.Entrypoint),
  Cmd: atRest,
  Env: (value) => Array.isArray(value) && profile.Env.every((entry) => value.includes(entry)),
  Image: equals(profile.Image),
  WorkingDir: equals(profile.WorkingDir),
  Labels: subset(profile.Labels),
  Volumes: atRest,
  Healthcheck: equals(profile.Healthcheck)
})

/** Its values hold the token. */
const SECRET = new Set(["Env"])
const SHOWN_CHARS_MAX = 200

const unlike = (place: string, values: Readonly<Record<string, unknown>>, checks: Readonly<Record<string, Check>>) =>
  [...new Set([...Object.keys(values), ...Object.keys(checks)])]
    .filter((name) => !(checks[name] ?? atRest)(values[name]))
    .map((name) => {
      const shown = SECRET.has(name) ? "not what was asked" : JSON.stringify(values[name])?.slice(0, SHOWN_CHARS_MAX)
      return `${place}.${name} is ${shown ?? "missing"}`
    })

/** The keys of a container's configuration that are compared; the others describe it, such as the time when it stops. */
const pick = (values: Readonly<Record<string, unknown>>, checks: Readonly<Record<string, Check>>) =>
  Object.fromEntries(Object.entries(values).filter(([name]) => Object.hasOwn(checks, name)))

const mountedAs = ({ HostConfig: { Mounts } }: Profile) =>
  Mounts.map(({ ReadOnly, Source, Target }) => ({
    Type: "bind",
    Source,
    Destination: Target,
    RW: !ReadOnly,
    Propagation: "rprivate"
  }))

const mountDifferences = (profile: Profile, mounts: InspectedContainer["Mounts"]) => {
  const seen = mounts.map(({ Destination, Propagation, RW, Source, Type }) => ({
    Type,
    Source,
    Destination,
    RW,
    Propagation
  }))
  if (sameRows(mountedAs(profile), "Destination")(seen)) return []
  const shown = seen.map(
    ({ Destination, RW, Source, Type }) =>
      `${String(Type)} ${String(Source)} at ${String(Destination)}${RW === true ? "" : " read-only"}`
  )
  return [`it mounts ${shown.join(", ") || "nothing"}`]
}

/** Every difference as a sentence's rest, none when the container is what was asked. */
export const profileDifferences = (profile: Profile, inspected: InspectedContainer): ReadonlyArray<string> => {
  const config = configChecks(profile)
  const networks = Object.keys(inspected.NetworkSettings.Networks)
  return [
    ...unlike("HostConfig", inspected.HostConfig, hostChecks(profile)),
    ...unlike("Config", pick(inspected.Config, config), config),
    ...mountDifferences(profile, inspected.Mounts),
    ...(isDeepStrictEqual(networks, [profile.HostConfig.NetworkMode])
      ? []
      : [`it is in the networks ${networks.join(", ")}`]),
    ...(inspected.AppArmorProfile === "unconfined" ? ["AppArmorProfile is unconfined"] : [])
  ]
}
